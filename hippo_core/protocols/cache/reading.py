"""What probes read from their caches."""

import math
from collections.abc import Sequence

from hippo_core.models.ask import Ask, ask
from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import stops
from hippo_core.models.score import log_likelihood_behind
from hippo_core.protocols.cache.probe import BATCH, Written
from hippo_core.results.scores import em_norm
from hippo_core.suites import get_suite


def read(lm: LanguageModel, written: Sequence[Written], repaired: Sequence[Sequence[KV]]) -> list[dict[str, float]]:
    """What each probe reads: `loss`, nats a token of what is right, and `score`.

    The score of text is the share of tokens that are the likeliest by e^-loss, the geometric mean of their probabilities; of a choice
    whether the right answer is the likeliest, of a question in words whether the answer is right. A likelihood that is not a number, or
    less than a guess among all tokens, counts as that guess.
    """
    pairs = [(number, row) for number, at in enumerate(written) for row in range(len(at.probe.reads))]
    before = [(written[number].prefix, *repaired[number]) for number, _ in pairs]
    starts = [written[number].probe.start for number, _ in pairs]
    rows = [list(written[number].probe.reads[row]) for number, row in pairs]
    worst = math.log(lm.config.vocab_size)
    means: dict[tuple[int, int], float] = {}
    for (number, row), nats in zip(pairs, log_likelihood_behind(lm, before, starts, rows, BATCH), strict=True):
        own = [worst if math.isnan(value) or math.isinf(value) else -value for value in nats[written[number].probe.skip[row] - 1 :]]
        means[number, row] = math.fsum(own) / len(own)
    answers = in_words(lm, written, repaired)
    results = []
    for number, at in enumerate(written):
        probe = at.probe
        losses = [means[number, row] for row in range(len(probe.reads))]
        right = losses[probe.gold]
        if probe.item:
            score = float(em_norm(answers[number], probe.item.answers))
        elif len(losses) > 1:
            score = float(all(right < loss for row, loss in enumerate(losses) if row != probe.gold))
        else:
            score = math.exp(-right)
        results.append({"loss": right, "score": score})
    return results


def in_words(lm: LanguageModel, written: Sequence[Written], repaired: Sequence[Sequence[KV]]) -> dict[int, str]:
    """The greedy answers to the probes that are questions, by number."""
    asked = {number: at for number, at in enumerate(written) if at.probe.item}
    asks = [Ask(list(at.probe.reads[0][: at.probe.skip[0]]), (at.prefix, *repaired[n]), at.probe.start) for n, at in asked.items()]
    answers = ask(lm, asks, get_suite("episodic").answer_budget, stops(lm, "short"), BATCH)
    return {number: answer.text for number, answer in zip(asked, answers, strict=True)}
