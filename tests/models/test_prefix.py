"""What is shared: plans whose batches hold every row once, never cost more than without sharing, and change no answer."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Lfm2Config, Lfm2ForCausalLM

from hippo_core.errors import LabError
from hippo_core.models.generate import generate
from hippo_core.models.kv import encode_blocks
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prefix import A_PASS, plan
from hippo_core.models.prompt import render
from hippo_core.models.score import log_likelihood
from hippo_core.models.spec import ModelSpec
from hippo_core.models.template import template_for
from tests.models.handmade import CHATML, WORLD_TEXTS, tokenizer

SYSTEM, WORLD, OTHER = list(range(100, 200)), list(range(300)), list(range(500, 720))
ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=40), min_size=1, max_size=12)


def world(beginning: list[int], facts: list[int], count: int) -> list[list[int]]:
    return [[*beginning, *facts, 1000 + number, *range(2000, 2010)] for number in range(count)]


@given(ROWS, st.integers(1, 5))
def test_every_row_is_run_once_and_what_it_leaves_out_is_shared(rows, batch_size):
    made = plan(rows, batch_size)
    assert sorted(row for batch in made.batches for row in batch.rows) == list(range(len(rows)))
    for batch in made.batches:
        assert len(batch.rows) <= batch_size
        stem_of = {row: length for length, members in batch.stems for row in members}
        for length, members in batch.stems:
            assert len({tuple(rows[row][:length]) for row in members}) == 1
        for row in batch.rows:
            left_out = max(0, len(rows[row]) - batch.width)
            assert left_out <= max(made.trunk, stem_of.get(row, 0)) < len(rows[row])
    assert len({tuple(row[: made.trunk]) for row in rows}) == 1


def test_a_beginning_common_to_all_is_run_once():
    made = plan([[*SYSTEM, number, 7] for number in range(20)], 8)
    assert made.trunk == len(SYSTEM)
    assert made.cost == len(SYSTEM) + 20 * 2


def test_the_facts_of_a_world_are_run_once_for_its_questions():
    rows = world(SYSTEM, WORLD, 8) + world(SYSTEM, OTHER, 8)
    made = plan(rows[::2] + rows[1::2], 16)
    [batch] = made.batches
    assert made.trunk == len(SYSTEM)
    assert sorted(length for length, _ in batch.stems) == [len(SYSTEM) + len(OTHER), len(SYSTEM) + len(WORLD)]
    assert made.cost == len(SYSTEM) + A_PASS + 2 * len(WORLD) + 16 * 11


def test_rows_that_share_nothing_go_by_length():
    rows = [[first, *range(length)] for first, length in enumerate([50, 5, 49, 6, 48, 7])]
    made = plan(rows, 3)
    assert made.trunk == 0
    assert [{len(rows[row]) for row in batch.rows} for batch in made.batches] == [{49, 50, 51}, {6, 7, 8}]
    assert not any(batch.stems for batch in made.batches)


def test_a_row_keeps_what_must_be_its_own():
    made = plan([[*WORLD, 1], [*WORLD, 2], WORLD], 4, keep=[1, 1, 120])
    assert made.trunk == len(WORLD) - 120


def test_equal_rows_each_run_their_last_token():
    made = plan([WORLD] * 5, 8)
    assert (made.trunk, [batch.width for batch in made.batches]) == (len(WORLD) - 1, [1])


def recurrent() -> LanguageModel:
    """A random model with a layer that keeps a state, and one that attends."""
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    config = Lfm2Config(vocab_size=400, layer_types=["conv", "full_attention"], initializer_range=0.4, **shape)
    words = tokenizer(CHATML)
    words.pad_token = words.eos_token
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Lfm2ForCausalLM(config).eval()
    spec = ModelSpec(name="recurrent", source="nowhere")
    return LanguageModel(model, words, spec, torch.device("cpu"), template_for(words, "model"), (0,))


def test_a_model_that_keeps_a_state_shares_nothing_and_has_no_blocks():
    lm = recurrent()
    answers = generate(lm, ["Mara sold a guitar at the market."] * 3, 4)
    assert all(answer.computed_tokens == answer.prompt_tokens for answer in answers)
    with pytest.raises(LabError, match="facts cannot be blocks"):
        encode_blocks(lm, [1, 2], [[3]])


def questions(lm) -> list[str]:
    facts, others = WORLD_TEXTS["test-00000"][:4], WORLD_TEXTS["test-00001"]
    asked = ["Who sold a guitar?", "Who sold a lamp?", "Where did Otto move?", "What?", "Who bought a violin at the station?"]
    return [render(lm, texts, question, "short") for texts in (facts, others, []) for question in asked]


@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_sharing_changes_no_answer_and_runs_less(lm, batch_size):
    prompts = questions(lm)
    alone = [generate(lm, [prompt], 10)[0] for prompt in prompts]
    batched = generate(lm, prompts, 10, batch_size)
    assert [answer.tokens for answer in batched] == [answer.tokens for answer in alone]
    assert all(answer.computed_tokens == answer.prompt_tokens for answer in alone)
    assert sum(answer.computed_tokens for answer in batched) < sum(answer.prompt_tokens for answer in batched)


def test_sharing_changes_no_likelihood(lm):
    contexts = [prompt for prompt in questions(lm) for _ in range(3)]
    more = ["Mara", "Otto moved", "a violin"] * (len(contexts) // 3)
    together = log_likelihood(lm, contexts, more)
    for context, text, got in zip(contexts, more, together, strict=True):
        [alone] = log_likelihood(lm, [context], [text])
        assert got.nats == pytest.approx(alone.nats, abs=1e-4)
        assert got.greedy == alone.greedy
