"""Fit the head of `rag_head` and the weights of its channels, and write them to data/weights/minilm: some 15 minutes a seed on one core.

The pairs, the steps and the code are those of hippo-tiny's key, the worlds of the weights those of every memory's weights; the language
model is read for none of it but its context limit, which says how long the worlds of a suite may be.

    python benchmarks/memory/minilm_head.py 1337 1338 1339
    HIPPO_DATA=... python benchmarks/memory/minilm_head.py 1337 --natural    # head-natural-1337 and pieces-1337, some 20 minutes
    HIPPO_DATA=... python benchmarks/memory/minilm_head.py 0 --natural --rooms 12 --steps 0 --piece-steps 0    # pieces-0, nothing trained

With --natural six of ten rooms are of what people wrote (training/natural_rooms.py); no weights are fitted: its channels are added up as
they are. No word of the two ladders is among the words that are exchanged there.
"""

import argparse
import re
from random import Random

import torch
from ladders import NAMES, words_of

from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models.artifacts import folder_of, save_part
from hippo_core.models.load import load
from hippo_core.models.matmul import quicken_products
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates
from hippo_core.retrieval.minilm_head import SEEDS, owner, part_of, pieces_part_of
from hippo_core.retrieval.recall import RecallConfig
from hippo_core.retrieval.text_encoder import KeyEncoder
from hippo_core.retrieval.trace_index import CHANNELS
from recipes.key import KeyRecipe, PieceRecipe, draw_states, fit_key, fit_pieces, train_key
from recipes.memory_parts import provenance
from recipes.natural_rooms import load_texts, mixing
from recipes.recall_weights import SEED, fit_weights

STEPS = PieceRecipe().steps
NATURAL = {"rooms": 300, "steps": 650}  # sentences of what people wrote take twice the time


def fit_lab(seed: int) -> None:
    """A head that learns from the lab's pairs, and weights of its channels."""
    usual, source = HeiNWSettings().episodic, MiniLMStates()
    lm = load(load_spec("hippo-tiny"), threads=1)  # one thread, by which a fit can be repeated
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


def fit_natural(seed: int, changes: dict[str, int], piece_steps: int) -> None:
    """A projection of pieces and a head, which learn from the lab's pairs and from what people wrote, the same rooms."""
    usual, source, random = HeiNWSettings().episodic, MiniLMStates(), Random(f"natural/{seed}")
    torch.set_num_threads(1)  # by which a fit can be repeated
    quicken_products()
    torch.manual_seed(seed)
    recipe, pieces = KeyRecipe(seed=seed, blocks=source.shape[0], **NATURAL | changes), PieceRecipe(steps=piece_steps)
    changed = "".join(f" --{name} {value}" for name, value in changes.items()) + f" --piece-steps {piece_steps}" * (piece_steps != STEPS)
    made = provenance(f"python benchmarks/memory/minilm_head.py {seed} --natural{changed}")
    states = draw_states(random, source, recipe, print, mixing(load_texts(ladder_words())))
    projection = fit_pieces(random, states, pieces)
    recipes = {"recipe": pieces.model_dump(mode="json"), "rooms": recipe.model_dump(mode="json")}
    save_part(
        owner(), pieces_part_of(seed), {"settings": projection.settings.model_dump(mode="json"), **recipes, **made}, projection.half()
    )
    if not recipe.steps:
        return
    head = fit_key(random, states, source.shape, recipe, print)
    settings = {"settings": head.settings.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json")}
    fitted_with = {"fitted_with": {"expansion": usual.code.expansion, "winners": usual.code.winners}}
    save_part(owner(), f"head-natural-{seed}", {**settings, **fitted_with, **made}, head.half())


def ladder_words() -> frozenset[str]:
    """Every word of the ladders, also as parts of names."""
    vocabularies = [words_of(name) for name in NAMES]
    texts = [text for vocabulary in vocabularies for frame in vocabulary.frames for text in (frame.fact, *frame.questions.values())]
    texts += [text for vocabulary in vocabularies for values in vocabulary.slots.values() for pair in values.items() for text in pair]
    return frozenset(word for text in texts for word in re.findall("[a-z]+", text.lower()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--natural", action="store_true")
    parser.add_argument("--rooms", type=int)
    parser.add_argument("--steps", type=int, help="of the head; 0: pieces alone")
    parser.add_argument("--piece-steps", type=int, default=STEPS, help="of the projection of pieces; 0: as it begins")
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        if arguments.natural:
            fit_natural(seed, {name: value for name in NATURAL if (value := getattr(arguments, name)) is not None}, arguments.piece_steps)
        else:
            fit_lab(seed)
        print(f"seed {seed}: {folder_of(owner())}", flush=True)


if __name__ == "__main__":
    main()
