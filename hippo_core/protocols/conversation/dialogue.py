"""A dialogue and the questions about it: what a file of dialogues holds, and how it is checked.

The names in a file are those of the specification (`role`, `content`, `recallQuestions`, `expectedAnswer`, ...) or the fields' own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.located import Located, read_located
from hippo_core.text import WORD, folded

KeyType = Literal["identity", "preference", "fact", "instruction"]
Salience = Literal["high", "medium", "low"]
Position = Literal["early", "middle", "recent"]
KEY_TYPES, SALIENCES, POSITIONS = map(get_args, (KeyType, Salience, Position))
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
STRICT = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _named(*names: str, **settings: Any) -> Any:
    return Field(validation_alias=AliasChoices(*names), **settings)


class Turn(BaseModel):
    """What one speaker says at once.

    Args:
        id: the turn's own within its dialogue; its number where a file leaves it out.
        session, date: the occasion, where there are several.
        key: what kind of information it brings; None for a turn that brings none.
        salience: how much its words stress that; category: what it is about.
        corrects: ids of earlier turns that it makes out of date.
    """

    model_config = STRICT

    speaker: Text = _named("speaker", "role")
    text: Text = _named("text", "content")
    id: str = ""
    session: str = ""
    date: str = ""
    key: KeyType | None = _named("key", "keyInfoType", default=None)
    salience: Salience | None = _named("salience", "salienceLevel", default=None)
    category: str = _named("category", "semanticCategory", default="")
    corrects: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_metadata(cls, values: Any) -> Any:
        """The specification keeps what is known of a turn in an object of its own, and says beside it whether there is anything."""
        if not (isinstance(values, dict) and isinstance(values.get("metadata"), dict)):
            return values
        known = {name: value for name, value in values["metadata"].items() if name != "containsKeyInfo"}
        return {**{name: value for name, value in values.items() if name != "metadata"}, **known}

    @property
    def line(self) -> str:
        """The turn as it stands in a prompt."""
        return f"{self.speaker}: {self.text}"


class DialogueQuestion(BaseModel):
    """A question about a dialogue, asked after its end.

    Args:
        answer: the words that are expected; accepted: other spellings of them.
        entities: names and things that a full answer names.
        position: where in the dialogue the answer is; salience: how much it was stressed there.
        kind: what kind of question it is.
        evidence: ids of the turns that state the answer; refuted: what an earlier turn stated and a later one corrected.
        answerable: False where "unknown" is right.
    """

    model_config = STRICT

    question: Text
    answer: str = _named("answer", "expectedAnswer")
    id: str = ""
    accepted: tuple[str, ...] = ()
    entities: tuple[str, ...] = _named("entities", "expectedEntities", default=())
    position: Position | None = _named("position", "infoLocation", default=None)
    salience: Salience | None = _named("salience", "salienceLevel", default=None)
    kind: str = ""
    evidence: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    answerable: bool = True


class Dialogue(BaseModel):
    """Turns in order, and the questions about them. Turns and questions without an id get their number, from 0."""

    model_config = STRICT

    id: Text
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    questions: tuple[DialogueQuestion, ...] = _named("questions", "recallQuestions", default=())
    category: str = ""

    @model_validator(mode="before")
    @classmethod
    def _numbered(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: _with_ids(value) if isinstance(value, list) else value for name, value in values.items()}

    def indices(self, ids: Iterable[str]) -> list[int]:
        """The numbers of the turns with these ids, from 0; ids of no turn are left out."""
        where = {turn.id: number for number, turn in enumerate(self.turns)}
        return [where[turn_id] for turn_id in ids if turn_id in where]


def _with_ids(parts: list[Any]) -> list[Any]:
    return [{"id": str(number), **part} if isinstance(part, dict) else part for number, part in enumerate(parts)]


def read(path: str | Path) -> tuple[Dialogue, ...]:
    """The dialogues of a file (.json: one or a list of them; .jsonl: one a line), or of all such files of a folder, by their names.

    Raises:
        LabError: with file and line: no dialogue, a turn without speaker, two with the same id, a question without an answer.
    """
    known: dict[str, tuple[Dialogue, str]] = {}
    for located in read_located(Path(path)):
        dialogue = located.validated(Dialogue)
        check(dialogue, located)
        if dialogue.id in known:
            raise LabError(
                f"{located.location('id')}: the id {dialogue.id!r} is that of a dialogue in {known[dialogue.id][1]}; give it one of its own"
            )
        known[dialogue.id] = dialogue, located.location("id")
    return tuple(dialogue for dialogue, _ in known.values())


def check(dialogue: Dialogue, where: Located | str = "") -> None:
    """LabError where ids overlap, evidence is no turn, or an answer is missing."""

    def fail(path: Sequence[str | int], message: str) -> LabError:
        location = where.location(*path) if isinstance(where, Located) else f"{where}dialogue {dialogue.id!r}"
        return LabError(f"{location}: {message}")

    for name, parts in (("turns", dialogue.turns), ("questions", dialogue.questions)):
        counts = Counter(part.id for part in parts)
        for number, part in enumerate(parts):
            if counts[part.id] > 1:
                raise fail((name, number), f"two {name} of dialogue {dialogue.id!r} have the id {part.id!r}; each needs its own")
    ids = {turn.id for turn in dialogue.turns}
    for number, question in enumerate(dialogue.questions):
        path = ("questions", number)
        if wrong := [turn_id for turn_id in question.evidence if turn_id not in ids]:
            raise fail(path, f"evidence {wrong[0]!r} is the id of no turn of dialogue {dialogue.id!r}")
        if question.answerable and not question.answer.strip():
            raise fail(path, "an answer is expected, got none; of a question without one say answerable: false")


def is_verbatim(dialogue: Dialogue, question: DialogueQuestion) -> bool:
    """Whether an accepted answer occurs in a turn of the dialogue, word for word."""
    text = "\n".join(turn.text for turn in dialogue.turns)
    return any(contains_words(text, answer) for answer in (question.answer, *question.accepted))


def reworded(dialogues: Iterable[Dialogue]) -> str:
    """A sentence on answers that occur in no turn, and on what scores them; "" where there are none."""
    asked = [(dialogue, question) for dialogue in dialogues for question in dialogue.questions if question.answerable]
    count = sum(not is_verbatim(*pair) for pair in asked)
    words = (
        f"{count} of {len(asked)} answers occur in no turn word for word; read overlap, entity recall and the judge, not the exact match"
    )
    return words if count else ""


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, folded(phrase).split()))
    return re.compile(f"(?=({words}))")


@lru_cache(maxsize=256)
def _inside(text: str) -> tuple[str, frozenset[int]]:
    """A text for comparison, and the offsets in it that are inside a word, not beside an apostrophe ("Lea" occurs in "Lea's")."""
    folded_text = folded(text)
    offsets = (offset for word in WORD.finditer(folded_text) for offset in range(word.start() + 1, word.end()))
    return folded_text, frozenset(offset for offset in offsets if "'" not in folded_text[offset - 1 : offset + 1])


def contains_words(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words, in any case: "US" is not in "bus", nor 5 in 1.5, and an empty phrase in no text."""
    if not phrase.strip():
        return False
    folded_text, inside = _inside(text)
    return any(not {hit.start(1), hit.end(1)} & inside for hit in _pattern(phrase).finditer(folded_text))
