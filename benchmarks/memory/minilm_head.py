"""Fit the head of `rag_head` and the weights of its channels, and write them to data/weights/minilm: some 15 minutes a seed on one core.

The pairs, the steps and the code are those of hippo-tiny's key, the worlds of the weights those of every memory's weights; the language
model is read for none of it but its context limit, which says how long the worlds of a suite may be.

    python benchmarks/memory/minilm_head.py 1337 1338 1339
"""

import sys

from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models.artifacts import folder_of, save_part
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates
from hippo_core.retrieval.minilm_head import SEEDS, owner, part_of
from hippo_core.retrieval.recall import RecallConfig
from hippo_core.retrieval.text_encoder import KeyEncoder
from hippo_core.retrieval.trace_index import CHANNELS
from hippo_core.training.key import KeyRecipe, train_key
from hippo_core.training.memory_parts import provenance
from hippo_core.training.recall_weights import SEED, fit_weights


def main(seeds: list[int]) -> None:
    usual, source = HeiNWSettings().episodic, MiniLMStates()
    lm = load(load_spec("hippo-tiny"), threads=1)  # one thread, by which a fit can be repeated
    for seed in seeds:
        recipe = KeyRecipe(seed=seed, blocks=source.shape[0])
        head = train_key(source, recipe).half().float()  # as it is read from its file
        encoder = KeyEncoder(KeyModel(source, head), usual.code.expansion, usual.code.winners)
        config = RecallConfig("off", usual.recall.candidates, usual.predictive.candidates, usual.hopfield.beta, usual.hopfield.steps, {})
        weights, table = fit_weights(lm, encoder, config, CHANNELS, completions=("off",))
        made = {
            "settings": head.settings.model_dump(mode="json"),
            "recipe": recipe.model_dump(mode="json"),
            "weights": weights,
            "fitted_with": {"expansion": usual.code.expansion, "winners": usual.code.winners, "seed": SEED},
            **provenance(f"python benchmarks/memory/minilm_head.py {seed}"),
            "validation": table.to_dict("records"),
        }
        save_part(owner(), part_of(seed), made, head.half())
        print(f"{folder_of(owner()) / part_of(seed)}.safetensors", flush=True)


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or list(SEEDS))
