"""The worlds of data/chains: relations that the relational memory has no pattern for, and questions that join two or three of them.

    python benchmarks/memory/chain_worlds.py        writes facts.jsonl and items.jsonl of both parts beside their words.yaml

Frames and names were written by hand, before any score of either part was seen: of the development part (`val`) in
data/chains/val/words.yaml, of the test part in data/chains/words.yaml. A world is two chains of relations, told of several things. One of
its facts is contested: three to five people say otherwise, and what most of them hold to at the end is so
(hippo_core/suites/semantic/conflict.py); a quarter of the other facts is told by one of them as well.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from hippo_core.files import root
from hippo_core.suites.semantic.conflict import Testimony, disagree, last_words
from hippo_core.suites.types import Fact, Item, Split, World

WORLDS, FACTS, DISTRACTORS = 50, 24, 3
HOPS = (2, 2, 3, 3)  # of a world's questions; every other one is about the contested fact
TELLERS = 6
SPOKEN = 0.25  # of the facts that nobody contests, told by somebody
SHARED, MERGED = 0.3, 0.12  # how often a chain begins at what is there already, and ends in it


@dataclass(frozen=True)
class Relation:
    """Frames by use; {h} and {t} are mentions of head and tail, or descriptions of what is not named."""

    head: str
    tail: str
    told: tuple[str, ...]
    described: tuple[str, ...]
    asked: tuple[str, ...]
    back: tuple[str, ...] = ()


@dataclass(frozen=True)
class Words:
    """What a part's sentences are made of."""

    mentions: dict[str, str]
    names: dict[str, tuple[str, ...]]
    relations: dict[str, Relation]
    tellers: tuple[str, ...]
    distractors: tuple[str, ...]

    def mention(self, kind: str, name: str) -> str:
        """A name with what belongs to it: the Ost."""
        return self.mentions.get(kind, "{}").format(name)

    def state(self, random: Random, link: "Link", tail: str = "") -> str:
        """A link as a clause; with another tail where one is given."""
        relation = self.relations[link.relation]
        words = {"h": self.mention(relation.head, link.head), "t": self.mention(relation.tail, tail or link.tail)}
        return random.choice(relation.told).format(**words)


class Link(NamedTuple):
    """A fact that holds."""

    relation: str
    head: str
    tail: str


class Step(NamedTuple):
    """A link that is followed, from head to tail or back."""

    link: Link
    back: bool

    @property
    def end(self) -> str:
        return self.link.head if self.back else self.link.tail


class Contest(NamedTuple):
    """What people say of a link, in order, and the tail that does not hold."""

    link: Link
    other: str
    testimonies: list[Testimony]


@cache
def words_of(part: Split) -> Words:
    """The words of a part."""
    read = yaml.safe_load((folder_of(part) / "words.yaml").read_text(encoding="utf-8"))
    relations = {name: Relation(**{key: value if isinstance(value, str) else tuple(value) for key, value in row.items()})
                 for name, row in read["relations"].items()}  # fmt: skip
    names = {kind: tuple(own) for kind, own in read["names"].items()}
    return Words(read["mentions"], names, relations, tuple(read["tellers"]), tuple(read["distractors"]))


def folder_of(part: Split) -> Path:
    """Where a part lies."""
    return root() / "data" / "chains" / ("" if part == "test" else part)


def draw_links(random: Random, words: Words, number: int) -> list[Link]:
    """So many links of two chains, most of them told of several things; each head has one tail by a relation."""
    plans = [plan(random, words.relations) for _ in range(2)]
    tails: dict[tuple[str, str], str] = {}
    names: dict[str, list[str]] = defaultdict(list)

    def new(kind: str) -> str:
        left = [name for name in words.names[kind] if name not in names[kind]]
        names[kind].append(random.choice(left or words.names[kind]))
        return names[kind][-1]

    while len(tails) < number:
        chosen, target = random.choice(plans), ""
        for relation in chosen[random.randrange(len(chosen)) if tails and random.random() < SHARED else 0 :]:
            row = words.relations[relation]
            heads = [name for name in dict.fromkeys(names[row.head]) if (relation, name) not in tails]
            head = target if target in heads else random.choice(heads) if heads and random.random() < SHARED else new(row.head)
            others = [name for name in names[row.tail] if name != head]
            target = random.choice(others) if others and random.random() < MERGED else new(row.tail)
            if len(tails) < number and target != head:
                tails.setdefault((relation, head), target)
    return [Link(*key, tail) for key, tail in tails.items()]


def plan(random: Random, relations: dict[str, Relation]) -> list[str]:
    """Three different relations of which each goes on where the one before it ends."""
    while True:
        chain = [random.choice(list(relations))]
        for _ in range(2):
            further = [name for name, row in relations.items() if row.head == relations[chain[-1]].tail and name not in chain]
            chain += [random.choice(further)] if further else []
        if len(chain) == 3:
            return chain


def walks(words: Words, links: list[Link], contest: Contest) -> Iterator[tuple[Step, ...]]:
    """All ways of two and three hops in which every hop has one link to take and nothing is met again. The contested link is not walked
    back."""
    ends = [((), name) for name in dict.fromkeys(name for link in links for name in (link.head, link.tail))]
    for hop in range(1, max(HOPS) + 1):
        longer = []
        for steps, node in ends:
            visited = {name for step in steps for name in (step.link.head, step.link.tail)} | {node}
            for step in steps_from(words, links, contest, node):
                if step.end not in visited:
                    longer.append(((*steps, step), step.end))
        ends = longer
        if hop > 1:
            yield from (steps for steps, _ in ends)


def steps_from(words: Words, links: list[Link], contest: Contest, node: str) -> Iterator[Step]:
    """The steps from a thing that only one link can be taken for."""
    yield from (Step(link, False) for link in links if link.head == node)
    by_relation: dict[str, list[Link]] = defaultdict(list)
    for link in [*links, contest.link._replace(tail=contest.other)]:
        if link.tail == node and words.relations[link.relation].back:
            by_relation[link.relation].append(link)
    for same_relation in by_relation.values():
        if len(same_relation) == 1 and same_relation[0] != contest.link and same_relation[0] in links:
            yield Step(same_relation[0], True)


def ask(random: Random, words: Words, steps: tuple[Step, ...]) -> str:
    """A question that names the start alone; what lies between is described."""
    first = steps[0]
    relation = words.relations[first.link.relation]
    text = words.mention(relation.tail, first.link.tail) if first.back else words.mention(relation.head, first.link.head)
    for index, step in enumerate(steps):
        relation, last = words.relations[step.link.relation], index == len(steps) - 1
        if last and not step.back:
            return random.choice(relation.asked).format(h=text)
        text = random.choice(relation.back if step.back else relation.described).format(h=text, t=text)
    kind = words.relations[steps[-1].link.relation].head
    return f"{'Who' if kind == 'person' else 'What'} is {text}?"


def refuted(steps: tuple[Step, ...], links: list[Link], contest: Contest) -> tuple[str, ...]:
    """The answer of whoever believes what does not hold, where what is told leads on from there."""
    index = next((index for index, step in enumerate(steps) if step.link == contest.link), None)
    if index is None:
        return ()
    node = contest.other
    for step in steps[index + 1 :]:
        same = [link for link in links if link.relation == step.link.relation and (link.tail if step.back else link.head) == node]
        if len(same) != 1:
            return ()
        node = Step(same[0], step.back).end
    return (node,) if node != steps[-1].end else ()


def make_world(part: Split, index: int) -> World:
    """One world; drawn again until it carries its questions."""
    words = words_of(part)
    for attempt in count():
        random = Random(f"chains/{part}/{index}/{attempt}")
        testimonies = disagree(random, [str(number) for number in range(TELLERS)], "true", "other")
        links = draw_links(random, words, FACTS - DISTRACTORS - len(testimonies) + 1)
        named = {name for link in links for name in (link.head, link.tail)}
        strangers = [name for name in words.names["person"] if name not in named]
        link = random.choice(links)
        kind = words.relations[link.relation].tail
        others = [name for name in words.names[kind] if name in named and name not in (link.head, link.tail)]
        if not others or len(strangers) < TELLERS:
            continue
        tellers, other = random.sample(strangers, TELLERS), random.choice(others)
        testimonies = [
            Testimony(tellers[int(testimony.teller)], link.tail if testimony.city == "true" else other) for testimony in testimonies
        ]
        contest = Contest(link, other, testimonies)
        chosen = choose(random, list(walks(words, links, contest)), link)
        if chosen:
            return statements(random, words, f"{part}-{index:02d}", links, contest, chosen)
    raise AssertionError("attempts do not end")


def choose(random: Random, chains: list[tuple[Step, ...]], contested: Link) -> list[tuple[Step, ...]]:
    """The questions, every other one about the contested link, with different answers; empty where that cannot be."""
    chosen: list[tuple[Step, ...]] = []
    for index, hops in enumerate(HOPS):
        about = index % 2 == 0
        ends = {(steps[-1].end, steps[-1].link.relation) for steps in chosen if len(steps) == hops}
        fitting = [
            steps
            for steps in chains
            if len(steps) == hops
            and (contested in [step.link for step in steps]) == about
            and (steps[-1].end, steps[-1].link.relation) not in ends
        ]
        if not fitting:
            return []
        chosen.append(random.choice(fitting))
    return chosen


def statements(random: Random, words: Words, name: str, links: list[Link], contest: Contest, chosen: list[tuple[Step, ...]]) -> World:
    """The world's facts in an order of telling, and its questions."""
    rows: list[tuple[float, Link, str]] = []
    strangers = sorted({testimony.teller for testimony in contest.testimonies})
    for link in links:
        if link != contest.link:
            clause, teller = words.state(random, link), random.choice(strangers)
            spoken = random.choice(words.tellers).format(teller=teller, s=clause) if random.random() < SPOKEN else clause
            rows.append((random.random(), link, spoken))
    for position, testimony in zip(sorted(random.random() for _ in contest.testimonies), contest.testimonies, strict=True):
        clause = words.state(random, contest.link, testimony.city)
        frame = random.choice(words.tellers)
        link = contest.link._replace(tail=testimony.city)
        rows.append((position, link, frame.format(teller=testimony.teller, s=clause)))
    people = [n for n in words.names["person"] if any(n in link[1:] for link in links)] or [contest.testimonies[0].teller]
    targets = [(words.relations[link.relation].tail, link.tail) for link in links]
    for frame in random.sample(words.distractors, DISTRACTORS):
        person, (kind, target) = random.choice(people), random.choice(targets)
        while target == person:
            kind, target = random.choice(targets)
        rows.append((random.random(), Link("", person, target), frame.format(a=person, b=words.mention(kind, target))))
    rows.sort()
    facts = tuple(
        Fact(f"{name}.f{number}", name, f"{text[0].upper()}{text[1:]}.", {"head": link.head, "tail": link.tail}, number)
        for number, (_, link, text) in enumerate(rows)
    )
    ids: dict[Link, list[str]] = defaultdict(list)
    for fact, (_, link, _) in zip(facts, rows, strict=True):
        ids[link].append(fact.id)
    contested_ids = [fact.id for fact, (_, link, _) in zip(facts, rows, strict=True) if link[:2] == contest.link[:2]]
    last = last_words(contest.testimonies)
    deciding = [
        fact
        for fact, testimony in zip(contested_ids, contest.testimonies, strict=True)
        if testimony in last and testimony.city == contest.link.tail
    ][-1]
    items = tuple(make_item(random, words, facts, number, steps, ids, contest, deciding, links) for number, steps in enumerate(chosen))
    return World(name, facts, items)


def make_item(random: Random, words: Words, facts, number: int, steps, ids, contest: Contest, deciding: str, links: list[Link]) -> Item:
    relation, back = words.relations[steps[-1].link.relation], steps[-1].back
    kind, answer = relation.head if back else relation.tail, steps[-1].end
    like = {link.head if back else link.tail for link in links if link.relation == steps[-1].link.relation}
    contested = contest.link in [step.link for step in steps]
    first = steps[0].link
    return Item(
        id=f"{facts[0].world}.q{number}",
        world=facts[0].world,
        question=ask(random, words, steps),
        answers=tuple(dict.fromkeys((answer, words.mention(kind, answer)))),
        gold_facts=tuple(deciding if step.link == contest.link else ids[step.link][0] for step in steps),
        kind="contradiction" if contested else f"hops_{len(steps)}",
        hops=len(steps),
        chance=round(1 / len(like), 4),
        cue={"tail": first.tail} if steps[0].back else {"head": first.head},
        refuted=refuted(steps, links, contest),
        retold={fact: deciding for fact in ids[contest.link] if fact != deciding} if contested else {},
    )


def lines(part: Split) -> dict[str, str]:
    """The files of a part by name."""
    made = [make_world(part, index) for index in range(WORLDS)]
    facts = [jsonl(asdict(fact), ("id", "world", "text", "slots")) for world in made for fact in world.facts]
    fields = ("id", "world", "question", "answers", "gold_facts", "kind", "hops", "chance", "cue", "refuted", "retold")
    items = [jsonl(asdict(item), fields) for world in made for item in world.items]
    return {"facts.jsonl": "".join(facts), "items.jsonl": "".join(items)}


def jsonl(values: dict[str, Any], fields: tuple[str, ...]) -> str:
    """A line with these fields, those that are empty left out."""
    return json.dumps({field: values[field] for field in fields if values[field]}, ensure_ascii=False) + "\n"


def main() -> None:
    """Write both parts."""
    for part in ("val", "test"):
        for name, text in lines(part).items():
            (folder_of(part) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
