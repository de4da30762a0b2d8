"""Ask a model every item of a set of worlds under one condition; one row an item."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from hippo_core.conditions import Choice, Preset, Regime, WorldIndex, choose
from hippo_core.files import LabError
from hippo_core.models.blocks import ask_blocks, encode_blocks
from hippo_core.models.generate import Generation, generate, kv_cache_mb
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import Fitted, fit, split, stops
from hippo_core.results.scores import score_item
from hippo_core.suites.lookup import Texts
from hippo_core.suites.types import Item, Suite, World

COLUMNS = [
    *("idx", "item_id", "world", "stage", "kind", "rung", "hops", "distance", "slices", "question", "prompt"),
    *("answer", "pred", "em_raw", "em_norm", "f1", "success", "suboptimality", "score", "chance"),
    *("pred_len", "gold_len", "overlong", "format_violation", "refusal", "abstained"),
    *("shown", "n_shown", "n_dropped", "recall_1", "recall_3", "recall_5", "recall_10"),
    *("prompt_tokens", "generated_tokens", "first_logprob", "trace_tokens", "computed_tokens", "kv_mb"),
    *("latency_ms", "retrieval_ms", "flags"),
]
RECALL_AT = (1, 3, 5, 10)
AT_A_TIME = 2  # batches of questions whose facts are held as keys and values: 2,000 facts of a 135M model take 2 GB


@dataclass(frozen=True)
class Question:
    """An item made ready to be asked: what was chosen for it, and the prompt that was fitted to the model."""

    world: World
    item: Item
    choice: Choice
    fitted: Fitted

    @property
    def shown(self) -> list[str]:
        """Ids of the facts that stand in the prompt."""
        return [self.choice.facts[place].id for place in self.fitted.kept]


def evaluate(
    lm: LanguageModel,
    suite: Suite,
    worlds: Iterable[World],
    preset: Preset,
    regime: Regime = "delayed",
    batch_size: int = 32,
    blocks: bool = False,
) -> pd.DataFrame:
    """The row table of the items of `worlds`, in their order: prompt, answer, scores, recall of the gold facts, cost.

    `first_logprob` is the log-probability (nats) of the answer's first token. `trace_tokens` are those of the facts shown.
    `computed_tokens` are all that were run for an item, to choose its facts, to read its prompt and to answer; what was run once for
    several items is divided among them, and the index of the facts is left out.

    Decoding is greedy with the suite's answer budget. `blocks`: the facts chosen are not read as one text, each is run apart from
    the others and its keys and values are put before the question. LabError for a regime that the suite does not have, and where a
    fact's text stands in a prompt that must not hold it.
    """
    if regime == "immediate" and preset.uses_window and not suite.has_window:
        raise LabError(f"suite {suite.name} has no window: its facts are taught in another session; use regime=delayed")
    questions = [question for world in worlds for question in _questions(lm, suite, world, preset, regime)]
    if blocks:
        answers = _ask_blocks(lm, questions, preset, suite.answer_budget, batch_size)
    else:
        prompts = [question.fitted.prompt for question in questions]
        answers = generate(lm, prompts, suite.answer_budget, batch_size, stops(lm, preset.decoding))
    rows = [row_of(lm, suite, *pair) for pair in zip(questions, answers, strict=True)]
    return pd.DataFrame([{"idx": number, **row} for number, row in enumerate(rows)], columns=COLUMNS)


def _ask_blocks(lm: LanguageModel, questions: list[Question], preset: Preset, budget: int, batch_size: int) -> list[Generation]:
    """Answers with each shown fact as a block of its own, which is run once for all neighbouring questions that it is put before."""
    texts = [[question.choice.facts[place].text for place in question.fitted.kept] for question in questions]
    pieces = [split(lm, lines, question.item.question, preset.decoding) for lines, question in zip(texts, questions, strict=True)]
    answers: list[Generation] = []
    for start in range(0, len(pieces), AT_A_TIME * batch_size):
        part = pieces[start : start + AT_A_TIME * batch_size]
        different = {tuple(block): block for piece in part for block in piece.blocks}
        known = encode_blocks(lm, part[0].prefix, list(different.values()), batch_size)
        kv = dict(zip(different, known.blocks, strict=True))
        chosen = [[kv[tuple(block)] for block in piece.blocks] for piece in part]
        tails = [piece.tail for piece in part]
        answers += ask_blocks(lm, known.prefix, chosen, tails, budget, stops(lm, preset.decoding), batch_size)
    return answers


def _questions(lm: LanguageModel, suite: Suite, world: World, preset: Preset, regime: Regime) -> list[Question]:
    index, told = WorldIndex(lm, world), texts_of(world)
    questions = []
    for item in world.items:
        choice = choose(preset, lm, world, item, regime, index)
        texts = [fact.text for fact in choice.facts]
        question = Question(world, item, choice, fit(lm, texts, item.question, preset.decoding, suite.answer_budget))
        if preset.uses_window and regime == "delayed":
            check_no_leak(question, told)
        questions.append(question)
    return questions


def texts_of(world: World) -> Texts:
    """What the facts of a world say."""
    return Texts({fact.id: fact.text for fact in world.facts})


def check_no_leak(question: Question, texts: Texts) -> None:
    """Raise LabError where any of these texts, those of the facts of the world, stands in the prompt."""
    leaked = texts.inside(question.fitted.prompt)
    if leaked:
        raise LabError(f"leak: the prompt of item {question.item.id} holds facts, though nothing may be shown: {', '.join(leaked)}")


def recall_at(ranking: tuple[str, ...] | None, gold: tuple[str, ...], k: int) -> float:
    """The share of the gold facts among the k best; NaN without a ranking or without gold facts."""
    if ranking is None or not gold:
        return math.nan
    return len(set(gold) & set(ranking[:k])) / len(set(gold))


def row_of(lm: LanguageModel, suite: Suite, question: Question, answer: Generation) -> dict[str, Any]:
    item, choice, fitted = question.item, question.choice, question.fitted
    tokens = answer.prompt_tokens + answer.generated_tokens
    return {
        "item_id": item.id,
        "world": item.world,
        "stage": "test",
        "kind": item.kind,
        "rung": item.rung,
        "hops": item.hops,
        "distance": item.distance,
        "slices": ";".join(item.slices),
        "question": item.question,
        "prompt": fitted.prompt,
        "answer": " | ".join(item.answers),
        "pred": answer.text,
        **score_item(suite, question.world, item, answer.text),
        "shown": ";".join(question.shown),
        "n_shown": len(question.shown),
        "n_dropped": fitted.dropped,
        **{f"recall_{k}": recall_at(choice.ranking, item.gold_facts, k) for k in RECALL_AT},
        "prompt_tokens": answer.prompt_tokens,
        "generated_tokens": answer.generated_tokens,
        "trace_tokens": sum(len(lm.encode(f"{choice.facts[place].text}\n")) for place in fitted.kept),
        "computed_tokens": choice.computed_tokens + answer.computed_tokens + answer.generated_tokens,
        "first_logprob": round(answer.first_logprob, 6),
        "kv_mb": kv_cache_mb(lm.config, tokens, lm.model.dtype.itemsize),
        "latency_ms": answer.latency_ms,
        "retrieval_ms": choice.retrieval_ms,
        "flags": ";".join(_flags(lm, question)),
    }


def _flags(lm: LanguageModel, question: Question) -> list[str]:
    flags = {"truncated": question.fitted.dropped > 0, "generic_template": lm.template.origin == "generic"}
    return [flag for flag, stands in flags.items() if stands]
