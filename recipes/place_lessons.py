"""Lessons for the reader of place statements: frames of the bank of places and of data/reading, filled and put together, with what each
tells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from hippo_core.files import home
from hippo_core.methods.spatial.encoder import ASKS, ROLES, TELLS, TURNS
from hippo_core.models.spec import read_mapping
from hippo_core.spoken import MOVES, OPPOSITE
from hippo_core.suites.types import Split
from recipes import place_bank as bank

READING = "data/reading"
SIDES = ("left", "right", "above", "below", "behind it", "ahead")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
PEOPLE = ("Anna", "Mr Brown", "Paul", "Widow Gray", "Tilda", "Uncle Sam", "I", "we", "the guide", "Omar", "Mrs Li", "Jonas")
MARKED = 0.3  # of texts in which what is no place is marked as one, as a reader may do that took it for one: nothing leads there
SHARES = {"link": 0.31, "forward": 0.14, "closed": 0.13, "opened": 0.11, "doubt": 0.1, "none": 0.21}  # of statements, by what they say
KINDS: Mapping[str, bank.FrameLabel] = {"links": "link", "closed": "closed", "none": "none"}  # of the frames of data/reading
SLOT = re.compile(r"\{(\w+)\}")


@dataclass
class Text:
    """A composed text, with its labels. `spans`: (start, end, place) of each name of a place; `other_spans`: of each name of
    something else; `mistaken`: whether these are marked as places; `turns`: (start, label) of each direction; `says`: of two places what
    is told, the first as it is told; `stands`: of two places where one stands."""

    text: str = ""
    spans: list[tuple[int, int, str]] = field(default_factory=list)
    other_spans: list[tuple[int, int, str]] = field(default_factory=list)
    mistaken: bool = False
    turns: list[tuple[int, int]] = field(default_factory=list)
    roles: dict[str, int] = field(default_factory=dict)
    says: dict[tuple[str, str], str] = field(default_factory=dict)
    stands: dict[frozenset[str], str] = field(default_factory=dict)
    tells: int = TELLS.index("neither")
    asks: int = ASKS.index("none")

    def add(self, frame: str, slots: Mapping[str, "Filling"]) -> None:
        """Put a frame behind what there is."""
        end = 0
        for hit in SLOT.finditer(frame):
            self.text += frame[end : hit.start()]
            end = hit.end()
            for piece, place, turn in slots[hit[1]].pieces:
                piece = piece[:1].upper() + piece[1:] if not self.text or self.text[-2:] in (". ", "! ", "? ") else piece
                start = len(self.text)
                self.text += piece
                skipped = 4 if piece[:4].lower() == "the " else 0
                if place:
                    self.spans.append((start + skipped, len(self.text), place))
                elif hit[1] in ("means", "thing"):
                    self.other_spans.append((start + skipped, len(self.text), piece))
                if turn >= 0:
                    self.turns.append((start, turn))
        self.text += frame[end:]

    @property
    def marks(self) -> list[tuple[int, int, str]]:
        """The spans that are marked as places."""
        return sorted((*self.spans, *self.other_spans)) if self.mistaken else self.spans

    @property
    def places(self) -> list[str]:
        """What is marked as places, in order of appearance."""
        return list(dict.fromkeys(place for *_, place in self.marks))


@dataclass(frozen=True)
class Filling:
    """What stands in a slot: pieces of text, each with the place that it names ("": none) and the label of its direction (-1: none)."""

    pieces: tuple[tuple[str, str, int], ...]


def word(text: str) -> Filling:
    """A slot that names neither a place nor a direction."""
    return Filling(((text, "", -1),))


def place(name: str) -> Filling:
    """A slot that names a place."""
    return Filling(((name, name, -1),))


def turn(direction: str, label: str) -> Filling:
    """A slot that names a direction."""
    return Filling(((direction, "", TURNS.index(label)),))


def listed(directions: Sequence[str], label: str) -> Filling:
    """Directions as they are listed: north, east and south."""
    pieces: list[tuple[str, str, int]] = []
    for number, direction in enumerate(directions):
        pieces += [(", " if number < len(directions) - 1 else " and ", "", -1)] * (number > 0) + [(direction, "", TURNS.index(label))]
    return Filling(tuple(pieces))


@cache
def reading_frames() -> tuple[bank.PlaceFrame, ...]:
    """The frames of data/reading, with the slots of the bank."""
    frames = []
    for name in ("frames", "voices"):
        for outer, inner in read_mapping(home() / READING / f"{name}.yaml").items():
            for group, own in inner.items():
                kind = KINDS.get(group if name == "voices" else outer)
                frames += [bank.PlaceFrame(_slots(frame), kind, "") for frame in own if kind]
    return tuple(frames)


@cache
def domains() -> tuple[tuple[str, ...], ...]:
    """The names of places for training, by domain, as a text has them: with an article, or without one in capitals or small letters."""
    groups = []
    for domain, own in (*read_mapping(home() / READING / "names.yaml").items(), *(("", own) for own in bank.vocabulary("domains"))):
        if domain != "people":
            capitals = [" ".join(word if word == "of" else word[0].upper() + word[1:] for word in name.split()) for name in own["the"]]
            names = [f"the {name}" for name in own["the"]]
            groups += [(*names, *own["bare"]), (*names, *own["bare"]), (*capitals, *own["bare"]), (*own["the"], *own["bare"])]
    return tuple(groups)


def _slots(frame: str) -> str:
    return frame.replace("{d}", "{direction}").replace("{o}", "{opposite}").replace("{p}", "{who}")


@cache
def reading_questions() -> tuple[tuple[str, str], ...]:
    """The questions of data/reading, and whether they ask for a way."""
    of = read_mapping(home() / READING / "questions.yaml")
    asked = [(_slots(text), "way" if kind == "way" else "none") for kind, own in of.items() for texts in own.values() for text in texts]
    for voice in read_mapping(home() / READING / "voices.yaml").values():
        asked += [(_slots(text), "way" if kind == "way" else "none") for kind in ("way", "other") for text in voice.get(kind, ())]
    return tuple(asked)


@cache
def _frames(split: Split, unseen: bool) -> Mapping[str, tuple[bank.PlaceFrame, ...]]:
    chosen = bank.unseen(split) if unseen else bank.frames(split)
    chosen = (*chosen, *reading_frames()) if split == "train" and not unseen else chosen
    return {says: tuple(frame for frame in chosen if frame.label == says) for says in SHARES}


@dataclass(frozen=True)
class PlaceLessons:
    """Texts of a split. `unseen`: statements in the settings of the split; else those of its wordings in the settings of training."""

    split: Split
    seed: int
    unseen: bool = False

    def __call__(self, number: int) -> Text:
        """The text of this number."""
        random = Random(f"{self.split} {self.unseen} {self.seed} {number}")
        text = random.choices((self._statements, self._step, self._question), (0.55, 0.3, 0.15))[0](random)
        text.mistaken = self.split == "train" and random.random() < MARKED
        return text

    def every(self, times: int) -> list[Text]:
        """Each statement of the split, so many times with other places."""
        texts = []
        for says, frames in _frames(self.split, self.unseen).items():
            for number, frame in enumerate(frames * times):
                random = Random(f"every {self.split} {self.unseen} {self.seed} {says} {number}")
                text = Text(tells=TELLS.index("places"))
                self._fill(random, text, frame, self._names(random, 2))
                texts.append(text)
        return texts

    def _statements(self, random: Random) -> Text:
        """One statement, or two that may share a place."""
        text = Text(tells=TELLS.index("places"))
        if random.random() < 0.15:
            self._mark(random, text, random.random() < 0.5)
        names = self._names(random, 4)
        self._add_statement(random, text, names[:2])
        if random.random() < 0.2:
            text.text += " "
            self._add_statement(random, text, names[2:] if random.random() < 0.3 else [random.choice(names[:2]), names[2]])
        return text

    def _names(self, random: Random, count: int) -> list[str]:
        if self.split == "train" and random.random() < 0.7:
            return random.sample(random.choice(domains()), count)
        setting = random.choice(bank.settings_of(self.split if self.unseen else "train"))
        return random.sample(bank.places(setting), count)

    def _add_statement(self, random: Random, text: Text, names: Sequence[str]) -> None:
        by_kind = _frames(self.split, self.unseen)
        kinds = [says for says in SHARES if by_kind[says]]
        self._fill(random, text, random.choice(by_kind[random.choices(kinds, [SHARES[says] for says in kinds])[0]]), names)

    def _fill(self, random: Random, text: Text, frame: bank.PlaceFrame, names: Sequence[str]) -> None:
        a, b = random.sample(names, 2)
        direction, label = random.choice([*MOVES]), "gone" if frame.label in ("link", "forward", "opened") else "other"
        setting = frame.setting or random.choice(bank.settings_of("train"))
        further = bank.vocabulary("means") if self.split == "train" else ()
        slots = {
            "a": place(a),
            "b": place(b),
            "direction": turn(direction, label),
            "opposite": turn(OPPOSITE[direction], label),
            "side": word(random.choice(SIDES)),
            "means": word(random.choice((*bank.means(setting), *further))),
            "thing": word(random.choice(bank.vocabulary("things"))),
            "minutes": word(str(random.randrange(2, 40))),
            "who": word(random.choice(PEOPLE)),
        }
        text.add(frame.text, slots)
        if frame.label != "none":
            text.says[a, b] = frame.label
        if "{direction}" in frame.text or "{opposite}" in frame.text:
            first = min((frame.text.find(slot) % 10**6, end) for slot, end in (("{direction}", a), ("{opposite}", b)))[1]
            text.stands[frozenset((a, b))] = first
        for name in (a, b):
            text.roles.setdefault(name, ROLES.index("other"))

    def _step(self, random: Random) -> Text:
        """A step of a walk: how it is numbered, where it leads, and what is open or seen there."""
        text = Text(tells=TELLS.index("walk"))
        here, other = self._names(random, 2)
        kind = random.choices(bank.WALKS, (1, 5, 1, 1, 1.5, 1, 1))[0]
        if random.random() < 0.75:
            self._mark(random, text, kind == "start")
        frame = random.choice(bank.walks(kind, self.split))
        lower = text.text and text.text.rstrip()[-1:] not in (".", "!", "?") and random.random() < 0.6
        directions = random.sample([*MOVES], 4)
        role = {"back": "back", "see": "seen", "blocked": "stays"}.get(kind, "here")
        label = {"see": "seen", "blocked": "fails"}.get(kind, "gone")
        slots = {"place": place(here), "direction": turn(directions[0], label), "who": word(random.choice(PEOPLE))}
        text.add(frame[:1].lower() + frame[1:] if lower and not frame.startswith("I") else frame, slots)
        text.roles[here] = ROLES.index(role)
        if random.random() < 0.6:
            count = random.randrange(1, 5)
            alone, both = random.choice(bank.openings(self.split))
            order = sorted(directions, key=[*MOVES].index) if random.random() < 0.5 else random.sample(directions, 4)
            slots_of_sides = {"open": listed(order[:count], "open"), "walls": listed(order[count:], "walled")}
            text.text += " "
            text.add(both if count < 4 else alone, slots_of_sides)
        if kind != "see" and random.random() < 0.3:
            text.text += " "
            seen = {"place": place(other), "direction": turn(directions[1], "seen"), "who": slots["who"]}
            text.add(random.choice(bank.walks("see", self.split)), seen)
            text.roles[other] = ROLES.index("seen")
        return text

    def _question(self, random: Random) -> Text:
        """A question, or a statement of something else."""
        asked = bank.questions(self.split)
        asked = (*asked, *reading_questions()) if self.split == "train" else asked
        kinds = list(dict.fromkeys(kind for _, kind in asked))
        kind = random.choice(kinds)
        frame = random.choice([text for text, own in asked if own == kind])
        a, b, c = self._names(random, 3)
        text = Text(asks=ASKS.index(kind))
        direction = random.choice([*MOVES])
        slots = {
            "a": place(a),
            "b": place(b),
            "c": place(c),
            "direction": turn(direction, "other"),
            "who": word(random.choice(PEOPLE)),
            "thing": word(random.choice(bank.vocabulary("things"))),
        }
        text.add(frame, slots)
        if "{a}" in frame and "{b}" in frame and kind != "nearer":
            text.stands[frozenset((a, b))] = a
        if kind == "nearer":
            text.stands |= {frozenset((a, other)): a for other in (b, c)}
        return text

    def _mark(self, random: Random, text: Text, is_first: bool) -> None:
        """Number a step, or say that it is one."""
        marker = random.choice(bank.markers(self.split))[not is_first]
        text.add(marker, {"step": word(str(random.randrange(1, 40))), "nth": word(random.choice(ORDINALS))})
