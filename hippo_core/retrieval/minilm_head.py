"""The head over MiniLM's word pieces, which does not hang on the model that answers.

It is trained as a memory's key is, by the same code (`python benchmarks/memory/minilm_head.py`).
"""

from hippo_core.models import artifacts, minilm
from hippo_core.models.adapted_minilm import owner as minilm_owner
from hippo_core.models.artifacts import Owner
from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates, load_head
from hippo_core.retrieval.pieces import load_pieces
from hippo_core.retrieval.text_encoder import KeyEncoder

SEEDS = (1337, 1338, 1339)  # from which heads were trained


def part_of(seed: int) -> str:
    """What the head of a seed is called."""
    return f"head-{seed}"


def pieces_part_of(seed: int) -> str:
    """What the projection of pieces of a seed is called (retrieval/pieces.py)."""
    return f"pieces-{seed}"


MINILM_HEAD = part_of(SEEDS[0])  # the one that memories use


def owner() -> Owner:
    """MiniLM as that which heads belong to."""
    return minilm_owner("python benchmarks/memory/minilm_head.py")


PIECES = pieces_part_of(SEEDS[0])  # the projection that is used


def head_encoder(part: str, expansion: int, winners: int | None, device: str = "cpu", pieces: bool = False) -> KeyEncoder:
    """The encoder of keys by a head, with MiniLM's vectors, and with its pieces where they are compared. LabError where MiniLM, the head or
    the projection is missing, or belongs to another."""
    model = KeyModel(MiniLMStates(device), load_head(owner(), part))
    name = f"{minilm.identity()} head {artifacts.digest_of(owner(), part)} {expansion} {winners} with vectors"
    if not pieces:
        return KeyEncoder(model, expansion, winners, name)
    projection = load_pieces(owner(), PIECES)
    return KeyEncoder(model, expansion, winners, f"{name} and pieces {artifacts.digest_of(owner(), PIECES)}", projection)
