"""How far "unknown" is held back: at the first token of an answer and nowhere else, row by row, in every way of asking."""

import math
from dataclasses import replace

import pytest
import torch

from hippo_core.models.abstention import ALWAYS, NEVER, first_tokens, unknown_tokens
from hippo_core.models.ask import Ask, ask
from hippo_core.models.generate import generate
from hippo_core.models.kv import encode_blocks
from hippo_core.models.language_model import UnknownTokens
from hippo_core.models.load import load
from hippo_core.models.prompt import render, split
from hippo_core.models.spec import load_spec

QUESTIONS = ["Who sold a guitar?", "Where did Otto move?", "What did Nils lose?", "Who is it?"]


@pytest.fixture(scope="module")
def tiny():
    return load(load_spec("hippo-tiny"), device="cpu")


@pytest.fixture(params=["qwen2", "llama"])
def lm(request, loaded):
    """The random models, but for that which sees a few tokens only."""
    return loaded[request.param]


def with_penalty(lm, nats):
    return replace(lm, spec=lm.spec.model_copy(update={"abstention_penalty": nats}))


def prompts(lm):
    return [render(lm, [], question, "short") for question in QUESTIONS]


def asks(lm, penalties=None):
    pieces = [split(lm, [], question, "short") for question in QUESTIONS]
    prefix = encode_blocks(lm, pieces[0].prefix, []).prefix
    return [
        Ask(piece.tail, (prefix,), len(piece.prefix), penalty=penalty)
        for piece, penalty in zip(pieces, penalties or [None] * 4, strict=True)
    ]


def test_unknown_is_one_token_behind_the_prompts_of_the_labs_own_model(tiny):
    assert [tiny.tokenizer.decode([token]).strip() for token in tiny.unknown.first] == ["unknown"]
    assert tiny.unknown.word == tiny.unknown.first


def test_where_unknown_is_several_tokens_its_first_pieces_count_and_no_space_does(lm):
    unknown = unknown_tokens(lm)
    assert lm.tokenizer.decode(unknown.word).strip() == "unknown"
    assert len(unknown.word) > 1
    assert all(lm.tokenizer.decode([token]).strip() for token in unknown.first)
    assert unknown.word[0] in unknown.first


def test_a_penalty_is_taken_from_the_tokens_of_unknown_alone(lm):
    lm = replace(lm, unknown=UnknownTokens((2, 4), (4, 1)))
    logprobs = torch.tensor([[-3.0, -2.5, -2.0, -9.0, -1.0]] * 6)
    before = logprobs.clone()
    token, decided = first_tokens(lm, logprobs, [None, 0.5, 1.25, 1.75, NEVER, ALWAYS])
    assert token.tolist() == [4, 4, 4, 1, 1, 4]
    assert decided == [(), (), (), (), (), (4, 1)]
    assert first_tokens(with_penalty(lm, 1.75), logprobs)[0].tolist() == [1] * 6
    assert torch.equal(logprobs, before)


def in_both_modes(lm, penalties=None):
    return generate(lm, prompts(lm), 8, penalties=penalties), ask(lm, asks(lm, penalties), 8, batch_size=3)


def test_held_back_far_enough_the_model_says_something_else(tiny):
    for free, penalised in zip(in_both_modes(with_penalty(tiny, 0.0)), in_both_modes(with_penalty(tiny, 50.0)), strict=True):
        assert {answer.text for answer in free} == {"unknown"}  # nothing stands in front
        assert "unknown" not in {answer.text for answer in penalised}
        for free_answer, penalised_answer in zip(free, penalised, strict=True):
            assert free_answer.first_logprob > penalised_answer.first_logprob  # what the model itself gave to the token that was chosen
            assert penalised_answer.first_logprob > -30


def test_an_answer_says_how_near_unknown_was_whatever_was_held_back(tiny):
    free, forbidden, penalised = (
        in_both_modes(with_penalty(tiny, nats), of) for nats, of in ((0.0, None), (0.0, [NEVER] * 4), (1.5, None))
    )
    for mode in range(2):
        due = [answer.first_logprob - other.first_logprob for answer, other in zip(free[mode], forbidden[mode], strict=True)]
        assert min(due) > 0
        for answers, less in ((free, 0.0), (forbidden, 0.0), (penalised, 1.5)):
            assert [answer.unknown_margin + less for answer in answers[mode]] == pytest.approx(due, abs=1e-4)


def test_each_row_has_its_own_penalty_and_the_model_s_where_none_is_given(tiny):
    mixed = [NEVER, None, ALWAYS, 0.0]
    for free, penalised, answers in zip(
        in_both_modes(with_penalty(tiny, 0.0)),
        in_both_modes(tiny, [NEVER] * 4),
        in_both_modes(with_penalty(tiny, 50.0), mixed),
        strict=True,
    ):
        due = [penalised[0], penalised[1], free[2], free[3]]
        assert [answer.text for answer in answers] == [answer.text for answer in due]
        assert [answer.first_logprob for answer in answers] == pytest.approx([answer.first_logprob for answer in due], abs=1e-4)


def test_always_is_unknown_and_nothing_else_whatever_the_tokens(lm):
    alone = generate(lm, prompts(lm), 12, penalties=[0.0] * 4)
    for answers in in_both_modes(lm, [ALWAYS, 0.0, ALWAYS, 0.0]):
        assert [answers[row].text for row in (0, 2)] == ["unknown"] * 2
        assert [answers[row].tokens for row in (0, 2)] == [lm.unknown.word] * 2
        assert all(math.isfinite(answer.first_logprob) for answer in answers)
        assert [answers[row].tokens[:1] for row in (1, 3)] == [alone[row].tokens[:1] for row in (1, 3)]


def test_later_tokens_are_not_held_back(lm):
    """Whatever a model says second in its answer counts here as "unknown": the answer stays."""
    [free] = generate(lm, prompts(lm)[:1], 8, penalties=[0.0])
    later = next(token for token in free.tokens[1:] if token != free.tokens[0])
    changed = replace(with_penalty(lm, 1000.0), unknown=UnknownTokens((later,), (later,)))
    assert generate(changed, prompts(lm)[:1], 8)[0].tokens == free.tokens
    assert ask(changed, asks(lm)[:1], 8)[0].tokens == free.tokens
