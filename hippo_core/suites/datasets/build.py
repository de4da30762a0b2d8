"""Data sets: worlds drawn from (suite, profile, n, seed, split, context limit), written to disk with a card and checksums, read back.

    data/generated/<suite>/<profile>/<n>_<seed>[_c<context limit>][_<hash of overrides>]/
        {val,test}/{facts,items}.jsonl   one fact, one item a line, world after world
        dataset_card.json   checksums.json

A data set appears whole or not at all. It is built when it is asked for and not there, or was built from other code, settings or
material; files that do not match their checksums are an error.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from hippo_core.files import LabError, held_folder, home, new_folder, remove_left, unknown
from hippo_core.suites import get_suite, reworded, settings_for, unanswerable
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.jsonl import read_worlds, write_worlds
from hippo_core.suites.folder import has_split
from hippo_core.suites.splits import SPLITS
from hippo_core.suites.types import Settings, Split, World, WorldSpec

CONTEXT_LIMIT = 512  # of hippo-tiny


def suite_settings(suite_name: str, profile: str, context_limit: int, overrides: Mapping[str, Any] | None) -> Settings:
    """The settings of a suite, with the context limit where it matters."""
    limit = {"context_limit": context_limit} if get_suite(suite_name).uses_context_limit else {}
    return settings_for(suite_name, profile, {**limit, **(overrides or {})})


def worlds(
    suite_name: str,
    profile: str = "default",
    n: int | None = None,
    seed: int = 1337,
    split: Split = "test",
    context_limit: int = CONTEXT_LIMIT,
    overrides: Mapping[str, Any] | None = None,
) -> Iterator[World]:
    """The worlds of a split one by one, the last one cut so that there are n items in all (None: without end, or all there are).

    The same arguments give the same worlds, and a larger n the same first ones (but for babi's public stories, where n decides how many
    questions one is asked). A folder of the user's own may end before n.
    """
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if n is not None and n < 1:
        raise LabError(f"n is the number of items of a split, expected at least 1, got {n}")
    stream = drawn_worlds(suite_name, profile, n, seed, split, suite_settings(suite_name, profile, context_limit, overrides))
    return stream if n is None else cut(stream, n)


def drawn_worlds(suite_name: str, profile: str, n: int | None, seed: int, split: Split, settings: Settings) -> Iterator[World]:
    """Worlds with at least n items, as long as the suite has any."""
    suite = get_suite(suite_name)
    if suite.stream:
        stream = suite.stream(settings, split, seed, n)
        yield from (unanswerable.unanswerable_world(suite, world) for world in stream) if settings.unanswerable else stream
        return
    if not suite.make_world:
        raise LabError(f"suite {suite_name} neither draws worlds (make_world) nor has any (stream); give it one of both")
    told = reworded.drawn_as(profile)
    drawn = unanswerable.drawn_as(told) if settings.unanswerable else told
    for index in count():
        world = suite.make_world(Random(f"{suite_name}/{drawn}/{seed}/{split}/{index}"), settings, WorldSpec(split, seed, index))
        yield unanswerable.unanswerable_world(suite, world) if settings.unanswerable else world


def cut(stream: Iterator[World], n: int) -> Iterator[World]:
    """Worlds up to n items in all."""
    remaining = n
    for world in stream:
        yield world if len(world.items) <= remaining else replace(world, items=world.items[:remaining])
        remaining -= len(world.items)
        if remaining <= 0:
            return


def dataset_folder(
    suite_name: str,
    profile: str,
    n: int,
    seed: int,
    context_limit: int = CONTEXT_LIMIT,
    overrides: Mapping[str, Any] | None = None,
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
    overrides: Mapping[str, Any] | None = None,
) -> Path:
    """The folder of a data set; it is built unless a current one is there. Builders that run at the same time do not clash."""
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
    """Take an outdated data set away at once, then delete it; one that another builder has just renewed is put back. LabError for a folder
    that holds anything but the data set as it was built, which is not the lab's to delete."""
    try:
        card.verify(folder)
    except (LabError, OSError) as error:  # an OSError where another builder takes it away meanwhile
        current = False
        with suppress(LabError):
            current = card.is_current(folder, source)
        if current or not folder.is_dir():  # another builder was at work
            return
        raise LabError(f"{folder} is in the place of a data set and holds none as it was built: {error}") from None
    aside, hold = held_folder(folder.parent, f".{folder.name}.old.")
    try:
        folder.rename(aside / "old")
        if card.is_current(aside / "old", source):
            (aside / "old").rename(folder)
    except FileNotFoundError:  # another builder took it away first
        pass
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(hold)


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
        raise LabError("train worlds are streamed, not kept on disk: use hippo_core.suites.datasets.build.worlds(...); on disk: val, test")
    if split not in SPLITS:
        raise unknown("split", split, ("val", "test"))
    folder = write_dataset(suite_name, profile, n, seed, context_limit, overrides)
    card.verify(folder)
    if not (folder / split).is_dir():
        raise LabError(f"{suite_name} has no {split} split; put facts.jsonl and items.jsonl into its subfolder {split}")
    return read_worlds(folder / split)
