"""Data sets: worlds drawn from (suite, profile, n, seed, split, context limit), written to disk with a card and checksums, read back.

    data/generated/<suite>/<profile>/<n>_<seed>[_c<context limit>][_<hash of overrides>]/
        {val,test}/{facts,items}.jsonl   one fact, one item a line, world after world
        dataset_card.json   checksums.json

A data set appears whole or not at all. It is built when it is asked for and not there, or was built from other code, settings or
material; files that do not match their checksums are an error.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.files import home, locked_folder, new_folder, remove_left
from hippo_core.suites import get_suite
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.jsonl import read_worlds, write_worlds
from hippo_core.suites.draw import CONTEXT_LIMIT, suite_settings, worlds
from hippo_core.suites.folder import has_split
from hippo_core.suites.splits import SPLITS
from hippo_core.suites.types import Split, World

Overrides = Mapping[str, Any] | None  # overrides of the profile's settings


def dataset_folder(
    suite_name: str, profile: str, n: int, seed: int, context_limit: int = CONTEXT_LIMIT, overrides: Overrides = None
) -> Path:
    """Where a data set lies, whether it is there or not."""
    suite = get_suite(suite_name)
    limit = f"_c{context_limit}" if suite.uses_context_limit else ""
    suffix = f"_{card.digest(dict(overrides))[:8]}" if overrides else ""
    return home() / "data/generated" / suite.name / profile / f"{n}_{seed}{limit}{suffix}"


def write_dataset(
    suite_name: str,
    profile: str = "default",
    n: int = 50,
    seed: int = 1337,
    context_limit: int = CONTEXT_LIMIT,
    overrides: Overrides = None,
) -> Path:
    """The folder of a data set; it is built unless a current one is there. Several builders may run at once."""
    arguments = (suite_name, profile, n, seed, context_limit, dict(overrides or {}))
    settings = suite_settings(suite_name, profile, context_limit, overrides)
    folder = dataset_folder(*arguments)
    suite = get_suite(suite_name)
    source = card.source(suite, settings)
    if folder.is_dir():
        if card.is_current(folder, source):
            return folder
        remove_outdated(folder, source)
    try:
        with new_folder(folder) as building:
            counts = {}
            for split in stored_splits(suite_name):
                stream = worlds(suite_name, profile, n, seed, split, context_limit, overrides)
                counts[split] = write_worlds(building / split, stream, short=suite.folder is not None)
            card.write(building, arguments, settings, source, counts)
    except OSError:
        if not card.is_current(folder, source):  # another builder may have been quicker: then its folder, which holds the same, is there
            raise
    return folder


def stored_splits(suite_name: str) -> tuple[Split, ...]:
    """The splits that lie on disk; an own folder may have no val."""
    folder = get_suite(suite_name).folder
    return tuple(split for split in ("val", "test") if not folder or has_split(folder, split))


def remove_outdated(folder: Path, source: str) -> None:
    """Move an outdated data set away, then delete it; one that another builder has just renewed goes back. LabError for a folder with
    anything but the data set as it was built: the lab may not delete that."""
    try:
        card.verify(folder)
    except (LabError, OSError) as error:  # an OSError where another builder takes it away meanwhile
        current = False
        with suppress(LabError):
            current = card.is_current(folder, source)
        if current or not folder.is_dir():  # another builder was at work
            return
        raise LabError(f"{folder} is in the place of a data set and holds none as it was built: {error}") from None
    aside, lock = locked_folder(folder.parent, f".{folder.name}.old.")
    try:
        folder.rename(aside / "old")
        if card.is_current(aside / "old", source):
            (aside / "old").rename(folder)
    except FileNotFoundError:  # another builder took it away first
        pass
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove what killed builders left of data sets that they did not finish; those that are being built stay."""
    for parent, names, _ in os.walk(home() / "data/generated"):  # what others take away meanwhile is no error
        if hidden := {name for name in names if name.startswith(".")}:
            names[:] = [name for name in names if name not in hidden]
            remove_left(Path(parent), ".")


def load_dataset(
    suite_name: str,
    profile: str = "default",
    n: int = 50,
    seed: int = 1337,
    split: Split = "test",
    context_limit: int = CONTEXT_LIMIT,
    overrides: Mapping[str, Any] | None = None,
) -> list[World]:
    """The worlds of a split from disk, checked against their checksums; built first where they are not there."""
    if split == "train":
        raise LabError("train worlds are streamed, not kept on disk: use hippo_core.suites.draw.worlds(...); on disk: val, test")
    if split not in SPLITS:
        raise unknown("split", split, ("val", "test"))
    folder = write_dataset(suite_name, profile, n, seed, context_limit, overrides)
    card.verify(folder)
    if not (folder / split).is_dir():
        raise LabError(f"{suite_name} has no {split} split; put facts.jsonl and items.jsonl into its subfolder {split}")
    return read_worlds(folder / split)
