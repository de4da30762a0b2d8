"""Generation: equal to transformers' own greedy search, whatever the batch; stops; the size of the cache."""

import pytest
import torch
from transformers import DynamicCache

from hippo_core.errors import LabError
from hippo_core.models.generate import generate, kv_cache_mb
from hippo_core.models.load import load
from hippo_core.models.prompt import render, stops
from hippo_core.models.spec import load_spec
from tests.models.handmade import worlds

PROMPTS = ["Mara", "Who sold a lamp?", "Otto painted a fence in the garden.\n", "a b c d e f g h i j k l m n o p q r s t u v w x y z" * 2]


def items_prompts(lm) -> list[str]:
    return [render(lm, [fact.text for fact in world.facts], item.question, "short") for world in worlds() for item in world.items]


def assert_those_of_transformers(lm, prompt, tokens, budget):
    ids = torch.tensor([lm.encode(prompt)])
    theirs = lm.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=budget, eos_token_id=list(lm.stop_ids)
    )
    assert list(tokens) == theirs[0, ids.shape[1] :].tolist()


def test_tokens_are_those_of_transformers(lm):
    for prompt in PROMPTS + items_prompts(lm):
        assert_those_of_transformers(lm, prompt, generate(lm, [prompt], 12)[0].tokens, 12)


@pytest.mark.parametrize("batch_size", [2, 3, 9])
def test_a_batch_of_one_equals_a_batch_of_many(lm, batch_size):
    prompts = PROMPTS + items_prompts(lm)
    alone = [generate(lm, [prompt], 12)[0] for prompt in prompts]
    batched = generate(lm, prompts, 12, batch_size)
    assert [answer.tokens for answer in batched] == [answer.tokens for answer in alone]
    assert [answer.prompt_tokens for answer in batched] == [len(lm.encode(prompt)) for prompt in prompts]


def test_rows_that_end_early_do_not_disturb_the_others(lm):
    """Every token that some row produces first becomes, in turn, a stop token: rows then leave the batch at different steps."""
    full = [answer.tokens for answer in generate(lm, PROMPTS, 12)]
    for stop in {tokens[index] for tokens in full for index in (0, 2, 5) if index < len(tokens)}:
        stopping = type(lm)(**{**vars(lm), "stop_ids": (*lm.stop_ids, stop)})
        due = [tokens[: tokens.index(stop) + 1] if stop in tokens else tokens for tokens in full]
        assert [answer.tokens for answer in generate(stopping, PROMPTS, 12)] == due


def test_a_stop_string_cuts_after_words_and_not_before(loaded):
    lm = loaded["qwen2"]
    [free] = generate(lm, ["Mara"], 12)
    middle = free.text[2:4]
    [cut] = generate(lm, ["Mara"], 12, stop=[middle])
    assert cut.text == free.text[: free.text.index(middle)].strip()
    assert cut.generated_tokens <= free.generated_tokens
    [complete] = generate(lm, ["Mara"], 12, stop=[free.text[:1]])
    assert complete.text.startswith(free.text[:1])


def test_an_answer_in_plain_text_ends_with_its_line():
    lm = load(load_spec("hippo-tiny"), device="cpu")
    prompts = [render(lm, [fact.text for fact in world.facts], item.question, "plain") for world in worlds() for item in world.items]
    budget = 12
    for answer in generate(lm, prompts, budget, stop=stops(lm, "plain")):
        assert "\n" not in answer.text
        assert answer.generated_tokens < budget
        assert lm.tokenizer.decode(answer.tokens[-1:]) == "\n"


def test_an_empty_prompt_is_refused(loaded):
    with pytest.raises(LabError, match="empty prompt"):
        generate(loaded["qwen2"], ["Mara", ""], 8)


def test_the_cache_takes_as_much_as_the_formula_says(folders):
    lm = load(load_spec(str(folders["llama"])), device="cpu")
    cache = DynamicCache(config=lm.model.config)
    lm.model(torch.arange(3, 40)[None], past_key_values=cache)
    nbytes = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert kv_cache_mb(lm.config, 37, lm.model.dtype.itemsize) * 2**20 == nbytes


def test_tokens_of_the_lab_s_own_model_are_those_of_transformers():
    lm = load(load_spec("hippo-tiny"), device="cpu")
    prompts = items_prompts(lm) + [render(lm, [], item.question, "short") for world in worlds() for item in world.items]
    together = generate(lm, prompts, 8)
    assert sum(answer.computed_tokens for answer in together) < sum(answer.prompt_tokens for answer in together) / 2
    for prompt, ours in zip(prompts, together, strict=True):
        assert_those_of_transformers(lm, prompt, ours.tokens, 8)
