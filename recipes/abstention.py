"""Fit how far "unknown" is held back at the first token of a model's answers: one number, on validation worlds of many kinds.

Every question is asked with its gold facts in front, and once more with others of its world in their place, where "unknown" is right. The
answer is wanted as it is and with "unknown" forbidden; between the two stands a margin in nats, and so the answer under every penalty is
known. Nothing of a test world is seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pandas as pd

from hippo_core.delivery.text import TextDelivery
from hippo_core.delivery.types import Question
from hippo_core.models.abstention import NEVER, unknown_tokens
from hippo_core.models.artifacts import folder_of, read_part, save_part
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.scores import abstained, normalise, score_item
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Fact, Item, Suite, World
from hippo_core.suites.unanswerable import named_by
from hippo_core.text_files import why_missing
from recipes.memory_parts import provenance
from recipes.recall_weights import SEED

PART = "abstention"
GRID = tuple(step / 2 for step in range(17))  # nats
MOST_LOST = 0.05  # of the unanswerable questions of any kind
# questions of each suite, and whether its questions have no answer where their gold facts are not told
KINDS: Mapping[str, tuple[int, bool]] = {
    "episodic": (48, True),
    "episodic_cross": (48, True),
    "episodic_multi": (48, True),
    "semantic": (48, True),
    "babi": (48, False),  # who went where is known from who went there before
    "notes": (192, True),
    "squad": (48, True),
}


@dataclass(frozen=True)
class Case:
    """A question with what stands in front of it. `answerable`: whether that holds the answer."""

    kind: str
    suite: Suite
    world: World
    item: Item
    facts: tuple[Fact, ...]
    answerable: bool


@dataclass(frozen=True)
class AbstentionOutcome:
    """Whether the answer to a case is right, and whether it is "unknown", as it is up to a penalty of `margin` nats and as it is above.
    The margin is 0 or less where the model does not begin with "unknown" by itself."""

    kind: str
    answerable: bool
    margin: float
    free: tuple[float, int]
    penalised: tuple[float, int]

    def at(self, penalty: float) -> tuple[float, int]:
        """Right and "unknown" under a penalty."""
        return self.free if self.margin > penalty else self.penalised


def cases(lm: LanguageModel, kinds: Mapping[str, tuple[int, bool]] = KINDS, say: Callable[[str], None] = print) -> Iterator[Case]:
    """The questions of all kinds; a suite whose files are not in the user's folder is skipped."""
    for name, (n, has_unanswerable) in kinds.items():
        suite = get_suite(name)
        if reason := why_missing(suite.files(settings_for(name))):
            say(f"{name}: skipped, {reason}")
            continue
        for world in worlds(name, "default", n, SEED, "val", lm.spec.context_limit):
            for item in world.items:
                gold = tuple(fact for fact in world.facts if fact.id in item.gold_facts)
                if gold:
                    yield Case(name, suite, world, item, gold, True)
                if has_unanswerable and (others := others_of(world, item)):
                    yield Case(name if gold else f"{name}, nobody says", suite, world, item, others, False)


def others_of(world: World, item: Item) -> tuple[Fact, ...]:
    """Facts that were told for an item and do not answer it, drawn at random: as many as its gold facts, or one. Left out is what tells a
    gold fact again, what holds an answer or one that was refuted, and what has all slots that the question names."""
    answers = [f" {normalise(answer)} " for answer in (*item.answers, *item.refuted)]
    taught, known = set(item.taught), {*item.gold_facts, *item.retold}

    def answering(fact: Fact) -> bool:
        return named_by(item, fact) or any(answer in f" {normalise(fact.text)} " for answer in answers)

    others = [fact for fact in world.facts if fact.id in taught - known and not answering(fact)]
    count = min(max(1, len(item.gold_facts)), len(others))
    drawn = Random(f"{PART}/{item.world}/{item.id}").sample(range(len(others)), count)
    return tuple(others[number] for number in sorted(drawn))


def outcomes(lm: LanguageModel, asked: Sequence[Case]) -> list[AbstentionOutcome]:
    """What comes of these cases, which are of one suite: answered as the model does by itself, then once more with "unknown" forbidden
    where it began with that. The margin is how much more log-probability that beginning has than the likeliest other one."""
    delivery = TextDelivery(lm)

    def answers(of: Sequence[Case], penalty: float):
        questions = [Question.of_texts(case.item.question, [fact.text for fact in case.facts], penalty) for case in of]
        return delivery.ask(questions, of[0].suite.answer_budget, lm.spec.batch_size) if of else []

    free = answers(asked, 0.0)
    begin = (lm.unknown or unknown_tokens(lm)).first
    begun = [number for number, answer in enumerate(free) if answer.tokens[0] in begin]
    penalised = dict(zip(begun, answers([asked[number] for number in begun], NEVER), strict=True))
    made = []
    for number, (case, answer) in enumerate(zip(asked, free, strict=True)):
        other = penalised.get(number, answer)
        margin = answer.first_logprob - other.first_logprob if number in penalised else 0.0
        made.append(AbstentionOutcome(case.kind, case.answerable, margin, judged(case, answer.text), judged(case, other.text)))
    return made


def judged(case: Case, answer: str) -> tuple[float, int]:
    """Whether an answer is right, and whether it is "unknown"."""
    unknown = abstained(answer)
    return (score_item(case.suite, case.world, case.item, answer)["score"] if case.answerable else float(unknown)), unknown


def table_of(outcomes: Sequence[AbstentionOutcome], grid: Sequence[float] = GRID) -> pd.DataFrame:
    """One row a kind, answerable or not, and penalty: share of right answers, share of "unknown", questions."""
    rows = [(outcome.kind, outcome.answerable, penalty, *outcome.at(penalty)) for outcome in outcomes for penalty in grid]
    keys = ["kind", "answerable", "penalty"]
    grouped = pd.DataFrame(rows, columns=[*keys, "right", "unknown"]).groupby(keys, sort=False)
    return grouped.agg(right=("right", "mean"), unknown=("unknown", "mean"), n=("right", "size")).round(4).reset_index()


def chosen(table: pd.DataFrame, most_lost: float = MOST_LOST) -> float:
    """The penalty with the most right answers to answerable questions, in the mean over kinds, of those that lose of no kind of
    unanswerable questions more than `most_lost` against no penalty; of equal ones the lowest."""
    of = {answerable: part.pivot_table(index="penalty", columns="kind", values="right") for answerable, part in table.groupby("answerable")}
    mean = of[True].mean(axis=1).round(6)
    allowed = [nats for nats in sorted(mean.index) if False not in of or (of[False].loc[0] - of[False].loc[nats]).max() <= most_lost + 1e-9]
    return float(max(allowed, key=lambda nats: (mean[nats], -nats)))


def fit_abstention(lm: LanguageModel, command: str, say: Callable[[str], None] = print) -> float:
    """Measure, choose, and write `abstention.json` beside the model's weights; returns the penalty."""
    by_suite: dict[str, list[Case]] = {}
    for case in cases(lm, say=say):
        by_suite.setdefault(case.suite.name, []).append(case)
    judged_outcomes = []
    for name, asked in by_suite.items():
        judged_outcomes += outcomes(lm, asked)
        say(f"{name}: {len(asked)} questions")
    table = table_of(judged_outcomes)
    penalty = chosen(table)
    made = {"penalty": penalty, "most_lost": MOST_LOST, "seed": SEED, **provenance(command), "validation": table.to_dict("records")}
    save_part(lm, PART, made)
    return penalty


def fit_abstention_if(wanted: bool, model: str) -> str:
    """Fit where that is wanted; says which number belongs in the model's file."""
    if not wanted:
        return 'how far "unknown" is held back is left as it is (abstention = False)'
    lm = load(load_spec(model), threads=1)
    penalty = fit_abstention(lm, f"make abstention MODEL={model}")
    return f"table in {folder_of(lm)}/{PART}.json; in params/models/{model}.yaml belongs: abstention_penalty: {penalty:g}"


COLUMNS = ("kind", "answerable", "n", "right_free", "right", "unknown_free", "unknown")


def overview(made: Mapping[str, Any]) -> pd.DataFrame:
    """One row a kind of a fit: the share of right answers and of "unknown" without a penalty (`_free`) and with the one that was chosen."""
    table = pd.DataFrame(made["validation"])
    free, penalised = (table[table["penalty"] == penalty].set_index(["kind", "answerable"]) for penalty in (0.0, made["penalty"]))
    return pd.DataFrame(free.join(penalised[["right", "unknown"]], lsuffix="_free").reset_index(), columns=list(COLUMNS))


def abstention_table(lm: LanguageModel) -> pd.DataFrame:
    """The overview of a model's fit; empty where there is none."""
    if not (folder_of(lm) / f"{PART}.json").is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return overview(read_part(lm, PART))
