"""Cache an encoder's output for a list of texts on disk, because many cells of a grid read the same worlds.

Each list has one file below data/generated/encoded. The file is named by encoder and texts, so whatever changes is encoded again. A file
that is missing or damaged is no loss: the texts are encoded again.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from hippo_core.files import home, write_bytes

FOLDER = "data/generated/encoded"
LEAST = 100  # shorter lists are not worth a file


def kept(encoder: str, texts: Sequence[str], encode: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """The output of `encode` for the texts, read from disk if it is there.

    Args:
        encoder: names the encoder and its weights; empty: nothing is read from disk or written.
        encode: makes the named tensors.
    """
    if not encoder or len(texts) < LEAST:
        return encode()
    digest = hashlib.sha256(encoder.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    path = home() / FOLDER / f"{digest.hexdigest()[:32]}.safetensors"
    try:
        return load(path.read_bytes())
    except (FileNotFoundError, SafetensorError):
        made = encode()
        write_bytes(path, save({name: tensor.contiguous() for name, tensor in made.items()}))
        return made
