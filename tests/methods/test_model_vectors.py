"""The model's own vectors: one cosine computed by hand, from the states that the model itself returns."""

from collections import Counter

import numpy as np
import pytest
import torch

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.model_vectors import cosines
from hippo_core.suites.draw import worlds
from tests.methods.asking import index_of


def test_a_cosine_is_that_of_weighted_middle_states_about_the_facts_mean():
    lm = load(load_spec("hippo-tiny"), threads=1)
    [world] = worlds("episodic", "default", 5, 3, "val", 512)
    item = world.items[0]
    texts = [*(fact.text for fact in world.facts), item.question]
    rows = [lm.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    counts = Counter(token for row in rows[:-1] for token in row)
    middle = lm.config.num_hidden_layers // 2 + lm.config.num_hidden_layers % 2

    def vector(row):
        with torch.no_grad():
            ids = torch.tensor([[lm.tokenizer.bos_token_id, *row]])
            states = lm.model(input_ids=ids, output_hidden_states=True).hidden_states[middle][0, 1:].double().numpy()
        weights = [1e-3 / (1e-3 + max(1, counts[token]) / counts.total()) for token in row]
        return np.average(states, axis=0, weights=weights) * sum(weights) / len(row)

    vectors = np.array([vector(row) for row in rows])
    about = vectors - vectors[:-1].mean(0)
    unit = about / np.linalg.norm(about, axis=1, keepdims=True)
    similarities = cosines(index_of(lm, world), tuple(fact.id for fact in world.facts), item.question)
    assert similarities == pytest.approx(unit[:-1] @ unit[-1], abs=1e-4)
