"""Facts as blocks: one is the plain prompt, the order of two means nothing, a batch equals one by one, a 4-D mask says the same."""

import dataclasses

import pytest
import torch
from transformers import AutoModelForCausalLM

from hippo_core.errors import LabError
from hippo_core.models.ask import Ask, ask, ask_blocks
from hippo_core.models.generate import generate
from hippo_core.models.kv import encode_blocks, inputs, tokens_of
from hippo_core.models.prompt import render, split
from tests.models.handmade import WORLD_TEXTS

FACTS = WORLD_TEXTS["test-00000"]
QUESTION = "Who sold a guitar?"
CLOSE = 1e-5  # of logits about 10 in size: float32 sums in another order


@pytest.fixture(params=["qwen2", "llama", "phi3"])
def lm(request, loaded, folders):
    """Each random model in turn, none with a sliding window."""
    if request.param != "phi3":
        return loaded[request.param]
    model = AutoModelForCausalLM.from_pretrained(folders["phi3"], sliding_window=None, trust_remote_code=False, use_safetensors=True)
    return dataclasses.replace(loaded["phi3"], model=model.eval())


@torch.inference_mode()
def logits(lm, prefix, blocks, tail: list[int]) -> torch.Tensor:
    """Of the token after the tail."""
    start = tokens_of(prefix) + max(map(tokens_of, blocks), default=0)
    return lm.model(**inputs(lm, [tail], [[prefix, *blocks]], [start]), logits_to_keep=1).logits[0, -1]


@torch.inference_mode()
def plain_logits(lm, ids: list[int]) -> torch.Tensor:
    return lm.model(torch.tensor([ids])).logits[0, -1]


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=CLOSE, atol=CLOSE * b.abs().max().item())


@pytest.mark.parametrize("decoding", ["short", "plain"])
def test_one_block_is_the_plain_prompt_with_that_fact(lm, decoding):
    for fact in FACTS:
        pieces = split(lm, [fact], QUESTION, decoding)
        made = encode_blocks(lm, pieces.prefix, pieces.blocks)
        ids = [*pieces.prefix, *pieces.blocks[0], *pieces.tail]
        assert close(logits(lm, made.prefix, made.blocks, pieces.tail), plain_logits(lm, ids))
        [answer] = ask_blocks(lm, made.prefix, [made.blocks], [pieces.tail], 8)
        assert answer.prompt_tokens == len(ids)
        assert answer.computed_tokens == len(pieces.tail)
        if pieces.exact:
            assert answer.tokens == generate(lm, [render(lm, [fact], QUESTION, decoding)], 8)[0].tokens


def test_the_order_of_blocks_means_nothing(lm):
    pieces = split(lm, FACTS, QUESTION, "short")
    made = encode_blocks(lm, pieces.prefix, pieces.blocks)
    first = logits(lm, made.prefix, made.blocks, pieces.tail)
    assert close(logits(lm, made.prefix, made.blocks[::-1], pieces.tail), first)
    assert not close(logits(lm, made.prefix, made.blocks[1:], pieces.tail), first)


@torch.inference_mode()
def test_it_is_one_pass_with_overlapping_positions_and_a_mask_between_blocks(lm):
    pieces = split(lm, FACTS[:4], QUESTION, "short")
    made = encode_blocks(lm, pieces.prefix, pieces.blocks)
    parts = [pieces.prefix, *pieces.blocks, pieces.tail]
    of = torch.tensor([part for part, ids in enumerate(parts) for _ in ids])
    after_blocks = len(pieces.prefix) + max(map(len, pieces.blocks))
    begins = [0, *[len(pieces.prefix)] * len(pieces.blocks), after_blocks]
    positions = torch.tensor([begin + offset for begin, ids in zip(begins, parts, strict=True) for offset in range(len(ids))])
    sees = (of[:, None] == of) | (of == 0) | (of[:, None] == len(parts) - 1)
    mask = (sees & torch.ones_like(sees).tril())[None, None]
    ids = torch.tensor([[token for part in parts for token in part]])
    due = lm.model(ids, attention_mask=mask, position_ids=positions[None]).logits[0, -1]
    assert close(logits(lm, made.prefix, made.blocks, pieces.tail), due)


@pytest.mark.parametrize("batch_size", [2, 32])
def test_a_batch_of_many_equals_one_by_one(lm, batch_size):
    pieces = split(lm, FACTS, QUESTION, "short")
    made = encode_blocks(lm, pieces.prefix, pieces.blocks)
    chosen = [made.blocks[:count] for count in (0, 1, 3, 8)] + [made.blocks[4:6], made.blocks[7:]]
    tails = [split(lm, [], question, "short").tail for question in ["Who?", QUESTION, "Where did Otto move?", "Ivo?", QUESTION, "Lena?"]]
    batched = ask_blocks(lm, made.prefix, chosen, tails, 8, batch_size=batch_size)
    alone = [ask_blocks(lm, made.prefix, [blocks], [tail], 8)[0] for blocks, tail in zip(chosen, tails, strict=True)]
    assert [answer.tokens for answer in batched] == [answer.tokens for answer in alone]
    assert [answer.prompt_tokens for answer in batched] == [answer.prompt_tokens for answer in alone]


def test_hidden_tokens_of_a_row_are_run_and_not_seen(lm):
    first, between, last = (lm.encode(fact) for fact in FACTS[:3])
    prefix = encode_blocks(lm, first, []).prefix
    hidden = range(len(first), len(first) + len(between))
    rows = [Ask([*between, *last], (prefix,), len(first), hidden), Ask(last, (prefix,), len(first))]
    hidden, other = ask(lm, rows, 8)
    assert hidden.tokens == other.tokens
    assert (hidden.prompt_tokens, hidden.computed_tokens) == (len(first) + len(last), len(between) + len(last))


def test_blocks_without_a_prefix(lm):
    made = encode_blocks(lm, [], [lm.encode(FACTS[0])])
    assert tokens_of(made.prefix) == 0
    tail = lm.encode(QUESTION)
    assert close(logits(lm, made.prefix, made.blocks, tail), plain_logits(lm, lm.encode(FACTS[0]) + tail))
    [answer] = ask_blocks(lm, made.prefix, [[]], [tail], 8)
    assert answer.tokens == generate(lm, [QUESTION], 8)[0].tokens


def test_an_empty_tail_is_refused(lm):
    made = encode_blocks(lm, lm.encode("Mara"), [])
    with pytest.raises(LabError, match="an empty tail"):
        ask_blocks(lm, made.prefix, [[]], [[]], 8)


def test_a_model_that_sees_too_little_is_refused(loaded):
    lm = loaded["phi3"]  # a sliding window of 24 tokens
    pieces = split(lm, FACTS, QUESTION, "short")
    made = encode_blocks(lm, pieces.prefix, pieces.blocks)
    with pytest.raises(LabError, match="sees the last 24 tokens only"):
        ask_blocks(lm, made.prefix, [made.blocks], [pieces.tail], 8)


def test_a_block_does_not_know_its_neighbours(lm):
    pieces = split(lm, FACTS, QUESTION, "short")
    together = encode_blocks(lm, pieces.prefix, pieces.blocks, batch_size=3)
    for ids, block in zip(pieces.blocks, together.blocks, strict=True):
        assert tokens_of(block) == len(ids)
        [alone] = encode_blocks(lm, pieces.prefix, [ids]).blocks
        assert close(alone, block)
