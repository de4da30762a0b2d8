"""What lies beside a data set's worlds: its card (what it is, from what, how to build it again) and its checksums."""

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hippo_core import text_files
from hippo_core.errors import LabError
from hippo_core.files import root, sha256, write_json
from hippo_core.source_code import closure
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.validate import EXEMPT
from hippo_core.suites.folder import files_of
from hippo_core.suites.types import Settings, Suite

VERSION = 1
CARD, CHECKSUMS = "dataset_card.json", "checksums.json"
SPLIT_RULES = {
    "own": "test: the folder's files; val and train: its subfolders of these names, where it has them",
    "drawn": "a hash of its words says in which split a fact may be told: no fact is shared between train, val and test",
}
MATERIAL = {
    "written": ("notes written by hand for the lab", "this repository's"),
    "own": ("the user's own folder", "the user's own"),
    "drawn": ("sentences drawn from the lab's word lists; given names from Faker", "this repository's; given names: MIT"),
}


def digest(value: Any) -> str:
    """The SHA-256 of a value's JSON, in hex."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def source(suite: Suite, settings: Settings) -> str:
    """A hash of all that a data set depends on besides its name: code, material, settings. LabError where a file is missing."""
    files = suite.files(settings)
    text_files.require(*files)
    own = {name: text_files.text_file(name).sha256 for name in files}
    own |= {path.relative_to(root()).as_posix(): sha256(path) for path in suite.reads(settings)}
    if suite.folder:
        own = {str(path.relative_to(suite.folder)): sha256(path) for path in files_of(suite.folder)}
    return digest([VERSION, code(suite.module), _faker(), own, settings.model_dump(mode="json")])


@cache
def _faker() -> str:
    """The version of the library of names; its metadata is a file that is read each time."""
    return version("faker")


@cache
def code(made_by: str) -> str:
    """A hash of the modules that a suite of this module uses, ours or the user's own."""
    return digest({module: sha256(path) for module, path in closure([made_by, "hippo_core.suites.datasets.build"]).items()})


def is_current(folder: Path, expected: str) -> bool:
    """Whether a data set is there that was built from this source."""
    return folder.is_dir() and read_card(folder).get("source") == expected


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a data set."""
    return _read(folder, CARD)


def family(suite: Suite, settings: Settings) -> str:
    """What a suite's worlds come from: public files, the user's own folder, files of the repository, or a draw."""
    if suite.folder:
        return "own"
    return "public" if suite.files(settings) else "written" if suite.stream else "drawn"


Drawn = tuple[str, str, int, int, int, dict[str, Any]]  # the arguments of `write_dataset`


def write(folder: Path, arguments: Drawn, settings: Settings, made_of: str, counts: dict[str, Any]) -> None:
    """Write card and checksums of the worlds that lie in the folder."""
    suite_name, profile, n, seed, context_limit, overrides = arguments
    suite = get_suite(suite_name)
    origin = family(suite, settings)
    files = [text_files.text_file(name) for name in suite.files(settings)]
    read = "; ".join(dict.fromkeys(file.title for file in files)), "; ".join(dict.fromkeys(file.licence for file in files))
    material, licence = read if files else MATERIAL[origin]
    content = {
        "schema_version": VERSION,
        "suite": suite_name,
        "summary": suite.summary,
        "profile": profile,
        "n": n,
        "seed": seed,
        "context_limit": context_limit if suite.uses_context_limit else None,
        "overrides": overrides,
        "settings": settings.model_dump(mode="json"),
        "primary": suite.primary,
        "answer_budget": suite.answer_budget,
        "splits": counts,
        "split_rule": SPLIT_RULES.get(origin) or suite.split_rule,
        "exempt_from": EXEMPT.get(suite_name, {}),
        "material": material,
        "licence": licence,
        "source": made_of,
        "rebuild": f'python -c "from hippo_core.suites.datasets.build import write_dataset; write_dataset{arguments!r}"',
    }
    write_json(folder / CARD, content)
    files = sorted(path for path in folder.rglob("*.json*") if path.is_file())
    write_json(folder / CHECKSUMS, {path.relative_to(folder).as_posix(): sha256(path) for path in files})


def verify(folder: Path) -> None:
    """LabError where a file of the data set is missing or not as it was written, or one is there that was not."""
    listed = _read(folder, CHECKSUMS)
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() and path.name[0] != "."}
    for name in sorted({*listed, *there} - {CHECKSUMS}):
        if name not in there:
            raise broken(folder, name, "is missing")
        if name not in listed:
            raise broken(folder, name, f"is not in {CHECKSUMS}")
        if sha256(folder / name) != listed[name]:
            raise broken(folder, name, f"has another checksum than {CHECKSUMS} says")


def broken(folder: Path, name: str, what: str) -> LabError:
    """The error for a data set that was altered after it was built."""
    return LabError(f"{folder / name} {what}; move the folder {folder} away and build it again: `make datasets`")


def _read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise broken(folder, name, "is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise broken(folder, name, "is not valid JSON") from None
    if not isinstance(content, dict):
        raise broken(folder, name, "is not a JSON object")
    return content
