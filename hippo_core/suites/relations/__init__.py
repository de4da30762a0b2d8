"""relations: chains of facts in the words of a bank of relations; the test split shares neither relations nor wordings with training.

    taught   The keel of the Marrow Lass was laid at Odd & Sons. ... Bea Lund swears that Odd & Sons pay dues to the harbour guild. ...
    asked    To which guild does the yard that built the Marrow Lass belong?       gold: the harbour guild

A relation may lead to any other whose head is of the kind of its tail. Facts are stated plainly or by witnesses. Later facts replace some
("now?", "before?"), and on some people disagree, by the rules of the suite `semantic` (conflict.py). Denials, guesses and former facts are
distractors. `refuted` are the tails that were stated and are not true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hippo_core.suites.relations.bank import FURTHER_PARTS, SPLIT_PARTS, files
from hippo_core.suites.relations.draft import DraftEdge, DraftWords, RelationDraft, lowered
from hippo_core.suites.reworded import sentence
from hippo_core.suites.splits import attempts
from hippo_core.suites.types import Fact, Hide, Item, Settings, Suite, World, WorldSpec, after_all

About = Literal["chain", "now", "before", "disputed"]
WRAPPED = 0.15  # share of the questions that are asked in more words
DISTRACTIONS = ("denial", "guess", "former")


class RelationsSettings(Settings):
    """A world of relations. `n_facts`: true facts, however often they are stated; `n_relations`: different relations; `hops`: of the
    questions, in turn. `about`: the questions' subjects, in turn: any chain, a replaced fact ("now" and "before", one hop), or a chain that
    ends where people disagree. `testimony`: share of the facts that a witness states; `updates`: facts that replace earlier ones;
    `disputed`: facts on which people disagree; `distractors`: denials, guesses and former facts; `reverse`: share of a question's steps
    that lead from tail to head. `seen`: relations of the training split, in wordings that are not of it."""

    n_facts: Annotated[int, Field(ge=8, le=2000)] = 24
    n_competitors: int = 0
    n_relations: Annotated[int, Field(ge=2)] = 8
    hops: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)] = (2, 3, 2, 3, 1)
    about: Annotated[tuple[About, ...], Field(min_length=1)] = ("chain",)
    testimony: Annotated[float, Field(ge=0, le=1)] = 0.3
    updates: Annotated[int, Field(ge=0)] = 2
    disputed: Annotated[int, Field(ge=0)] = 2
    distractors: Annotated[int, Field(ge=0)] = 3
    reverse: Annotated[float, Field(ge=0, le=1)] = 0.15
    seen: bool = False


class RelationStep(NamedTuple):
    """One hop of a question: over an edge, from its head or (`back`) from its tail."""

    edge: DraftEdge
    back: bool = False

    @property
    def start(self) -> str:
        return self.edge.tail if self.back else self.edge.head

    @property
    def end(self) -> str:
        return self.edge.head if self.back else self.edge.tail

    @property
    def name(self) -> str:
        return f"{'^' if self.back else ''}{self.edge.relation.name}"


@dataclass(frozen=True)
class RelationQuestion:
    """A question: over which steps, what about, its text and its answer. `within`: where in the text each step is asked, from the inside to
    the outside, each with what is within it."""

    steps: tuple[RelationStep, ...]
    about: About
    text: str
    answer: str
    within: tuple[tuple[int, int], ...]


def make_world(random: Random, settings: RelationsSettings, spec: WorldSpec) -> World:
    """One world; drawn again until it carries its questions."""
    for _ in attempts(settings, "world of relations"):
        draft = RelationDraft(DraftWords(random, spec.split, settings.seen))
        draft.draw(settings.n_relations, settings.n_facts)
        if asked := _state_and_ask(draft, settings, spec):
            break
    rows = draft.ordered()
    deciding = {row.about: number for number, row in enumerate(rows) if row.decides}
    asked_of = {step.edge for question in asked for step in question.steps}
    facts = []
    for number, row in enumerate(rows):
        about: dict[str, Any] = {"asked": row.about in asked_of, "confidence": row.confidence, "teller": row.teller}
        facts.append(spec.fact(number, row.text, dict(row.slots), schema_fit=row.fit, **about))
    ids = tuple(fact.id for fact in facts)
    items = []
    for number, question in enumerate(asked):
        steps, first, last = question.steps, question.steps[0], question.steps[-1]
        gold, refuted = [deciding[step.edge] for step in steps], [] if last.back else draft.refuted.get(last.edge, [])
        if question.about == "before":
            refuted = [last.edge.tail]
            gold = [next(index for index, row in enumerate(rows) if row.about == last.edge and row.slots["tail"] == question.answer)]
        true = {index: row for index, row in enumerate(rows) if row.is_true and not row.decides}
        item = spec.item(
            number,
            question.text,
            question.answer,
            question.about if question.about != "chain" else f"hops_{len(steps)}",
            hops=len(steps),
            chance=1 / len(draft.kinds[last.edge.relation.head if last.back else last.edge.relation.tail]),
            cue={"tail" if first.back else "head": first.start, "path": " ".join(step.name for step in steps)},
            **after_all(facts, gold),
            refuted=tuple(dict.fromkeys(refuted)),
            retold={ids[index]: ids[deciding[row.about]] for index, row in true.items() if row.about in {step.edge for step in steps}},
            truth={"within": " ".join(f"{start}-{end}" for start, end in question.within)},
        )
        items.append(item)
    return World(spec.id, tuple(facts), tuple(items))


def _state_and_ask(draft: RelationDraft, settings: RelationsSettings, spec: WorldSpec) -> list[RelationQuestion]:
    """State all facts, and ask `n_items` different questions; none where there are not as many."""
    random, edges = draft.random, draft.edges
    some = random.sample(edges, min(len(edges), settings.updates + settings.disputed))
    updated, disputed = some[: settings.updates], some[settings.updates :]
    for edge in edges:
        if edge in updated:
            draft.update(edge)
        elif edge in disputed:
            draft.dispute(edge)
        else:
            draft.state(edge, random.random() < settings.testimony)
    for kind, edge in zip(cycle(random.sample(DISTRACTIONS, 3)), random.sample(edges, min(len(edges), settings.distractors)), strict=False):
        draft.distract(edge, kind)
    plan, ends = [], {"disputed": disputed, "now": updated, "before": updated}
    for number in range(settings.n_items):
        turn = spec.index * settings.n_items + number
        about, hops = settings.about[turn % len(settings.about)], settings.hops[turn % len(settings.hops)]
        last = [edge for edge in ends.get(about, edges) if all(edge != question.steps[-1].edge for question in plan)]
        steps = _steps(draft, last, 1 if about in ("now", "before") else hops, settings.reverse if about == "chain" else 0.0)
        if not steps:
            return []
        answer = draft.was[steps[-1].edge] if about == "before" else steps[-1].end
        text, within = _question(draft.words, steps, about)
        plan.append(RelationQuestion(steps, about, text, answer, within))
    return plan


def _steps(draft: RelationDraft, last: Sequence[DraftEdge], hops: int, reverse: float) -> tuple[RelationStep, ...]:
    """Steps through different entities that end over one of these edges, or none. One leads back where its tail has one head."""
    random = draft.random

    def into(name: str, before: frozenset[str], left: int) -> tuple[RelationStep, ...] | None:
        """Steps that end at a name."""
        if not left:
            return ()
        for edge in random.sample(draft.edges, len(draft.edges)):
            for step in (RelationStep(edge), RelationStep(edge, back=True)):
                if step.end != name or step.start in before:
                    continue
                if step.back and not (random.random() < reverse and _has_single_head(draft, edge)):
                    continue
                if (earlier := into(step.start, before | {step.start}, left - 1)) is not None:
                    return (*earlier, step)
        return None

    for edge in random.sample(last, len(last)):
        step = RelationStep(edge, back=random.random() < reverse and _has_single_head(draft, edge))
        if (earlier := into(step.start, frozenset({step.start, step.end}), hops - 1)) is not None:
            return (*earlier, step)
    return ()


def _has_single_head(draft: RelationDraft, edge: DraftEdge) -> bool:
    """Whether no other head was stated for this tail and relation, and no other tail for this head."""
    tails = [other for other in draft.edges if other.relation == edge.relation and edge.tail in (other.tail, *draft.refuted.get(other, ()))]
    return tails == [edge] and edge not in draft.refuted


def _question(words: DraftWords, steps: Sequence[RelationStep], about: About) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The question over these steps, from the inside to the outside, and where in it each of them is asked."""
    text, within = steps[0].start, list[tuple[int, int]]()

    def around(form: str, slot: str) -> None:
        nonlocal text
        begin = form.index(slot)
        within[:] = [(start + begin, end + begin) for start, end in within]
        text = sentence(form.replace(slot, text)) if form.endswith("?") or slot == "{q}" else form.replace(slot, text)

    for number, step in enumerate(steps, 1):
        relation, nested, slot = step.edge.relation, number > 1, "{t}" if step.back else "{h}"
        phrases = relation.head_phrases if step.back else relation.tail_phrases
        if about in ("now", "before"):
            form = words.frame("questions", about).replace("{noun}", relation.noun)
        elif number < len(steps):
            form = words.choose(phrases, nested)
        elif step.back:
            form = f"{'Who' if relation.head == 'person' else 'What'} is {words.choose(phrases, nested)}?"
        else:
            form = words.choose(relation.questions, nested)
        around(form, slot)
        within.append((0, len(text)))
    if about not in ("now", "before") and words.random.random() < WRAPPED:
        form = words.frame("questions", "wraps")
        if form.partition("{q}")[0].rstrip()[-1:] not in (*".:?!", ""):
            text = lowered(text)
        around(form, "{q}")
    return sentence(text), tuple(within)


def hide(world: World, item: Item, number: int) -> Hide:
    """Leave out one step, which the number draws: all statements of its head and relation."""
    left_out = item.gold_facts[number % len(item.gold_facts)]
    [slots] = (fact.slots for fact in world.facts if fact.id == left_out)
    return lambda fact: None if all(fact.slots[slot] == slots[slot] for slot in ("head", "relation")) else fact


def is_answerable(facts: Sequence[Fact], item: Item) -> bool:
    """Whether facts lead over all steps of a question."""
    reached = {item.cue.get("head") or item.cue["tail"]}
    for step in item.cue["path"].split():
        start, end = ("tail", "head") if step.startswith("^") else ("head", "tail")
        of = [fact.slots for fact in facts if fact.slots["relation"] == step.removeprefix("^")]
        reached = {slots[end] for slots in of if slots[start] in reached}
    return bool(reached)


RELATIONS = Suite(
    "relations",
    "chains in the words of a bank of relations that training never saw, with witnesses, updates and denials",
    RelationsSettings,
    make_world,
    answer_budget=16,
    hide=hide,
    is_answerable=is_answerable,
    reads=lambda settings: files(*SPLIT_PARTS, *FURTHER_PARTS),
    order=6,
    asks="joined facts in other words",
)
