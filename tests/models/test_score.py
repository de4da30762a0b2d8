"""Scores of given text: equal to a plain forward pass of one text, whatever the batch and the windows."""

import math

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.models import score
from hippo_core.models.generate import generate
from hippo_core.models.score import log_likelihood, text_loss, token_likelihood
from tests.models.handmade import WORLD_TEXTS

FACTS = WORLD_TEXTS["test-00000"]
CLOSE = 1e-4  # nats; fp32 sums over some ten tokens of logits about 10 in size


@torch.inference_mode()
def log_probabilities(lm, ids: list[int]) -> list[float]:
    """Of each token but the first, one text alone."""
    predicted = lm.model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1)
    return predicted.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


def test_likelihood_is_the_sum_over_the_continuation(lm):
    contexts, more = FACTS[:5], [" Mara", " a lamp at the station", " the", " Otto Otto Otto", "."]
    for context, text, got in zip(contexts, more, log_likelihood(lm, contexts, more, batch_size=2), strict=True):
        tokens = len(lm.encode(context + text)) - len(lm.encode(context))
        due = log_probabilities(lm, lm.encode(context + text))[-tokens:]
        assert got.tokens == tokens
        assert got.nats == pytest.approx(sum(due), abs=CLOSE)


def test_spaces_at_the_end_of_a_context_count_to_the_continuation(lm):
    assert log_likelihood(lm, ["Who? "], ["Mara"]) == log_likelihood(lm, ["Who?"], [" Mara"])


def test_an_empty_context_is_the_opening_token(lm):
    [got] = log_likelihood(lm, [""], ["Mara sold"])
    assert got.nats == pytest.approx(sum(log_probabilities(lm, [lm.tokenizer.bos_token_id, *lm.encode("Mara sold")])), abs=CLOSE)


@torch.inference_mode()
def test_greedy_says_whether_each_token_was_the_likeliest(lm):
    question = "Who sold a lamp?"
    greedy_token = lm.tokenizer.decode(generate(lm, [question], 1)[0].tokens)
    likely, unlikely = log_likelihood(lm, [question] * 2, [greedy_token, " Mara sold a lamp at the station."])
    ids = lm.encode(question + greedy_token)
    best = lm.model(torch.tensor([ids])).logits[0].argmax(-1)[len(ids) - likely.tokens - 1 : -1]
    assert likely.greedy == (best.tolist() == ids[-likely.tokens :])
    assert not unlikely.greedy


def test_loss_is_the_mean_over_all_tokens(lm):
    due = [-value for text in FACTS for value in log_probabilities(lm, lm.encode(lm.template.begin + text))]
    got = text_loss(lm, FACTS, batch_size=3)
    assert got.tokens == len(due)
    assert got.bytes == sum(map(len, FACTS))
    assert got.nats == pytest.approx(math.fsum(due), rel=1e-5)
    assert got.per_byte * got.bytes == pytest.approx(got.per_token * got.tokens)


def test_windows_predict_each_token_once(lm):
    text = " ".join(FACTS)
    ids = lm.encode(lm.template.begin + text)
    due = [-value for start in range(0, len(ids) - 1, 20) for value in log_probabilities(lm, ids[start : start + 21])]
    got = text_loss(lm, [text], window=20)
    assert got.tokens == len(due) == len(ids) - 1
    assert got.nats == pytest.approx(math.fsum(due), rel=1e-5)


def test_a_few_positions_at_a_time_or_all_at_once(lm, monkeypatch):
    loss = text_loss(lm, FACTS, window=20, batch_size=3)
    monkeypatch.setattr(score, "LOGITS", 3 * lm.config.vocab_size * 4)
    assert text_loss(lm, FACTS, window=20, batch_size=3).nats == pytest.approx(loss.nats, rel=1e-6)


def test_pairs_of_one_context_are_each_scored(lm):
    """Continuations of one token read the same; longer ones share their beginning; equal pairs get equal scores."""
    more = ["a", "b", "ab", "abc", "a"]
    batched = log_likelihood(lm, [FACTS[0]] * len(more), more)
    for text, got in zip(more, batched, strict=True):
        [alone] = log_likelihood(lm, [FACTS[0]], [text])
        assert (got.tokens, got.greedy) == (alone.tokens, alone.greedy)
        assert got.nats == pytest.approx(alone.nats, abs=CLOSE)
    assert batched[0] == batched[4]


def test_likelihoods_of_tokens_are_those_of_their_text_and_say_what_was_run(lm):
    texts = [" Mara sold a guitar", " Otto"]
    pairs = [(lm.encode("Who?"), lm.encode(f"Who?{text}")[len(lm.encode("Who?")) :]) for text in texts]
    likelihoods = token_likelihood(lm, pairs)
    assert likelihoods == log_likelihood(lm, ["Who?"] * 2, texts)
    assert [likelihood.tokens for likelihood in likelihoods] == [len(more) for _, more in pairs]
    read = [len(context) + len(more) - 1 for context, more in pairs]
    assert all(0 < likelihood.computed_tokens <= most for likelihood, most in zip(likelihoods, read, strict=True))
    [alone] = token_likelihood(lm, pairs[:1])
    assert alone.computed_tokens == read[0]
    twice = token_likelihood(lm, pairs[:1] * 2)
    assert [likelihood.computed_tokens for likelihood in twice] == [read[0] / 2] * 2


def test_a_pair_without_a_token_is_refused(lm):
    with pytest.raises(LabError, match="a continuation without a token"):
        log_likelihood(lm, ["Who?"], [""])
    with pytest.raises(LabError, match="a pair without a token in its context or its continuation"):
        token_likelihood(lm, [([1], [])])
