"""What an encoder made of a list of texts, kept on disk: many cells of a grid look at the same worlds.

A file a list, below data/generated/encoded, named by the encoder and the texts, so that whatever changes is encoded anew. A file that is
damaged or cannot be written is no loss: the texts are encoded again.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from hippo_core.files import root, write_bytes

FOLDER = "data/generated/encoded"
LEAST = 100  # texts from which on keeping them is worth a file


def kept(encoder: str, texts: Sequence[str], encode: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """What `encode` makes of the texts, from disk where it lies there. `encoder`: which, with its weights."""
    if len(texts) < LEAST:
        return encode()
    digest = hashlib.sha256(encoder.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    path = root() / FOLDER / f"{digest.hexdigest()[:32]}.safetensors"
    try:
        return load(path.read_bytes())
    except (FileNotFoundError, SafetensorError):
        made = encode()
        write_bytes(path, save({name: tensor.contiguous() for name, tensor in made.items()}))
        return made
