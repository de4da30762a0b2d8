"""The worlds of a suite, drawn one by one. Nothing is written to disk; only the suite's own material is read."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.suites import get_suite, reworded, settings_for, unanswerable
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
    """The worlds of a split one by one, with n items in all (None: all, or without end). A folder of the user's own may end before n."""
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
    base_profile = reworded.drawn_as(profile)
    drawn = unanswerable.drawn_as(base_profile) if settings.unanswerable else base_profile
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
