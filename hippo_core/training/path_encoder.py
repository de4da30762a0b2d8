"""Fitting the reader of statements (methods/relational/encoder.py) on worlds of the bank of relations.

A step is one world: all of its statements are read once, and each of its questions chooses among all paths that lead from its name over
statements that share a name. What is learnt beside: how many hops a question asks and whether of now or before, how each statement is told,
what each name is in it, and what a later statement is to an earlier one of the same name.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy

from hippo_core.methods.relational.encoder import HOPS, INTENTS, KINDS, PAIRS, ROLES, Marked, Marker, PathEncoder
from hippo_core.suites.relations import RelationsSettings, make_world
from hippo_core.suites.types import Fact, Item, Split, World, WorldSpec
from hippo_core.training.train import Diverged, Log, set_rates, share_of_rate

PATHS = 400  # of a question, at most
ASSERTED = ("plain", "update", "high", "middle", "low", "guess")


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
    held = [tuple(dict.fromkeys(name for *_, name in own)) for own in spans]
    at: dict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(held):
        for name in own:
            at[name].append(number)
    questions = []
    for item in world.items:
        start = item.cue.get("head") or item.cue["tail"]
        own = named(item.question, names)
        order = dict.fromkeys([start, *(name for *_, name in own)])
        place = {name: number for number, name in enumerate(order, 1)}
        paths = [path for path in walks(start, at, held) if len(path) == item.hops]
        right = [_right(path, item, world.facts, held) for path in paths]
        if not any(right):
            continue
        wrong = [number for number, one in enumerate(right) if not one]
        kept = sorted([*(n for n, one in enumerate(right) if one), *random.sample(wrong, min(PATHS, len(wrong)))])
        [text] = marker([(item.question, [(a, b, place[name]) for a, b, name in own])])
        tags = tags_of(text, item)
        questions.append(Question(text, tags, tuple(text.hops(tags)), item, tuple(paths[n] for n in kept), tuple(right[n] for n in kept)))
    marked = marker(
        [
            (fact.text, [(a, b, own.index(name) + 1) for a, b, name in span])
            for fact, span, own in zip(world.facts, spans, held, strict=True)
        ]
    )
    return Lesson(world.facts, tuple(marked), tuple(held), tuple(questions))


def tags_of(text: Marked, item: Item) -> tuple[int, ...]:
    """The hop that each piece of a question belongs to, from 1 on; 0: none."""
    within = [tuple(map(int, span.split("-"))) for span in item.truth["within"].split()]
    return tuple(
        next((hop for hop, (start, end) in enumerate(within, 1) if start <= place < end), 0) if place >= 0 else 0 for place in text.places
    )


def walks(start: str, at: Mapping[str, Sequence[int]], held: Sequence[Sequence[str]]) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """All paths of up to `HOPS` statements from a name, over different statements and names."""
    waiting: list[tuple[tuple[tuple[int, int, int], ...], tuple[str, ...]]] = [((), (start,))]
    while waiting:
        path, nodes = waiting.pop()
        for number in at[nodes[-1]]:
            if any(number == one for one, _, _ in path):
                continue
            for place, end in enumerate(held[number]):
                if end not in nodes:
                    longer = (*path, (number, held[number].index(nodes[-1]), place))
                    yield longer
                    if len(longer) < HOPS:
                        waiting.append((longer, (*nodes, end)))


def _right(path: Sequence[tuple[int, int, int]], item: Item, facts: Sequence[Fact], held: Sequence[Sequence[str]]) -> bool:
    """Whether a path goes by the relations that a question asks for, over what is asserted."""
    asked = item.cue["path"].split()
    if len(path) != len(asked):
        return False
    for (number, start, end), relation in zip(path, asked, strict=True):
        slots = facts[number].slots
        names = (slots["head"], slots["tail"])
        if slots["told"] not in ASSERTED or slots["relation"] != relation.removeprefix("^"):
            return False
        if (held[number][start], held[number][end]) != (names[::-1] if relation.startswith("^") else names):
            return False
    return True


def loss_of(model: PathEncoder, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
    """The loss of a lesson, and numbers for the log."""
    said = model.read(lesson.statements)
    leads = [one.leads() for one in said]
    tags, intents = model.part([question.text for question in lesson.questions])
    hops = model.ask([hop for question in lesson.questions for hop in question.hops]).split([len(one.hops) for one in lesson.questions])
    table = torch.cat([one.flatten(0, 1) for one in leads])  # every ordered pair of every statement
    sizes = [one.shape[0] for one in leads]
    first = [0, *accumulate(size**2 for size in sizes)]
    losses, right = [], 0
    for row, question in enumerate(lesson.questions):
        scores = path_scores(model.scale * hops[row] @ table.T, question.paths, first, sizes)
        good = torch.tensor(question.right)
        losses.append(torch.logsumexp(scores, 0) - torch.logsumexp(scores[good], 0))
        right += bool(good[scores.argmax()])
    path = torch.stack(losses).mean()
    labels = [torch.tensor(question.tags) for question in lesson.questions]
    tag = cross_entropy(torch.cat([own[: len(label)] for own, label in zip(tags, labels, strict=True)]), torch.cat(labels))
    intent = cross_entropy(intents, torch.tensor([INTENTS.index("before") if one.item.kind == "before" else 0 for one in lesson.questions]))
    kind = cross_entropy(torch.stack([one.kind for one in said]), torch.tensor([KINDS.index(fact.slots["told"]) for fact in lesson.facts]))
    roles = [
        (one.roles[place], role_of(name, fact))
        for one, own, fact in zip(said, lesson.names, lesson.facts, strict=True)
        for place, name in enumerate(own)
    ]
    role = cross_entropy(torch.stack([logits for logits, _ in roles]), torch.tensor([label for _, label in roles]))
    pairs = _pairs(lesson)
    pair = torch.zeros(())
    if pairs:
        one, other, same, labels = pair_tensors(leads, pairs)
        pair = cross_entropy(model.judge(one, other, same), labels)
    total = path + tag + 0.3 * (intent + kind + role + pair)
    n = len(lesson.questions)
    return total, {
        "path": float(path.detach()),
        "right": right / n,
        "tag": float(tag.detach()),
        "intent": float(intent.detach()),
        "kind": float(kind.detach()),
        "role": float(role.detach()),
        "pair": float(pair.detach()),
    }


def path_scores(likes: Tensor, paths: Sequence[Sequence[tuple[int, int, int]]], first: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Of each path how like its steps are what is asked hop by hop, [P]; `likes`: of each hop to every ordered pair of names [H, pairs]."""
    steps = torch.tensor([[first[number] + start * sizes[number] + end for number, start, end in path] for path in paths])
    return likes.gather(1, steps.T).sum(0)


def role_of(name: str, fact: Fact) -> int:
    slots = fact.slots
    if name == slots.get("teller"):
        return ROLES.index("teller")
    if name == slots.get("old") or (name == slots["tail"] and slots["told"] in ("denial", "former")):
        return ROLES.index("old")
    return ROLES.index("party" if name in (slots["head"], slots["tail"]) else "other")


def _pairs(lesson: Lesson) -> list[tuple[tuple[int, int, int], tuple[int, int, int], bool, int]]:
    """Pairs of what is asserted of one head: where, whether of the same tail, and what the later one is to the earlier one."""
    of: dict[str, list[int]] = defaultdict(list)
    for number, fact in enumerate(lesson.facts):
        if fact.slots["told"] in ASSERTED and {fact.slots["head"], fact.slots["tail"]} <= {*lesson.names[number]}:
            of[fact.slots["head"]].append(number)
    found = []
    for numbers in of.values():
        for place, early in enumerate(numbers):
            for late in numbers[place + 1 :]:
                a, b = lesson.facts[early].slots, lesson.facts[late].slots
                same = a["tail"] == b["tail"]
                label = "unrelated"
                if a["relation"] == b["relation"]:
                    label = "agrees" if same else "replaces" if b["told"] in ("plain", "update") else "disputes"
                spots = [(n, lesson.names[n].index(s["head"]), lesson.names[n].index(s["tail"])) for n, s in ((early, a), (late, b))]
                found.append((spots[0], spots[1], same, PAIRS.index(label)))
    return found


def pair_tensors(leads: Sequence[Tensor], pairs: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors of the earlier and the later ones [N, W], whether they end alike [N], and the labels [N]."""
    one = torch.stack([leads[number][start, end] for (number, start, end), *_ in pairs])
    other = torch.stack([leads[number][start, end] for _, (number, start, end), *_ in pairs])
    return one, other, torch.tensor([same for _, _, same, _ in pairs]), torch.tensor([label for *_, label in pairs])


class Lessons:
    """Lessons of worlds of a split."""

    def __init__(self, marker: Marker, split: Split, seed: int = 1337) -> None:
        self.marker, self.seed = marker, seed
        self.split: Split = split

    def __call__(self, index: int, **settings: Any) -> Lesson:
        random = Random(f"path encoder {self.seed} {self.split} {index}")
        chosen = {
            "n_relations": random.choice((6, 8, 10)),
            "n_facts": random.choice((20, 24, 28)),
            "n_items": 12,
            "hops": random.choice(((1, 2, 3), (2, 3, 3), (1, 2, 2))),
            "about": ("chain",) * 4 + ("now", "chain", "before", "chain", "chain", "disputed", "chain", "chain"),
            "updates": random.choice((2, 3)),
            "disputed": 1,
        } | settings
        world = make_world(random, RelationsSettings(**chosen), WorldSpec(self.split, self.seed, index))
        return lesson(world, self.marker, random)


class PathRecipe(BaseModel):
    """Everything that a reader of statements depends on, but for MiniLM and the bank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1337
    steps: int = 1200  # a world each
    rank: int = 16
    rate: float = 3e-4  # AdamW, of the adapter
    head_rate: float = 1e-3
    warmup: int = 40
    cooldown: float = 0.9
    threads: int = 2
    bank: str = ""  # SHA-256 of the bank


class PathTrainee:
    """A reader of statements as a trainee."""

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        self.recipe, self.lessons = recipe, Lessons(marker, "train", recipe.seed)
        torch.manual_seed(recipe.seed)
        self.model = PathEncoder(adapted(body, recipe.rank))
        of = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        body_of = [weight for name, weight in of.items() if name.startswith("body")]
        heads = [weight for name, weight in of.items() if not name.startswith("body")]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(chosen, lr=rate, weight_decay=0.01) for chosen, rate in ((body_of, recipe.rate), (heads, recipe.head_rate))
        ]
        validation = Lessons(marker, "val", 1)
        self._exam = [validation(index, n_items=10, hops=(1, 2, 3), about=("chain",)) for index in range(12)]

    def weights(self) -> dict[str, Tensor]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        set_rates(self.optimizers, (recipe.rate, recipe.head_rate), share_of_rate(step, recipe.steps, recipe.warmup, recipe.cooldown))
        self.model.train()
        loss, numbers = loss_of(self.model, self.lessons(step))
        if not loss.isfinite():
            raise Diverged(f"step {step}: the loss is {float(loss)}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights().values(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return numbers

    @torch.no_grad()
    def examine(self) -> Log:
        """On worlds of validation relations: the share of questions whose best path is right, by hops, and of pairs, kinds and roles."""
        self.model.eval()
        marks: dict[str, list[float]] = defaultdict(list)
        for one in self._exam:
            for name, values in examined(self.model, one).items():
                marks[f"val {name}"] += values
        return {name: sum(values) / len(values) for name, values in sorted(marks.items())}


def adapted(body: Any, rank: int) -> Any:
    """MiniLM with a low-rank adapter that can be trained, and nothing else of it."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules=["query", "key", "value", "dense"])
    return get_peft_model(body, config)


def examined(model: PathEncoder, lesson: Lesson) -> dict[str, list[float]]:
    """What is right of a lesson: each 0 or 1."""
    said = model.read(lesson.statements)
    leads = [one.leads() for one in said]
    sizes = [one.shape[0] for one in leads]
    first = [0, *accumulate(size**2 for size in sizes)]
    table = torch.cat([one.flatten(0, 1) for one in leads])
    tags, _ = model.part([question.text for question in lesson.questions])
    hops = model.ask([hop for question in lesson.questions for hop in question.hops]).split([len(one.hops) for one in lesson.questions])
    marks: dict[str, list[float]] = defaultdict(list)
    for row, question in enumerate(lesson.questions):
        best = int(path_scores(hops[row] @ table.T, question.paths, first, sizes).argmax())
        marks[f"{question.item.hops} hops"].append(float(question.right[best]))
        read = [1 if mark == 1 else int(tag) for tag, mark in zip(tags[row].argmax(-1), question.text.marks, strict=False)]
        marks["parts"].append(float([one.ids for one in question.text.hops(read)] == [one.ids for one in question.hops]))
    for one, fact in zip(said, lesson.facts, strict=True):
        marks["kind"].append(float(KINDS[int(one.kind.argmax())] == fact.slots["told"]))
    for one, own, fact in zip(said, lesson.names, lesson.facts, strict=True):
        marks["role"] += [float(int(one.roles[place].argmax()) == role_of(name, fact)) for place, name in enumerate(own)]
    if pairs := _pairs(lesson):
        one, other, same, labels = pair_tensors(leads, pairs)
        for label, right in zip(labels.tolist(), (model.judge(one, other, same).argmax(-1) == labels).tolist(), strict=True):
            marks[f"pair {PAIRS[label]}"].append(float(right))
    return marks
