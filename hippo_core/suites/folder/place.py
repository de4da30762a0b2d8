"""Where the files of a folder of the user's own lie: the test split in the folder itself, val and train in subfolders."""

from pathlib import Path

from hippo_core.files import LabError, root
from hippo_core.suites.splits import SPLITS
from hippo_core.suites.types import Split

PREFIX = "folder:"
FILES = ("facts.jsonl", "items.jsonl")


def is_own(suite_name: str) -> bool:
    """Whether a suite is a folder of the user's own."""
    return suite_name.startswith(PREFIX)


def own_folder(suite_name: str) -> Path:
    """The folder that `folder:PATH` names, PATH from the repository's root or absolute; LabError where there is none."""
    folder = (root() / Path(suite_name.removeprefix(PREFIX)).expanduser()).resolve()
    if not folder.is_dir():
        raise LabError(f"no such folder: {folder}; expected folder:PATH, where PATH holds facts.jsonl and items.jsonl")
    return folder


def part_of(folder: Path, split: Split) -> Path:
    """Where the two files of a split lie."""
    return folder if split == "test" else folder / split


def has_split(folder: Path, split: Split) -> bool:
    """Whether the folder holds this split."""
    return split == "test" or part_of(folder, split).is_dir()


def files_of(folder: Path) -> list[Path]:
    """The files of all splits that are there."""
    return sorted(path for split in SPLITS for name in FILES if (path := part_of(folder, split) / name).is_file())
