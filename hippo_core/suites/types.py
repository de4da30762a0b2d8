"""The nouns of every suite: a taught fact, a question about it, the small closed world they live in, and a suite."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Regime = Literal["immediate", "delayed", "after_sleep"]  # when a fact is asked about: in its window, in a new session, after a sleep
Split = Literal["train", "val", "test"]
ALL_TEST = "all is test"  # the split rule of a suite without other splits
RUNGS = ("exact", "partial", "paraphrase", "noisy")


@dataclass(frozen=True, slots=True)
class Fact:
    """A taught statement.

    `slots` maps a role (who, what, where, when, ...) to the words that stand for it in `text`: for checks, lessons and the altered store;
    no method gets them. `time` is the order within the world. `teller` is who states it, where the suite knows; `confidence` the teller's
    stated confidence, from 0 to 1, None without one. `context_key` is the occasion (session, place), `provenance` where the fact came from;
    neither gives away an item's id, nor whether the fact is true. `asked` is a hidden label for judging a write gate: no method and no gate
    may read it.
    """

    id: str
    world: str
    text: str
    slots: dict[str, str]
    time: int
    schema_fit: bool = True
    reward: bool = False
    pin: bool = False
    context_key: str = ""
    provenance: str = ""
    asked: bool = False
    confidence: float | None = None
    teller: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with one right answer in its world.

    `answers[0]` is the gold answer, further ones are accepted spellings of it. `cue` holds the slots that the question names, in
    the words of the fact. `window` are the ids of the facts that stand before the question in the immediate regime, `taught` the
    ids of all facts taught earlier (it contains the window), both in order of telling. `distance` counts the facts in the window
    after the last gold one. `chance` is the accuracy of a guess among the answers that the world makes plausible. `slices` names
    groups to report apart (`new_name`, `new_synonym`, `new_template`). `refuted` are answers that were stated and are wrong. `retold`:
    ids of facts that repeat a gold one, each with the id of that; either is as good as the other. `truth` is for the suite's scorer alone,
    where the facts do not say it.
    """

    id: str
    world: str
    question: str
    answers: tuple[str, ...]
    gold_facts: tuple[str, ...]
    kind: str
    rung: str = "exact"
    hops: int = 1
    distance: int = 0
    chance: float = 0.0
    cue: dict[str, str] = field(default_factory=dict)
    window: tuple[str, ...] = ()
    taught: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    retold: dict[str, str] = field(default_factory=dict)
    truth: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """A small closed episode: facts in order, and the questions about them."""

    id: str
    facts: tuple[Fact, ...]
    items: tuple[Item, ...]


def after_all(facts: Sequence[Fact], gold: Sequence[int]) -> dict[str, Any]:
    """The fields of an item that is asked after all of these facts; `gold`: the positions of its gold ones."""
    ids = tuple(fact.id for fact in facts)
    return {"gold_facts": tuple(ids[index] for index in gold), "distance": len(ids) - 1 - max(gold), "window": ids, "taught": ids}


class Settings(BaseModel):
    """The settings of every suite; a suite adds its own. Unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_facts: int = 8  # facts in a world
    n_items: int = 5  # questions about a world
    n_competitors: int = 3  # facts of the world that share a slot with a question's cue, at least
    unanswerable: bool = False  # whether deciding facts are left out, so that "unknown" is right (unanswerable.py)


class ReadSettings(Settings):
    """Settings of a suite whose worlds are read: files say how many facts and questions there are."""

    n_facts: Literal[0] = 0
    n_items: Literal[0] = 0
    n_competitors: Literal[0] = 0


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """Which world of a data set: the split, the seed of the set, its number. Its id is made of split and number."""

    split: Split
    seed: int
    index: int

    @property
    def id(self) -> str:
        return f"{self.split}-{self.index:05d}"

    def fact(self, number: int, text: str, slots: dict[str, str], **about: Any) -> Fact:
        """Fact number `number` of the world, told at that time."""
        values: dict[str, Any] = {"provenance": "told"} | about
        return Fact(f"{self.id}.f{number}", self.id, text, slots, number, **values)

    def item(self, number: int, question: str, answer: str, kind: str, **about) -> Item:
        """Item number `number` of the world."""
        return Item(f"{self.id}.q{number}", self.id, question, (answer,), kind=kind, **about)


@dataclass(frozen=True, slots=True)
class PathScore:
    """How a spoken path did on the true map: `success` 0 or 1; `suboptimality` = steps / shortest, NaN without success."""

    success: float
    suboptimality: float


Hide = Callable[[Fact], Fact | None]  # a fact without what must not be known; None: it is left out


@dataclass(frozen=True)
class Suite:
    """One suite. `make_world(random, settings, spec)` draws a world; all its randomness comes from `random`.

    Of material that can run out (public files, a folder of the user's own), `stream(settings, split, seed, n)` yields the worlds of a split
    in the order of this seed, with at least n items in all (n None: all items). It raises LabError where there are fewer, or ends early
    where that is no mistake. A suite has `make_world` or `stream`. `measures` are functions of a world, an item and a prediction, by the
    name of the column that each fills; the first of them judges the suite instead of `primary`.
    `hide(world, item, number)` leaves out the facts that decide the item of this number; `is_answerable(facts, item)` says whether facts
    are enough for the answer. A suite without them has no unanswerable worlds. `altered(world, others)` is the world with other facts under
    the same ids and the answers that follow (altering.py), where exchanging the answer's word is not enough; `others`: the other worlds.
    `files(settings)` are the names of the files of params/data.yaml that it reads.
    """

    name: str
    summary: str
    settings: type[Settings]
    make_world: Callable[[Random, Any, WorldSpec], World] | None = None
    primary: Literal["em_raw", "em_norm", "success"] = "em_norm"
    answer_budget: int = 8  # new tokens at most
    has_window: bool = True  # False: the facts were taught in another session and never stand in the prompt
    uses_context_limit: bool = False  # True: worlds are made longer than the model's context limit
    score_path: Callable[[World, Item, str], PathScore | None] | None = None  # for items whose answer is a path, else None
    localise: Callable[[World, Item, str], float] | None = None  # how far off an answered place is, in steps; NaN where none is asked for
    measures: Mapping[str, Callable[[World, Item, str], float]] = field(default_factory=dict)  # of a prediction, 0 to 1
    stream: Callable[[Any, Split, int, int | None], Iterator[World]] | None = None
    hide: Callable[[World, Item, int], Hide] | None = None
    is_answerable: Callable[[Sequence[Fact], Item], bool] | None = None
    altered: Callable[[World, Sequence[World]], World] | None = None
    files: Callable[[Any], Sequence[str]] = lambda settings: ()
    reads: Callable[[Any], Sequence[Path]] = lambda settings: ()  # files of the repository that it is made of
    split_rule: str = ""  # what is in which split, of suites that read files
    folder: Path | None = None  # of the user's own, where the suite is one
    module: str = ""  # that it comes from, set by `get_suite`
    order: int = 1000  # its rank in tables; equal ranks go by module
    asks: str = ""  # what its questions take, in the words of a figure
