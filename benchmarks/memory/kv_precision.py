"""What it costs to keep keys and values of passages in fewer bits: answers, first tokens, bytes, time to restore.

    HIPPO_DATA=../texts python benchmarks/memory/kv_precision.py [--model smollm2-135m-reader] [--n 60] [--suite episodic ...] [--grids]

Validation worlds, gold passages before the question (delivery kv), one thread. Columns: the share of greedy answers that equal those
of precision=model, the share that is right, the mean KL divergence (nats) of the first answer token from that of precision=model, MiB of
1,000 passages, milliseconds in which 1,000 are restored. `--grids`: the error of 8 bits by what shares a scale, with a zero point and
without: the root of the mean square of the error as a share of that of the keys, or the values.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import torch

from hippo_core.models.ask import ask_blocks
from hippo_core.models.generate import Generation
from hippo_core.models.kv import KV, StoredKV, inputs, restored, tokens_of
from hippo_core.models.kv_storage import MB, KVStorage, Precision
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.passage_kv import PassageKV, rounded
from hippo_core.models.prompt import PromptPieces, prefix_of, split, stops
from hippo_core.models.spec import load_spec
from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Item, World

SUITES, BATCH, ROUNDS = ("episodic", "notes", "squad"), 16, 5


@dataclass(frozen=True)
class Asked:
    """A question, its prompt in pieces, and the KV of its gold passages in the model's own precision."""

    world: World
    item: Item
    pieces: PromptPieces
    traces: tuple[KV, ...]


def asked(lm: LanguageModel, suite: str, n: int, passage_kv: PassageKV) -> list[Asked]:
    """The questions of validation worlds that have gold facts."""

    def each() -> Iterator[Asked]:
        for world in worlds(suite, "default", n, 1337, "val", lm.spec.context_limit):
            texts = {fact.id: fact.text for fact in world.facts}
            for item in world.items:
                pieces = split(lm, [texts[fact] for fact in texts if fact in item.gold_facts], item.question, "short")
                if pieces.blocks:
                    traces = passage_kv.get(pieces.blocks).traces
                    yield Asked(world, item, pieces, tuple(restored(kv, lm.model.dtype) for kv in traces))

    return list(each())


def answers(lm: LanguageModel, prefix: KV, questions: Sequence[Asked], traces: list[list[StoredKV]], budget: int) -> list[Generation]:
    return ask_blocks(lm, prefix, traces, [question.pieces.tail for question in questions], budget, stops(lm, "short"), BATCH)


@torch.inference_mode()
def first_tokens(lm: LanguageModel, prefix: KV, questions: Sequence[Asked], traces: Sequence[Sequence[StoredKV]]) -> torch.Tensor:
    """The log-probabilities of each answer's first token, [questions, vocabulary] float64."""
    logs = []
    for start in range(0, len(questions), BATCH):
        batch = slice(start, start + BATCH)
        starts = [tokens_of(prefix) + max(map(tokens_of, row)) for row in traces[batch]]
        given = inputs(lm, [question.pieces.tail for question in questions[batch]], [(prefix, *row) for row in traces[batch]], starts)
        logs.append(lm.model(**given, logits_to_keep=1).logits[:, -1].double().log_softmax(-1))
    return torch.cat(logs)


def restore_ms(traces: Sequence[Sequence[StoredKV]], dtype: torch.dtype) -> float:
    """Milliseconds in which 1,000 passages become tensors that a cache can take."""
    caches = [kv for row in traces for kv in row]
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for kv in caches:
            restored(kv, dtype)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6 / len(caches)


def compare(lm: LanguageModel, suite_name: str, n: int, passage_kv: PassageKV) -> Iterator[str]:
    """A line of the table for each precision."""
    suite, questions = get_suite(suite_name), asked(lm, suite_name, n, passage_kv)
    usual, logs = [], torch.zeros(0)
    for precision in get_args(Precision):
        traces = [[rounded(kv, precision) for kv in question.traces] for question in questions]
        given = [answer.text for answer in answers(lm, passage_kv.prefix, questions, traces, suite.answer_budget)]
        first = first_tokens(lm, passage_kv.prefix, questions, traces)
        if precision == "model":
            usual, logs = given, first
        right = [score_item(suite, question.world, question.item, text)["score"] for question, text in zip(questions, given, strict=True)]
        size = sum(kv.nbytes for row in traces for kv in row) / sum(map(len, traces)) * 1000 / MB
        equal = sum(map(str.__eq__, given, usual)) / len(given)
        divergence = (logs.exp() * (logs - first)).sum(-1).mean()
        shares = f"{equal:.3f} | {sum(right) / len(right):.3f} | {divergence:.2e}"
        yield f"| {suite_name} | {precision} | {len(given)} | {shares} | {size:,.1f} | {restore_ms(traces, lm.model.dtype):,.0f} |"


def grids(lm: LanguageModel, suite: str, n: int, passage_kv: PassageKV) -> Iterator[str]:
    """A line of the table of errors for keys and for values."""
    caches = [kv for question in asked(lm, suite, n, passage_kv) for kv in question.traces]
    for name, part in (("keys", 0), ("values", 1)):
        cells = []
        for dim in (-2, -1):
            for zero_point in (False, True):
                pairs = [(kv[:, part], on_grid(kv[:, part], dim, zero_point)) for kv in caches]
                error, size = sum(float(((b - a) ** 2).sum()) for a, b in pairs), sum(float((a**2).sum()) for a, _ in pairs)
                cells.append(f"{(error / size) ** 0.5:.5f}")
        yield f"| {suite} | {name} | {' | '.join(cells)} |"


def on_grid(values: torch.Tensor, dim: int, zero_point: bool) -> torch.Tensor:
    """Values in 8 bits and back, of one scale along `dim`."""
    low, high = values.amin(dim, True), values.amax(dim, True)
    centre = (low + high) / 2 if zero_point else torch.zeros_like(low)
    scale = (values - centre).abs().amax(dim, True).clamp(min=1e-9) / 127
    return ((values - centre) / scale).round() * scale + centre


def main() -> None:
    """Print both tables, or one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="smollm2-135m-reader")
    parser.add_argument("--n", type=int, default=60, help="questions a suite")
    parser.add_argument("--suite", nargs="+", default=None, help="episodic, notes, and squad where HIPPO_DATA has it")
    parser.add_argument("--grids", action="store_true", help="errors by grid, in place of answers")
    options = parser.parse_args()
    suites = options.suite or [suite for suite in SUITES if suite != "squad" or os.environ.get("HIPPO_DATA")]
    lm = load(load_spec(options.model), threads=1)
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), KVStorage("none", precision="model"))
    print(f"{options.model}, validation worlds, gold passages before the question, one thread\n")
    if options.grids:
        print("| suite | of | channel | channel, zero point | token | token, zero point |\n|---|---|--:|--:|--:|--:|")
    else:
        print("| suite | precision | n | equal answers | right | KL (nats) | MiB, 1,000 passages | ms to restore 1,000 |")
        print("|---|---|--:|--:|--:|--:|--:|--:|")
    for suite in suites:
        for line in (grids if options.grids else compare)(lm, suite, options.n, passage_kv):
            print(line, flush=True)


if __name__ == "__main__":
    main()
