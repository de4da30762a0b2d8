"""The bank of relations: data/relations, hundreds of relations of many fields of life, each in six wordings, written by hand.

A relation of `bank/` belongs to one split, and so does each wording of a relation, each frame and each name, by a hash of its words.
These files are frozen: `FROZEN` is their hash, so that nobody fits the test split to a memory without a trace. Those of `training/` are
for training alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from hippo_core.errors import LabError
from hippo_core.files import parse_yaml, root
from hippo_core.models.spec import read_mapping
from hippo_core.suites.splits import digest_of, part_of, worded
from hippo_core.suites.types import Split

Form = Literal["active", "passive", "cleft", "possessive", "clipped", "chatty"]
CLAUSES: tuple[Form, ...] = ("active", "passive", "cleft", "possessive")  # forms that are whole clauses, which others can quote
FOLDER = "data/relations"
FROZEN = "dd3c050a4b97d43ad3120dee9c048e4c4f7cb02aa36e548126a96c28ba623b26"
SPLIT_PARTS = ("bank", "frames")  # of the folder
FURTHER_PARTS = ("training", "training/frames")  # for training alone
FURTHER_NAMES = "training/names"  # which no world has: names of every form, and plain statements of a tie
PARTS = ("given", "surname")  # of the name of a person


@dataclass(frozen=True, slots=True, eq=False)
class BankRelation:
    """A relation of a head {h} and a tail {t}: a head has one tail at a time.

    Args:
        field: the field of life; head, tail: what they are; noun: what the tail is to the head ("family doctor").
        statements: by form; tail_phrases, head_phrases: noun phrases for either end, by the other; questions: for the tail.
        changes: that the tail was {t} and is {new} now; that it is {new} now.
    """

    name: str
    field: str
    head: str
    tail: str
    noun: str
    statements: Mapping[Form, str]
    tail_phrases: tuple[str, ...]
    head_phrases: tuple[str, ...]
    questions: tuple[str, ...]
    changes: tuple[str, str]

    def is_like(self, other: "BankRelation") -> bool:
        """Whether two relations between the same kinds share a word of their nouns: "parent" and "parent company"."""
        same_kinds = (self.head, self.tail) == (other.head, other.tail)
        return same_kinds and not {*self.noun.split()}.isdisjoint(other.noun.split())


def folder() -> Path:
    """Where the bank lies."""
    return root() / FOLDER


def digest(*parts: str) -> str:
    """The SHA-256 of the files of these parts of the folder, by name and content."""
    return digest_of(folder(), files(*parts))


def files(*parts: str) -> list[Path]:
    """The files of these parts of the folder."""
    return sorted(path for part in parts for path in (folder() / part).glob("*.yaml"))


@cache
def relations() -> tuple[BankRelation, ...]:
    """The relations that have splits; LabError where the files are not those that were frozen."""
    if digest(*SPLIT_PARTS) != FROZEN:
        raise LabError(f"{folder()}: expected the relations that were frozen, with SHA-256 {FROZEN[:12]}...; restore the folder")
    return _read("bank")


@cache
def further() -> tuple[BankRelation, ...]:
    """The relations that are for training alone."""
    return _read("training")


def _read(part: str) -> tuple[BankRelation, ...]:
    made = []
    for path in files(part):
        content = read_mapping(path)
        made += [_relation(path, content["field"], values) for values in content["relations"]]
    return tuple(made)


def _relation(path: Path, field: str, values: Mapping[str, Any]) -> BankRelation:
    try:
        texts: dict[str, Any] = {name: tuple(values[name]) for name in ("tail_phrases", "head_phrases", "questions", "changes")}
        ends: dict[str, Any] = {name: values[name] for name in ("name", "head", "tail", "noun")}
        return BankRelation(field=field, statements={form: values["statements"][form] for form in get_args(Form)}, **(ends | texts))
    except (KeyError, TypeError) as error:
        raise LabError(f"{path}: relation {values.get('name')!r} lacks {error}") from None


@cache
def _firsts() -> dict[str, str]:
    """For each relation the first one of its group of similar relations, by name."""
    firsts: dict[str, str] = {}
    for relation in relations():
        similar = {firsts[other.name] for other in relations() if other.name in firsts and relation.is_like(other)}
        first = min(similar, default=relation.name)
        firsts = {name: first if of in similar else of for name, of in firsts.items()} | {relation.name: first}
    return firsts


@cache
def relations_of(split: Split, split_alone: bool = False) -> tuple[BankRelation, ...]:
    """The relations of a split: of those that have one seven of ten are for training, one for validation, two for the test. Those that are
    like one another are in one split. `split_alone`: no further ones."""
    chosen = tuple(relation for relation in relations() if part_of(_firsts()[relation.name]) == split)
    return chosen if split_alone or split != "train" else (*chosen, *further())


@cache
def frames(name: str, kind: str, split: Split) -> tuple[str, ...]:
    """The frames of a file that are of a kind and belong to a split. The file has a list of frames that say their kind, as `certainty` or
    as `kind` ("": none does), or lists by kind. For training there are further ones."""
    chosen = worded(_frames(f"frames/{name}.yaml", kind), split)
    further = _frames(f"training/frames/{name}.yaml", kind) if split == "train" else ()
    return (*chosen, *further)


def _frames(path: str, kind: str) -> tuple[str, ...]:
    content: Any = parse_yaml((folder() / path).read_text("utf-8"))
    if isinstance(content, dict):
        content = [frame | {"kind": of} for of, some in content.items() for frame in some]
    return tuple(frame["text"] for frame in content if kind in ("", frame.get("certainty"), frame.get("kind")))


@cache
def names(kind: str, split: Split) -> tuple[str, ...]:
    """The names of a kind that belong to a split."""
    of = read_mapping(folder() / "frames/names.yaml")
    if kind in PARTS:
        of = of["person"]
    if kind not in of:
        raise LabError(f"{folder()}/frames/names.yaml has no names of kind {kind!r}")
    return tuple(name for name in of[kind] if (part_of(name) == "train") == (split == "train"))
