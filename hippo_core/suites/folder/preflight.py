"""What a run needs of a folder of the user's own, looked at before anything starts."""

from functools import lru_cache
from pathlib import Path

from hippo_core.files import LabError
from hippo_core.suites.folder.lines import raw_lines
from hippo_core.suites.folder.place import files_of, has_split, own_folder, part_of
from hippo_core.suites.folder.worlds import read_folder
from hippo_core.suites.types import Split


def require_folder(suite_name: str, split: Split, n: int, calibrates: bool = False, shuffles: bool = False) -> None:
    """LabError for the first mistake in the folder, and where it lacks what a run needs.

    Args:
        suite_name: `folder:PATH`.
        split: the split that is asked.
        n: how many of its questions are asked.
        calibrates: whether there is a gate that is calibrated on validation worlds.
        shuffles: whether a world is shown what another one says.
    """
    folder = own_folder(suite_name)
    if calibrates and not has_split(folder, "val"):
        remedy = f"put facts.jsonl and items.jsonl into {folder / 'val'}, or say overrides='[episodic.use_gate=false]'"
        raise LabError(f"the gate is calibrated on validation worlds, and {folder} has none; {remedy}")
    seen = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files_of(folder))
    counts = _questions(folder, split, seen)
    for other in ("val", "test"):
        if has_split(folder, other):
            _questions(folder, other, seen)
    if shuffles and (len(counts) == 1 or counts[0] >= n):
        remedy = "take a larger n" if len(counts) > 1 else "split the facts into worlds, or leave this preset out"
        raise LabError(f"this preset shows what another world says, and the first {n} questions of {folder} are about one world; {remedy}")


@lru_cache(maxsize=32)
def _questions(folder: Path, split: Split, seen: tuple[tuple[Path, int, int], ...]) -> tuple[int, ...]:
    """How many questions each world has. A split is read once for all cells of a grid, as long as its files are as they were `seen`."""
    return tuple(len(world.items) for world in read_folder(folder, split))


def count_questions(suite_name: str, split: Split) -> int:
    """How many questions a split has, counted by lines."""
    return sum(bool(line.strip()) for line in raw_lines(part_of(own_folder(suite_name), split) / "items.jsonl"))


def cut_short(suite_name: str, split: Split, n: int) -> str:
    """A sentence that says how many questions are left out; empty where none are."""
    there = count_questions(suite_name, split)
    return f"{n:,} of the {there:,} questions of {suite_name} are asked (n={n}); n=all asks all of them" if n < there else ""
