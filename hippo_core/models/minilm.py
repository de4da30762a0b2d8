"""Sentence vectors and word pieces' states of all-MiniLM-L6-v2, a published encoder that was trained for search.

A text's vector is the mean of the last states of its word pieces, of length 1; a text is cut at 256 pieces (Reimers and Gurevych 2019,
section 3). The files must be the published ones.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel, AutoTokenizer

from hippo_core.errors import LabError
from hippo_core.files import BRING_MODELS, home, sha256
from hippo_core.models.language_model import by_length
from hippo_core.models.load import HARMLESS, quiet
from hippo_core.models.template import as_text
from hippo_core.text import TYPED, WORD, folded

FOLDER = "data/models/minilm"
PIECES, WIDTH, LAYERS = 256, 384, 6
PUBLISHED = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def identity() -> str:
    """The encoder and its weights in a word."""
    return f"minilm {PUBLISHED.get('model.safetensors', '')}"


def pieces(text: str, device: str = "cpu") -> int:
    """How many word pieces the encoder runs for a text; it is a smaller model than those that answer."""
    tokenizer, _ = _loaded(home() / FOLDER, device)
    return len(tokenizer(as_text(tokenizer, text), truncation=True, max_length=PIECES)["input_ids"])


def encode(texts: Sequence[str], device: str = "cpu", batch_size: int = 32) -> Tensor:
    """Unit vectors of texts [N, D], fp32, on the CPU, in the order given. The encoder is loaded once a process and device. LabError where
    its files are missing or are not the published ones."""
    _, model = _loaded(home() / FOLDER, device)
    vectors = torch.empty(len(texts), model.config.hidden_size)
    for batch, states, mask in _run(texts, device, batch_size):
        vectors[batch] = _means(states, mask)
    return vectors


def token_states(texts: Sequence[str], device: str = "cpu", batch_size: int = 32) -> list[Tensor]:
    """The last states of each text's word pieces [T, D], fp32, on the CPU, the opening and the closing one left out."""
    states: dict[int, Tensor] = {}
    for batch, own, _ in read(texts, device, batch_size):
        states |= zip(batch, own, strict=True)
    return [states[row] for row in range(len(texts))]


def read(texts: Sequence[str], device: str = "cpu", batch_size: int = 32) -> Iterator[tuple[list[int], list[Tensor], Tensor]]:
    """Both of the above from one run, batch by batch: which texts, the states of each one's pieces [T, D], and their vectors [B, D]."""
    for batch, laid, mask in _run(texts, device, batch_size):
        yield batch, [own[seen][1:-1].cpu() for own, seen in zip(laid, mask, strict=True)], _means(laid, mask)


def _means(states: Tensor, mask: Tensor) -> Tensor:
    return normalize((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=-1).cpu()


def words_of_pieces(text: str, device: str = "cpu") -> list[str]:
    """The lower-case word that each piece of a text is of, the opening and the closing one left out; "" for a mark."""
    tokenizer, _ = _loaded(home() / FOLDER, device)
    text = as_text(tokenizer, text)
    spans = tokenizer(text, truncation=True, max_length=PIECES, return_offsets_mapping=True)["offset_mapping"][1:-1]
    word_spans = [(match.start(), match.end(), folded(match[0])) for match in WORD.finditer(text.translate(TYPED))]
    return [next((word for start, end, word in word_spans if start <= first < end), "") for first, _ in spans]


@torch.inference_mode()
def _run(texts: Sequence[str], device: str, batch_size: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """The rows of a batch, their last states [B, T, D] and where their pieces are [B, T]; the longest texts first."""
    tokenizer, model = _loaded(home() / FOLDER, device)
    escaped = [as_text(tokenizer, text) for text in texts]
    rows = [torch.tensor(row) for row in tokenizer(escaped, truncation=True, max_length=PIECES)["input_ids"]] if escaped else []
    for batch in by_length(rows, batch_size, longest_first=True):
        ids = pad_sequence([rows[row] for row in batch], batch_first=True, padding_value=tokenizer.pad_token_id).to(device)
        lengths = torch.tensor([len(rows[row]) for row in batch], device=device)[:, None]
        mask = torch.arange(ids.shape[1], device=device) < lengths
        yield batch, model(input_ids=ids, attention_mask=mask.long()).last_hidden_state, mask


def copied(device: str = "cpu") -> tuple[Any, Any]:
    """Tokenizer and a model of its own, that may be changed."""
    tokenizer, model = _loaded(home() / FOLDER, device)
    return tokenizer, deepcopy(model)


@cache
def _loaded(folder: Path, device: str) -> tuple[Any, Any]:
    """Tokenizer and model in fp32; nothing is fetched, unpickled or run from the folder."""
    _check(folder)
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, **HARMLESS)
        model = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **HARMLESS)
    return tokenizer, model.to(device).eval()


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise LabError(f"encoder minilm: expected all-MiniLM-L6-v2 in {FOLDER}, found nothing; run `{BRING_MODELS}`")
    for name, published in PUBLISHED.items():
        if not (folder / name).is_file() or sha256(folder / name) != published:
            raise LabError(f"encoder minilm: {FOLDER}/{name} is not that of all-MiniLM-L6-v2; delete the folder and run `{BRING_MODELS}`")
