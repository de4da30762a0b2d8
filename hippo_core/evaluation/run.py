"""Ask a model every item of a set of worlds with what one method brings; one row an item. The loop of every experiment that asks."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from hippo_core.delivery import BESIDE_PROMPT
from hippo_core.delivery.types import Delivered, Once, Question
from hippo_core.errors import LabError
from hippo_core.evaluation.asked import asked_of
from hippo_core.evaluation.table import COLUMNS
from hippo_core.methods.base import Method, Observation, Query, Read, Retrieved
from hippo_core.methods.controls import CHOOSING, Controlled, open_controlled
from hippo_core.methods.self_ask import composed_by, left_of, read_of
from hippo_core.models.abstention import NEVER, unknown_tokens
from hippo_core.models.generate import kv_cache_mb
from hippo_core.models.language_model import LanguageModel
from hippo_core.results.scores import abstained, score_item, score_ranking
from hippo_core.store.trace import Trace
from hippo_core.suites.lookup import TextLookup
from hippo_core.suites.types import Item, Regime, Suite, World


@dataclass(frozen=True)
class AnsweredItem:
    """An item with what was retrieved for it, the `passages` of its world, those that the method had (`opened`), and the answer. `read`:
    what the model read of the item's own, and who wrote it. `forced`: the answer where "unknown" may not be said. `once`: its share of what
    is run once for its world, milliseconds and tokens."""

    world: World
    item: Item
    retrieved: Retrieved
    passages: Sequence[Trace]
    opened: Sequence[Trace]
    answer: Delivered
    read: tuple[Read, ...]
    forced: str
    once: Once


def answer(
    lm: LanguageModel, suite: Suite, worlds: Sequence[World], method: Method, regime: Regime = "delayed", batch_size: int = 32
) -> pd.DataFrame:
    """The row table of the items of `worlds`, in their order: prompt, answer (greedy, within the suite's budget), scores, recall of the
    gold facts, cost.

    `first_logprob` is the log-probability (nats) of the answer's first token; `forced` is the answer where "unknown" may not be said.
    `computed_tokens` and `latency_ms` are what `pred` cost: all that was run for the question, its part of what was run for several, and
    nothing of `forced`. `once_tokens`: its share of what is run once for its world, the index and stored traces.

    Raises:
        LabError: the suite does not have the regime, or a fact's text stands in a prompt that must not hold it.
    """
    passages = {world.id: passages_of(world) for world in worlds}
    asked = ask(suite, worlds, method, regime, passages, batch_size)
    rows = [row_of(lm, suite, answered) | method.own_columns("test", answered.retrieved.columns) for answered in asked]
    columns = [*COLUMNS, *suite.measures, *method.columns.get("test", ())]
    return pd.DataFrame([{"idx": number, **row} for number, row in enumerate(rows)], columns=columns)


def passages_of(world: World) -> list[Trace]:
    """The facts of a world as passages, for methods that are not taught beforehand."""
    return [Observation.of(fact).trace(id=number) for number, fact in enumerate(world.facts, start=1)]


def ask(
    suite: Suite, worlds: Sequence[World], method: Method, regime: Regime, passages: Mapping[str, Sequence[Trace]], batch_size: int
) -> Iterator[AnsweredItem]:
    """Every item of the worlds, in their order, asked with what the method brings of its world's `passages`. What a memory or a delivery
    keeps of worlds is let go of once these were asked about."""
    if regime == "immediate" and not method.ignores_window and not suite.has_window:
        raise LabError(f"suite {suite.name} has no window: its facts are taught in another session; use regime=delayed")
    keeps = bool(method.steps) or method.settings.delivery != "text"
    for numbers in groups(worlds, batch_size if keeps else None):
        drawn = [entry for number in numbers for entry in _retrieved(suite, worlds, number, method, regime, passages)]
        questions = [asked_of(method, item.question, result) for _, item, (result, _) in drawn]
        as_stored = [question for question, (_, _, (result, _)) in zip(questions, drawn, strict=True) if not result.composed]
        ready = method.delivery.make_ready(as_stored) if method.steps else Once()
        once = math.fsum(method.index_tokens(passages.get(worlds[number].id, ())) for number in numbers)
        once += math.fsum(result.once_tokens for _, _, (result, _) in drawn) + ready.tokens
        share = Once(ready.ms / max(1, len(drawn)), once / max(1, len(drawn)))
        masked = method.settings.control == "empty"
        answers = method.delivery.ask(questions, suite.answer_budget, batch_size, masked=masked)
        forced = _forced(method, suite, questions, answers, batch_size, masked)
        texts = {worlds[number].id: texts_of(worlds[number]) for number in numbers}
        for (world, item, (result, opened)), delivered, other in zip(drawn, answers, forced, strict=True):
            read = read_of(item.question, result, delivered, masked)
            answered = AnsweredItem(world, item, result, passages.get(world.id, ()), opened, delivered, read, other, share)
            check_no_leak(answered, texts[world.id], method, regime)
            yield answered
        method.forget()


def _forced(
    method: Method, suite: Suite, questions: Sequence[Question], answers: Sequence[Delivered], batch_size: int, masked: bool
) -> list[str]:
    """The answers where "unknown" is not allowed: those that said it are asked again, at no question's cost."""
    abstaining = [number for number, delivered in enumerate(answers) if abstained(delivered.text)]
    without_unknown = [replace(questions[number], penalty=NEVER) for number in abstaining]
    again = method.delivery.ask(without_unknown, suite.answer_budget, batch_size, masked=masked) if abstaining else []
    others = {number: delivered.text for number, delivered in zip(abstaining, again, strict=True)}
    return [others.get(number, delivered.text) for number, delivered in enumerate(answers)]


def groups(worlds: Sequence[World], batch_size: int | None) -> Iterator[list[int]]:
    """Numbers of neighbouring worlds whose items fill a batch, or more where one world does; all together without a batch size."""
    numbers: list[int] = []
    items = 0
    for number, world in enumerate(worlds):
        numbers.append(number)
        items += len(world.items)
        if number + 1 == len(worlds) or (batch_size is not None and items >= batch_size):
            yield numbers
            numbers, items = [], 0


def _retrieved(
    suite: Suite, worlds: Sequence[World], number: int, method: Method, regime: Regime, passages: Mapping[str, Sequence[Trace]]
) -> Iterator[tuple[World, Item, Controlled]]:
    world = worlds[number]
    own, others = passages.get(world.id, ()), passages.get(worlds[number - 1].id, ())
    retrieve = open_controlled(method, own, others, [item.question for item in world.items])
    for item in world.items:
        query = Query(item.question, item.taught, item.window if regime == "immediate" else (), suite.answer_budget)
        yield world, item, retrieve(item, query)


def texts_of(world: World) -> TextLookup:
    """What the facts of a world say."""
    return TextLookup({fact.id: fact.text for fact in world.facts})


def check_no_leak(answered: AnsweredItem, texts: TextLookup, method: Method, regime: Regime) -> None:
    """Raise LabError where a fact of the item's world stands in its prompt and was not put there: keys and values are not, nor is the
    window in another session, unless a control chose it."""
    allowed = [] if method.settings.delivery in BESIDE_PROMPT else [trace.text for trace in answered.retrieved.delivered]
    if not method.ignores_window and regime == "delayed" and method.settings.control not in CHOOSING:
        allowed = []
    prompt = answered.answer.prompt
    for text in sorted(allowed, key=len, reverse=True):
        prompt = prompt.replace(text, "")
    if leaked := texts.inside(prompt):
        raise LabError(f"leak: the prompt of item {answered.item.id} holds facts, though they may not be shown: {', '.join(leaked)}")


def row_of(lm: LanguageModel, suite: Suite, answered: AnsweredItem) -> dict[str, Any]:
    """The columns of an item, but for `idx`."""
    item, retrieved, delivered = answered.item, answered.retrieved, answered.answer
    shown = left_of(retrieved, delivered)
    tokens = delivered.prompt_tokens + delivered.generated_tokens
    flags = {"truncated": delivered.dropped > 0, "cut": delivered.cut, "generic_template": lm.template.origin == "generic"}
    return {
        "item_id": item.id,
        **{name: getattr(item, name) for name in ("world", "kind", "rung", "hops", "distance", "question")},
        **{name: getattr(delivered, name) for name in ("prompt", "prompt_tokens", "generated_tokens", "trace_tokens", "latency_ms")},
        "lag": _lag(item),
        "stage": "test",
        "slices": ";".join(item.slices),
        "answer": " | ".join(item.answers),
        "pred": delivered.text,
        **score_item(suite, answered.world, item, delivered.text),
        "forced": answered.forced,
        "score_forced": score_item(suite, answered.world, item, answered.forced)["score"],
        "unknown_margin": _margin(lm, delivered),
        "confidence": math.nan if retrieved.confidence is None else retrieved.confidence,
        "evidence": _evidence(retrieved),
        "shown": ";".join(trace.source for trace in shown),
        "recalled_texts": _recalled_texts(retrieved, shown),
        "read": json.dumps(answered.read, ensure_ascii=False),
        "inner_read": json.dumps(retrieved.inner_read, ensure_ascii=False) if retrieved.inner_read else "",
        "composed_by": composed_by(answered.read, retrieved, delivered),
        "found": _has_all_gold(shown, item),
        "n_shown": len(shown),
        "n_dropped": delivered.dropped,
        **score_ranking(retrieved.ranking, item),
        "computed_tokens": retrieved.computed_tokens + delivered.computed_tokens + delivered.generated_tokens,
        "once_tokens": answered.once.tokens,
        "first_logprob": round(delivered.first_logprob, 6),
        "kv_mb": kv_cache_mb(lm.config, tokens, lm.model.dtype.itemsize),
        "retrieval_ms": retrieved.retrieval_ms,
        "flags": ";".join(flag for flag, stands in flags.items() if stands),
    }


def _lag(item: Item) -> float:
    """How many facts were told since the last gold one, of all that were taught: the distractors since then; NaN without a gold fact."""
    positions = [number for number, source in enumerate(item.taught) if item.retold.get(source, source) in item.gold_facts]
    return float(len(item.taught) - 1 - positions[-1]) if positions else math.nan


def _margin(lm: LanguageModel, delivered: Delivered) -> float:
    """How much likelier the answer began with "unknown" than with anything else, in nats; minus infinity where it did and went on to be
    another answer."""
    margin = round(delivered.unknown_margin, 6)
    if margin > 0 and not abstained(delivered.text) and delivered.tokens[0] in (lm.unknown or unknown_tokens(lm)).first:
        return -math.inf
    return margin


def _evidence(retrieved: Retrieved) -> float:
    """How well what was retrieved fits the question, as far as the method can tell: its confidence, else its best score, else NaN."""
    return max(retrieved.scores, default=math.nan) if retrieved.confidence is None else retrieved.confidence


def _has_all_gold(shown: Sequence[Trace], item: Item) -> float:
    """Whether all gold facts, or their restatements, are among what was shown: 1 or 0, NaN where there are none."""
    sources = {item.retold.get(trace.source, trace.source) for trace in shown}
    return float(sources >= set(item.gold_facts)) if item.gold_facts else math.nan


def _recalled_texts(retrieved: Retrieved, shown: Sequence[Trace]) -> str:
    """What a ranking showed the model, best first: a JSON list of [text, score or null], empty where nothing was ranked. What was
    shown without a rank comes last, in order of time."""
    if retrieved.ranking is None:
        return ""
    ranks = {(trace.memory, trace.world, trace.id): rank for rank, trace in enumerate(retrieved.ranking)}
    scores = dict(enumerate(retrieved.scores))
    placed = sorted((ranks.get((trace.memory, trace.world, trace.id), len(ranks)), number) for number, trace in enumerate(shown))
    texts = [(shown[number].text, scores.get(rank)) for rank, number in placed]
    return json.dumps([[text, None if score is None else round(score, 4)] for text, score in texts], ensure_ascii=False)
