"""Lessons for the reader of statements: worlds of the bank of relations and of the suite `semantic`, with what each text says of its
names."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from hippo_core.methods.relational.encoder import HOPS, KINDS, ROLES, Marked, Marker
from hippo_core.models.spec import read_mapping
from hippo_core.suites.draw import worlds
from hippo_core.suites.relations import RelationsSettings, make_world
from hippo_core.suites.relations.bank import FURTHER_NAMES, BankRelation, files, folder, names
from hippo_core.suites.relations.draft import DraftEdge, DraftWords
from hippo_core.suites.types import Fact, Item, Split, World, WorldSpec

PATHS = 400  # of a question, at most
ASSERTED = ("plain", "update", "high", "middle", "low", "guess")


@cache
def further_names() -> Mapping[str, tuple[str, ...]]:
    """Names for training alone, by kind; also `common` nouns, and `statements`, `questions` and `corrections` of them."""
    return {of: tuple(texts) for path in files(FURTHER_NAMES) for of, texts in read_mapping(path).items()}


@cache
def kinds() -> tuple[str, ...]:
    """The kinds of entities that have names."""
    return tuple(kind for kind in read_mapping(folder() / "frames/names.yaml") if kind != "person")


@dataclass(frozen=True)
class Lesson:
    """A world to learn from. `statements`, `names`: pieces of each, and its names by number from 1 on; `questions`."""

    facts: tuple[Fact, ...]
    statements: tuple[Marked, ...]
    names: tuple[tuple[str, ...], ...]
    questions: tuple["Question", ...]


@dataclass(frozen=True)
class Question:
    """`text`, with the hop of each of its pieces (`tags`), and by hops; `paths`: of as many steps from its name, each step as (statement,
    start, end) with places of names; `right`: which of them say what is asked."""

    text: Marked
    tags: tuple[int, ...]
    hops: tuple[Marked, ...]
    item: Item
    paths: tuple[tuple[tuple[int, int, int], ...], ...]
    right: tuple[bool, ...]


def named(text: str, names: Sequence[str]) -> list[tuple[int, int, str]]:
    """Where a text names which of these: the longest first, at the beginning of a sentence with a capital too."""
    if not names:
        return []
    form = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    known = {name.casefold(): name for name in names}
    return [
        (match.start(), match.end(), known[match[0].casefold()]) for match in re.finditer(rf"(?<!\w)(?:{form})(?!\w)", text, re.IGNORECASE)
    ]


def lesson(world: World, marker: Marker, random: Random) -> Lesson:
    """What is to be learnt from a world."""
    names = sorted({fact.slots[slot] for fact in world.facts for slot in ("head", "tail", "old", "teller") if slot in fact.slots})
    spans = [named(fact.text, names) for fact in world.facts]
    names_of = [tuple(dict.fromkeys(name for *_, name in own)) for own in spans]
    at: dict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(names_of):
        for name in own:
            at[name].append(number)
    questions = []
    for item in world.items:
        paths = [path for path in walks(start_of(item), at, names_of) if len(path) == item.hops]
        right = [_right(path, item, world.facts, names_of) for path in paths]
        if not any(right):
            continue
        wrong = [number for number, is_right in enumerate(right) if not is_right]
        kept = sorted([*(n for n, is_right in enumerate(right) if is_right), *random.sample(wrong, min(PATHS, len(wrong)))])
        text, tags = asked_text(item, names, marker)
        questions.append(Question(text, tags, tuple(text.hops(tags)), item, tuple(paths[n] for n in kept), tuple(right[n] for n in kept)))
    marked = marker(
        [
            (fact.text, [(a, b, own.index(name) + 1) for a, b, name in span])
            for fact, span, own in zip(world.facts, spans, names_of, strict=True)
        ]
    )
    return Lesson(world.facts, tuple(marked), tuple(names_of), tuple(questions))


Asked = tuple[Marked, tuple[int, ...], int]  # a question, the hop of each piece, and 1 where it is about before, else 0


def parted(world: World, marker: Marker) -> tuple[Asked, ...]:
    """The questions of a world."""
    names = sorted({fact.slots[slot] for fact in world.facts for slot in ("head", "tail")})
    return tuple((*asked_text(item, names, marker), int(item.kind == "before")) for item in world.items)


def start_of(item: Item) -> str:
    """The name that a question begins at."""
    return item.cue.get("head") or item.cue["tail"]


def asked_text(item: Item, names: Sequence[str], marker: Marker) -> tuple[Marked, tuple[int, ...]]:
    """A question whose names are marked by number, its first one by 1, and the hop of each piece."""
    own = named(item.question, names)
    number_of = {name: number for number, name in enumerate(dict.fromkeys([start_of(item), *(name for *_, name in own)]), 1)}
    [text] = marker([(item.question, [(a, b, number_of[name]) for a, b, name in own])])
    return text, tags_of(text, item.truth["within"])


@dataclass(frozen=True)
class Raw:
    """A text whose names are not marked. `named`, `roles`: what of `NAMED` each piece is, and of `ROLES`, -100 where it is no name's;
    `kind`: how it is told, -100 for a question."""

    text: Marked
    named: tuple[int, ...]
    roles: tuple[int, ...]
    kind: int = -100


def unmarked(
    world: World, marker: Marker, random: Random, count: int, other_name: Callable[[Random], str], corrected: float = 0.0
) -> tuple[Raw, ...]:
    """Some texts of a world. A third of the names are exchanged for others, as any name may come; `corrected`: the share of the plain
    statements that are told as corrections."""
    names = sorted({fact.slots[slot] for fact in world.facts for slot in ("head", "tail", "old", "teller") if slot in fact.slots})
    other = {name: other_name(random) if random.random() < 1 / 3 else name for name in names}
    texts: list[tuple[str, Fact | None]] = [(fact.text, fact) for fact in world.facts]
    asked: list[tuple[str, Fact | None]] = [(item.question, None) for item in world.items]
    made = []
    for text, fact in (*random.sample(texts, min(len(texts), 2 * count)), *random.sample(asked, min(len(asked), count // 2))):
        for start, end, name in reversed(named(text, names)):
            new = other[name] if other[name] != name else text[start:end]
            text = text[:start] + (new if start else new[:1].upper() + new[1:]) + text[end:]
        first = {new: name for name, new in reversed(other.items())}
        spans = [(start + 4 * text[start:end].lower().startswith("the "), end, first[name]) for start, end, name in named(text, [*first])]
        roles = {} if fact is None else {name: role_of(name, fact) for *_, name in spans}
        status = None if fact is None else fact.slots["told"]
        if status == "plain" and random.random() < corrected:
            text, spans = _corrected(text, spans, random)
            status = "update"
        made.append(_raw(text, spans, roles, status, marker, random))
    return tuple(made)


Spans = Sequence[tuple[int, int, str]]


def _corrected(text: str, spans: Spans, random: Random) -> tuple[str, Spans]:
    """A plain statement told as a correction of what was said before."""
    before, after = random.choice(further_names()["corrections"]).split("{s}")
    corrected = text.rstrip(" .") + after
    return before + corrected, [(start + len(before), end + len(before), name) for start, end, name in spans]


def plain(marker: Marker, random: Random) -> Raw:
    """A plain statement or question of a tie between two names: what tells the tie is no name."""
    is_statement = random.random() < 0.6
    form = random.choice(further_names()["statements" if is_statement else "questions"])
    values = {"h": any_name(random), "t": any_name(random)}
    noun, other = random.sample(further_names()["common"], 2)
    nouns: dict[str, str] = {"noun": noun, "other": other}
    text, spans = "", []
    for part in re.split(r"(\{\w+\})", form):
        slot = part.strip("{}")
        value = values.get(slot) if part.startswith("{") else None
        if value is None:
            text += nouns.get(slot, part) if part.startswith("{") else part
            continue
        begin = len(text) + 4 * value.lower().startswith("the ")
        text += value
        spans.append((begin, len(text), slot))
    return _raw(
        text[:1].upper() + text[1:], spans, dict.fromkeys(values, ROLES.index("party")), "plain" if is_statement else None, marker, random
    )


def _raw(text: str, spans: Spans, roles: Mapping[str, int], status: str | None, marker: Marker, random: Random) -> Raw:
    """A text with its names (from, to, which), what each is, and how it is told; a tenth are written without capitals."""
    [marked] = marker.unmarked([text.lower() if random.random() < 0.1 and len(text.lower()) == len(text) else text])
    inside = [next(((start, name) for start, end, name in spans if start <= position < end), None) for position in marked.starts]
    labels = tuple(0 if span is None else 1 if position == span[0] else 2 for position, span in zip(marked.starts, inside, strict=True))
    of = tuple(-100 if span is None or status is None else roles[span[1]] for span in inside)
    return Raw(marked, labels, of, -100 if status is None else KINDS.index(status))


def any_name(random: Random) -> str:
    """A name of any form: of syllables, of common nouns, or one of those for training alone."""
    of = further_names()
    if random.random() < 0.35:
        return made_name(random)
    return random.choice(of[random.choice(("behind_the", "behind_the", "bare", "institutions", "titles", "people", "teams", "others"))])


def role_of(name: str, fact: Fact) -> int:
    """What of `ROLES` a name is in a statement."""
    slots = fact.slots
    if name == slots.get("teller"):
        return ROLES.index("teller")
    if name == slots.get("old") or (name == slots["tail"] and slots["told"] in ("denial", "former")):
        return ROLES.index("old")
    return ROLES.index("party" if name in (slots["head"], slots["tail"]) else "other")


def made_name(random: Random) -> str:
    """A name of syllables, one word or several, some with a title or a number; or of common nouns, some with where it is."""

    def word() -> str:
        return "".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(random.choice((2, 2, 3)))).capitalize()

    if random.random() < 0.3:
        firsts, lasts = _common_nouns()
        made = f"the {random.choice(firsts)} {random.choice(lasts)}" if random.random() < 0.7 else f"the {random.choice(lasts)}"
        where = f" {random.choice(('on', 'by', 'near', 'behind', 'at', 'in', 'under', 'of'))} the {random.choice(lasts)}"
        return made + where * (random.random() < 0.3)
    words = [word() + random.choice(("", "n", "x", "th", "rd")) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    return random.choice(("", "", "", "", "Dr. ", "Mr. ", "the ")) + " ".join(words) + random.choice(("", "", "", "", " 7", " 42"))


@cache
def _common_nouns() -> tuple[list[str], list[str]]:
    """The first and the last words of those names of the training split that are common nouns behind "the"."""
    every = [name for kind in kinds() for name in names(kind, "train")]
    words_of_names = [name.split()[1:] for name in every if name.startswith("the ") and name[4:].islower()]
    return [words[0] for words in words_of_names if len(words) > 1], [words[-1] for words in words_of_names]


def tags_of(text: Marked, spans: str) -> tuple[int, ...]:
    """The hop that each piece of a question belongs to, from 1 on; 0: none. `spans`: where each hop is asked (suites/relations)."""
    within = [tuple(map(int, span.split("-"))) for span in spans.split()]
    return tuple(
        next((hop for hop, (start, end) in enumerate(within, 1) if start <= position < end), 0) if position >= 0 else 0
        for position in text.starts
    )


def walks(start: str, at: Mapping[str, Sequence[int]], names_of: Sequence[Sequence[str]]) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """All paths of up to `HOPS` statements from a name, over different statements and names."""
    waiting: list[tuple[tuple[tuple[int, int, int], ...], tuple[str, ...]]] = [((), (start,))]
    while waiting:
        path, nodes = waiting.pop()
        for number in at[nodes[-1]]:
            if any(number == seen for seen, _, _ in path):
                continue
            for index, end in enumerate(names_of[number]):
                if end not in nodes:
                    longer = (*path, (number, names_of[number].index(nodes[-1]), index))
                    yield longer
                    if len(longer) < HOPS:
                        waiting.append((longer, (*nodes, end)))


def _right(path: Sequence[tuple[int, int, int]], item: Item, facts: Sequence[Fact], names_of: Sequence[Sequence[str]]) -> bool:
    """Whether a path goes by the relations that a question asks for, over what is asserted."""
    asked = item.cue["path"].split()
    if len(path) != len(asked):
        return False
    for (number, start, end), relation in zip(path, asked, strict=True):
        slots = facts[number].slots
        names = (slots["head"], slots["tail"])
        if slots["told"] not in ASSERTED or slots["relation"] != relation.removeprefix("^"):
            return False
        if (names_of[number][start], names_of[number][end]) != (names[::-1] if relation.startswith("^") else names):
            return False
    return True


@dataclass(frozen=True)
class OfSplit:
    """What draws lessons of a split by their number."""

    marker: Marker
    split: Split
    seed: int = 1337


@dataclass(frozen=True)
class Lessons(OfSplit):
    """Lessons of worlds of a split; `semantic`: every fifth is of that suite."""

    semantic: bool = False

    def __call__(self, index: int, **settings: Any) -> Lesson:
        random = Random(f"path encoder {self.seed} {self.split} {index}")
        if self.semantic and index % 5 == 4:
            return lesson(semantic_lesson(self.split, index, self.seed), self.marker, random)
        world = make_world(random, RelationsSettings(**(drawn(random) | settings)), WorldSpec(self.split, self.seed, index))
        return lesson(world, self.marker, random)


def drawn(random: Random) -> dict[str, Any]:
    """Settings of a world to learn from."""
    return {
        "n_relations": random.choice((6, 8, 10)),
        "n_facts": random.choice((20, 24, 28)),
        "n_items": 12,
        "hops": random.choice(((1, 2, 3), (2, 3, 3), (1, 2, 2))),
        "about": ("chain",) * 4 + ("now", "chain", "before", "chain", "chain", "disputed", "chain", "chain"),
        "updates": random.choice((2, 3)),
        "disputed": 1,
    }


@dataclass(frozen=True)
class Contrast:
    """A statement of each of many relations, and a hop of a question that it answers. `right`: of each hop the names of its statement, by
    number, that it leads from and to."""

    statements: tuple[Marked, ...]
    hops: tuple[Marked, ...]
    right: tuple[tuple[int, int], ...]


def contrast(random: Random, marker: Marker, split: Split, count: int) -> Contrast:
    """So many relations of a split of which none is like another, each told of two names of the right kinds."""
    words, chosen = DraftWords(random, split), list[BankRelation]()
    for relation in random.sample(words.relations, len(words.relations)):
        if len(chosen) < count and not any(relation.is_like(other) for other in chosen):
            chosen.append(relation)
    statements, hops, right = [], [], []
    for relation in chosen:
        head, tail = words.names(relation.head, 1)[0], words.names(relation.tail, 2)[-1]
        text = words.statement(DraftEdge(head, relation, tail))
        spans = named(text, [head, tail])
        order = list(dict.fromkeys(name for *_, name in spans))
        statements.append((text, [(start, end, order.index(name) + 1) for start, end, name in spans]))
        back = random.random() < 0.25
        start, forms = (tail, relation.head_phrases) if back else (head, random.choice((relation.tail_phrases, relation.questions)))
        asked = words.choose(forms).replace("{t}" if back else "{h}", start)
        hops.append((asked, [(a, b, 1) for a, b, _ in named(asked, [start])]))
        numbers = (order.index(head) + 1, order.index(tail) + 1) if {head, tail} <= {*order} else (0, 0)
        right.append(numbers[::-1] if back else numbers)
    kept = [index for index, numbers in enumerate(right) if numbers != (0, 0) and numbers[0] != numbers[1]]
    return Contrast(
        tuple(marker([statements[index] for index in kept])),
        tuple(marker([hops[index] for index in kept])),
        tuple(right[index] for index in kept),
    )


class TagLessons(OfSplit):
    """Of each world of a split some texts with unmarked names; every fifth is of the suite `semantic`. For training names of every form and
    plain statements are added."""

    def __call__(self, index: int) -> tuple[Raw, ...]:
        random = Random(f"tagger {self.seed} {self.split} {index}")
        world = _world(random, self.split, index, self.seed)
        if self.split != "train":
            return unmarked(world, self.marker, random, 8, made_name)
        return (*unmarked(world, self.marker, random, 8, any_name, 0.15), *(plain(self.marker, random) for _ in range(4)))


class CutLessons(OfSplit):
    """Of each world of a split its questions; every fifth is of the suite `semantic`. For training some words of half of them are exchanged
    for words of others: where a hop ends is seen by how a question is built, too."""

    def __call__(self, index: int) -> tuple[Asked, ...]:
        random = Random(f"cutter {self.seed} {self.split} {index}")
        asked = parted(_world(random, self.split, index, self.seed), self.marker)
        if self.split != "train":
            return asked
        pool = [piece for text, *_ in asked for piece in self.marker.content(text)]
        shares = (0.0, 0.0, 0.3, 0.6)
        return tuple((exchanged(text, self.marker, pool, random.choice(shares), random), tags, before) for text, tags, before in asked)


def exchanged(text: Marked, marker: Marker, pool: Sequence[int], share: float, random: Random) -> Marked:
    """A text of whose pieces with a meaning of their own a share is exchanged for others."""
    own = {*marker.content(text)}
    return replace(text, ids=tuple(random.choice(pool) if piece in own and random.random() < share else piece for piece in text.ids))


def _world(random: Random, split: Split, index: int, seed: int) -> World:
    if split == "train" and index % 5 == 4:
        return semantic_lesson(split, index, seed)
    return make_world(random, RelationsSettings(**drawn(random)), WorldSpec(split, seed, index))


LEVELS = {None: "high", 0.9: "high", 0.6: "middle", 0.3: "low"}
CITY = re.compile(r"(?:in )?which city(?: is home to)? | in which city\?$", re.IGNORECASE)


def semantic_lesson(split: Split, index: int, seed: int) -> World:
    """A world of the suite `semantic`, in the lab's own wordings, in the terms of the suite `relations`."""
    profile = ("default", "hard", "hedged")[index % 3]
    world = next(iter(worlds("semantic", profile, 8, seed + index, split)))
    facts = tuple(replace(fact, slots=_slots_of(fact)) for fact in world.facts)
    return replace(world, facts=facts, items=tuple(_asked(item) for item in world.items))


def _slots_of(fact: Fact) -> dict[str, str]:
    slots, text = fact.slots, fact.text
    status = LEVELS[fact.confidence] if "teller" in slots else "plain"
    if text.startswith(("Later ", "Since then ")):
        status = "update"
    elif text.startswith(("Rumor ", "Someone heard ")):
        status = "guess"
    names = [slots[slot] for slot in ("who", "firm", "city", "friend", "place") if slot in slots]
    return {
        "head": names[0],
        "relation": _relation(slots) if "relation" in slots else "_".join(text.split()),
        "tail": names[1] if len(names) > 1 else names[0],
        "told": status,
    } | ({"teller": slots["teller"]} if "teller" in slots else {})


def _relation(slots: Mapping[str, str]) -> str:
    return "_".join(" ".join(slots[slot] for slot in ("relation", "what", "when") if slot in slots).split())


def _asked(item: Item) -> Item:
    """With the relations of its path, and where in the question each step is asked."""
    cue, text = item.cue, item.question
    start = cue.get("who") or cue["friend"]
    city = CITY.search(text)
    assert city, text
    within = [(city.end(), len(text) - 1) if city.end() < len(text) else (0, city.start())]
    if within[0][1] and text[: within[0][1]].endswith(" in"):
        within = [(within[0][0], within[0][1] - 3)]
    if "friend" in cue:
        friend = text.index("the friend of ")
        within = [(friend, friend + len("the friend of ") + len(start)), *within]
    path = " ".join([*["^friend"] * ("friend" in cue), _relation(cue), "is_in"])
    spans = " ".join(f"{a}-{b}" for a, b in (*within, (0, len(text))))
    return replace(item, cue={"head": start, "path": path}, truth={"within": spans})
