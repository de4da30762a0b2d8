"""What a memory is fitted on: its key on train worlds, the weights of its channels on validation worlds, never on what a test asks."""

from random import Random

import pytest
import torch

from hippo_core.models.packages.pins import available
from hippo_core.retrieval.key_encoder import BlockStates, KeyHead, KeyModel, KeySettings
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.recall import RecallConfig
from hippo_core.retrieval.text_encoder import KeyEncoder, KeysAndVectors, VectorEncoder
from hippo_core.suites import episodic, lexicon, multi
from recipes import recall_weights
from recipes.key import KeyRecipe, draw_batch

HELD_OUT = {word.lower() for name in lexicon.names(held_out=True) for word in name.split()}
FORMS = ("Tell me", "Do you recall", "Can one say")


@pytest.fixture
def splits(monkeypatch):
    """The splits to which facts had to belong while worlds were drawn, by suite."""
    asked = {"episodic": set(), "episodic_multi": set()}

    def listen(suite, module):
        belongs = module.belongs
        monkeypatch.setattr(module, "belongs", lambda key, split: asked[suite].add(split) or belongs(key, split))

    listen("episodic", episodic)
    listen("episodic_multi", multi)
    return asked


def test_a_key_learns_from_train_worlds_alone(splits):
    recipe, random = KeyRecipe(facts=16, cues=8), Random(3)
    batches = [draw_batch(random, recipe) for _ in range(40)]
    assert splits == {"episodic": {"train"}, "episodic_multi": {"train"}}
    cues = [cue for batch in batches for cue, _ in batch.cues]
    assert len(cues) > 200 and not [cue for cue in cues if cue.startswith(FORMS)]
    assert not {word for batch in batches for text in batch.facts for word in words(text)} & HELD_OUT


def key_of(lm):
    """An encoder with a key that was never fitted."""
    torch.manual_seed(0)
    head = KeyHead(KeySettings(blocks=(0, 1), hidden=lm.config.hidden_size, units=64)).eval().requires_grad_(False)
    return KeyEncoder(KeyModel(BlockStates(lm, head.settings.blocks), head), 64, 8)


@pytest.mark.skipif(bool(available("minilm")), reason="MiniLM is not on the disk: `make models`")
def test_weights_are_fitted_for_all_channels_that_the_encoder_codes(loaded, monkeypatch):
    lm = loaded["qwen2"]
    monkeypatch.setattr(recall_weights, "WORLDS", recall_weights.WORLDS[:1])
    encoder = KeysAndVectors(key_of(lm), VectorEncoder("cpu"))
    [(suite, world, index), *_] = recall_weights.indexes(lm, encoder, recall_weights.FITTED)
    [cue, *_] = recall_weights.cues_of(suite, world, index, RecallConfig("off", 5, 5, 1.0, 1, {}))
    assert recall_weights.FITTED == ("words", "grams", "key", "minilm")
    assert {*recall_weights.FITTED} <= {*cue.features}


def test_the_weights_of_channels_are_fitted_on_validation_worlds_alone(splits, loaded, monkeypatch):
    lm = loaded["qwen2"]
    encoder = key_of(lm)
    some = [(suite, settings, 12) for suite, settings, _ in recall_weights.WORLDS if settings.get("n_facts", 0) < 1000]
    monkeypatch.setattr(recall_weights, "WORLDS", some)
    indexed = list(recall_weights.indexes(lm, encoder, ("words", "grams", "key")))
    assert splits == {"episodic": {"val"}, "episodic_multi": {"val"}}
    assert {suite for suite, *_ in indexed} == {suite for suite, *_ in some}
    for _, world, index in indexed:
        assert world.id.startswith("val-")
        assert [trace.source for trace in index.traces] == [fact.id for fact in world.facts]
        assert not {word for fact in world.facts for word in words(fact.text)} & HELD_OUT
        assert not {slot for item in world.items for slot in item.slices}  # what training never saw
