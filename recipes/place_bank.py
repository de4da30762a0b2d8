"""The bank of place statements: data/places, statements of links between places, of walks, and questions for routes, written by hand.

Two settings are kept for the test and one for validation; of the others, and of walks and questions, each wording belongs to one split, by
a hash of its words. These files are frozen: `FROZEN` is their hash, so that nobody fits the test split to a memory without a trace.
Those of `training/` are for training alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from hippo_core.errors import LabError
from hippo_core.files import parse_yaml, root
from hippo_core.models.spec import read_mapping
from hippo_core.suites.splits import digest_of, worded
from hippo_core.suites.types import Split

FOLDER = "data/places"
FROZEN = "cf90fd937e1ee0e183485d5df97082814fecc68963f2a8ed2e12261feedecd22"
FrameLabel = Literal["link", "forward", "closed", "opened", "doubt", "none"]
WALKS = ("start", "arrive", "arrive_unnamed", "arrive_by", "blocked", "back", "see")


@dataclass(frozen=True, slots=True)
class PlaceFrame:
    """A statement of {a} and {b}. `label`: link, either way; forward, from a to b alone; closed, no more; opened, again; doubt, supposed;
    none, nothing of a link. A {direction} leads from a to b."""

    text: str
    label: FrameLabel
    setting: str  # "": any


def folder() -> Path:
    """Where the bank lies."""
    return root() / FOLDER


def files() -> list[Path]:
    """The files that have splits."""
    return sorted((*folder().glob("bank/*.yaml"), *folder().glob("*.yaml")))


def digest() -> str:
    """The SHA-256 of all that training may use."""
    return digest_of(folder(), sorted(folder().glob("**/*.yaml")))


@cache
def _further() -> Mapping[str, list[Any]]:
    """What is for training alone, by kind."""
    by_kind: dict[str, list[Any]] = {}
    for path in sorted(folder().glob("training/*.yaml")):
        for kind, texts in read_mapping(path).items():
            by_kind.setdefault(kind, []).extend(texts)
    return by_kind


@cache
def _settings() -> Mapping[str, Mapping[str, Any]]:
    """The content of each setting; LabError where the files are not the frozen ones."""
    if digest_of(folder(), files()) != FROZEN:
        raise LabError(f"{folder()}: expected the statements that were frozen, with SHA-256 {FROZEN[:12]}...; restore the folder")
    return {path.stem: read_mapping(path) for path in files() if path.parent.name == "bank"}


def settings_of(split: Split) -> tuple[str, ...]:
    """The settings that belong to a split: what a house, a ship, a website has."""
    return worded([*_settings()], split)


@cache
def frames(split: Split) -> tuple[PlaceFrame, ...]:
    """The statements in the settings of training that belong to a split."""
    chosen = []
    for label in get_args(FrameLabel):
        for setting in settings_of("train"):
            own = {frame.text: frame for frame in _frames(setting) if frame.label == label}
            chosen += [own[text] for text in worded([*own], split)]
    if split == "train":
        chosen += [PlaceFrame(entry["text"], entry["says"], "") for entry in _further().get("frames", ())]
    return tuple(chosen)


@cache
def unseen(split: Split) -> tuple[PlaceFrame, ...]:
    """All statements in the settings of a split."""
    return tuple(frame for setting in settings_of(split) for frame in _frames(setting))


def _frames(setting: str) -> list[PlaceFrame]:
    return [PlaceFrame(entry["text"], entry["says"], setting) for entry in _settings()[setting]["frames"]]


def vocabulary(kind: str) -> tuple[Any, ...]:
    """Words for training alone: `domains` of names of places, `means` of getting from one to another, `things` that are neither."""
    return tuple(_further()[kind])


def places(setting: str) -> tuple[str, ...]:
    """What places are called in a setting, with an article where they have one."""
    return tuple(_settings()[setting]["places"])


def means(setting: str) -> tuple[str, ...]:
    """By what one gets from one place to another in a setting."""
    return tuple(_settings()[setting]["means"])


@cache
def walks(kind: str, split: Split) -> tuple[str, ...]:
    """The sentences on a walk, of one kind of `WALKS`, that belong to a split."""
    _settings()
    return (*worded(read_mapping(folder() / "walks.yaml")[kind], split), *(_further().get(kind, ()) if split == "train" else ()))


@cache
def markers(split: Split) -> tuple[tuple[str, str], ...]:
    """How a first and a later step are numbered, if at all."""
    return _pairs("markers", split)


@cache
def openings(split: Split) -> tuple[tuple[str, str], ...]:
    """Forms for the open sides of a place: {open} alone, and with its {walls}."""
    return _pairs("open", split)


def _pairs(kind: str, split: Split) -> tuple[tuple[str, str], ...]:
    _settings()
    pairs = {"\n".join(pair): (pair[0], pair[1]) for pair in read_mapping(folder() / "walks.yaml")[kind]}
    further = _further().get(kind, ()) if split == "train" else ()
    return (*(pairs[key] for key in worded([*pairs], split)), *((first, later) for first, later in further))


@cache
def questions(split: Split) -> tuple[tuple[str, str], ...]:
    """The questions that belong to a split, and what each asks for."""
    _settings()
    asked: list[dict[str, str]] = parse_yaml((folder() / "questions.yaml").read_text("utf-8"))  # type: ignore[assignment]
    kinds = dict.fromkeys(question["asks"] for question in asked)
    chosen = {text for kind in kinds for text in worded([question["text"] for question in asked if question["asks"] == kind], split)}
    further = _further().get("questions", ()) if split == "train" else ()
    return tuple(
        (question["text"], question["asks"]) for question in (*asked, *further) if question in further or question["text"] in chosen
    )
