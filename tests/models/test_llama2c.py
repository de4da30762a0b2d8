"""The llama2.c importer, on a checkpoint and a tokenizer written here and on a pretrained one: the same logits, the same tokens."""

import string
import struct
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import silu

from hippo_core.errors import LabError
from hippo_core.models.generate import generate
from hippo_core.models.llama2c import Header, Piece, convert, read_checkpoint, read_pieces
from hippo_core.models.load import load
from hippo_core.models.score import text_loss
from hippo_core.models.spec import load_spec
from hippo_core.text_files import path_of, read_text
from tests.texts import needs

PRETRAINED = ("stories260K-model", "stories260K-tokenizer")
CHARACTERS = " \u2019" + string.ascii_letters + string.digits + ".,!?'-\n"
UNIONS = (
    *("he", " t", " the", "in", "er", " a", "an", " an", " and", "ed", " w", "as", " was", "th", " th", "ing", "re", "on"),
    *("  ", ".\n", "\n\n"),
)
VOCABULARY = 3 + 256 + len(CHARACTERS) + len(UNIONS)
TIED = Header(dim=32, hidden_dim=44, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=VOCABULARY, seq_len=96)
TEXTS = (
    "The lamp and the kettle were in the hall.",
    "Carla was there, and then an owl landed!\n\nNobody heard it.\n",
    "caf\u00e9 \U0001f600 \u2013 100%",
    "  two  spaces ",
    "\n\nlines\n",
    "it\u2019s the thing",
)


def write_checkpoint(path: Path, header: Header) -> Path:
    """A checkpoint of random weights in llama2.c's version 0 layout."""
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(shape, generator=generator) * 0.5 for shape in header.shapes.values()]
    numbers = [header.dim, header.hidden_dim, header.n_layers, header.n_heads, header.n_kv_heads, header.vocab_size, header.seq_len]
    path.write_bytes(struct.pack("<7i", *numbers) + b"".join(tensor.numpy().tobytes() for tensor in weights))
    return path


def write_tokenizer(path: Path) -> Path:
    """A tokenizer file: three special pieces, the bytes, characters, and unions of these, the earlier ones with the better scores."""
    pieces = [("<unk>", 0.0), ("\n<s>\n", 0.0), ("\n</s>\n", 0.0), *((f"<0x{byte:02X}>", 0.0) for byte in range(256))]
    pieces += [(text, -1e6) for text in CHARACTERS] + [(text, -float(rank)) for rank, text in enumerate(UNIONS)]
    data = [(score, text.encode()) for text, score in pieces]
    longest = max(len(text) for _, text in data)
    path.write_bytes(struct.pack("<i", longest) + b"".join(struct.pack("<fi", score, len(text)) + text for score, text in data))
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tied.bin", TIED)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("words") / "words.bin")


@pytest.fixture(scope="module")
def lm(checkpoint, words, tmp_path_factory):
    return load(load_spec(str(convert(checkpoint, words, tmp_path_factory.mktemp("imported") / "tied"))), device="cpu")


def norm(x: Tensor, gain: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain


def rotate(x: Tensor) -> Tensor:
    """Rotary positions on neighbouring pairs, as llama2.c has them."""
    length, heads, width = x.shape
    angles = torch.arange(length, dtype=x.dtype)[:, None] * 10000 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    pairs = torch.view_as_complex(x.reshape(length, heads, width // 2, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)[:, None]).reshape(length, heads, width)


def logits(header: Header, weights: dict[str, Tensor], ids: list[int]) -> Tensor:
    """A forward pass in float64, straight from the checkpoint's own layout."""
    w, length, width = {name: tensor.double() for name, tensor in weights.items()}, len(ids), header.head_dim
    x = w["embedding"][ids]
    for layer in range(header.n_layers):
        a = norm(x, w["attention_norm"][layer])
        q, k, v = ((a @ w[name][layer].T).view(length, -1, width) for name in ("wq", "wk", "wv"))
        group = header.n_heads // header.n_kv_heads
        k, v = rotate(k).repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("thd,shd->hts", rotate(q), k) / width**0.5
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf).softmax(-1)
        x = x + torch.einsum("hts,shd->thd", scores, v).reshape(length, -1) @ w["wo"][layer].T
        a = norm(x, w["mlp_norm"][layer])
        x = x + (silu(a @ w["w1"][layer].T) * (a @ w["w3"][layer].T)) @ w["w2"][layer].T
    return norm(x, w["final_norm"]) @ w.get("classifier", w["embedding"]).T


def encode(pieces: list[Piece], text: str) -> list[int]:
    """llama2.c's own way: characters or bytes, then always the neighbours whose union scores best, leftmost first."""
    texts, ids = [piece.text for piece in pieces], {piece.text: number for number, piece in enumerate(pieces)}
    tokens = []
    for character in "\u2581" + text.replace(" ", "\u2581"):
        tokens += [ids[character]] if character in ids else [byte + 3 for byte in character.encode()]
    while True:
        both = [texts[left] + texts[right] for left, right in pairwise(tokens)]
        unions = [(pieces[ids[text]].score, -position, ids[text]) for position, text in enumerate(both) if text in ids]
        if not unions:
            return [1, *tokens]
        _, position, token = max(unions)
        tokens[-position : -position + 2] = [token]


def assert_same_logits(model, checkpoint: Path, ids: list[int]) -> None:
    due = logits(*read_checkpoint(checkpoint), ids)
    with torch.inference_mode():
        got = model(torch.tensor([ids])).logits[0].double()
    assert (got - due).abs().max() < 32 * torch.finfo(torch.float32).eps * due.abs().max()


def test_logits_are_those_of_the_checkpoint(lm, checkpoint):
    assert_same_logits(lm.model, checkpoint, lm.tokenizer(TEXTS[1]).input_ids)


def test_an_untied_classifier(words, tmp_path):
    header = Header(dim=24, hidden_dim=20, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=-VOCABULARY, seq_len=64)
    path = write_checkpoint(tmp_path / "untied.bin", header)
    imported = load(load_spec(str(convert(path, words, tmp_path / "untied"))), device="cpu")
    assert_same_logits(imported.model, path, [1, 300, 17, 320, VOCABULARY - 1, 260])


def test_tokens_are_those_of_llama2c(lm, words):
    pieces = read_pieces(words, VOCABULARY)
    for text in TEXTS:
        assert lm.tokenizer(text).input_ids == encode(pieces, text)
    assert any(token >= VOCABULARY - len(UNIONS) for token in encode(pieces, TEXTS[0]))
    assert any(3 <= token < 259 for token in encode(pieces, TEXTS[2]))


def test_text_survives_the_round_trip(lm):
    for text in TEXTS:
        assert lm.tokenizer.decode(lm.tokenizer(text).input_ids, skip_special_tokens=True) == text


@needs(*PRETRAINED, "tinystories")
def test_a_pretrained_model_tells_stories(tmp_path):
    """Its author reports 1.2968 nats a token on his own validation stories, another mixture than these."""
    checkpoint, words = map(path_of, PRETRAINED)
    lm = load(load_spec(str(convert(checkpoint, words, tmp_path / "stories260K"))), device="cpu")
    stories = [story.strip() for story in read_text("tinystories")[:100_000].split("<|endoftext|>")][:-1]
    assert_same_logits(lm.model, checkpoint, lm.tokenizer(stories[0]).input_ids)
    assert lm.tokenizer(stories[0]).input_ids == encode(read_pieces(words, 512), stories[0])
    loss = text_loss(lm, stories)
    assert loss.tokens > 40_000
    assert loss.per_token == pytest.approx(1.2968, abs=0.2)
    [answer] = generate(lm, ["<s>Once upon a time"], 11)
    assert answer.text == ", there was a little girl named Lily."


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-4], "the file is cut"),
        (lambda data: data + b"\0", "the file is cut, or not a version 0"),
        (lambda data: data[:20], "the header alone takes 28"),
        (lambda data: b"ak42" + data[4:], "impossible sizes"),
        (lambda data: struct.pack("<i", 63) + data[4:], "do not go together"),
    ],
)
def test_a_bad_checkpoint_leaves_nothing(checkpoint, words, tmp_path, spoil, message):
    (tmp_path / "bad.bin").write_bytes(spoil(checkpoint.read_bytes()))
    with pytest.raises(LabError, match=message):
        convert(tmp_path / "bad.bin", words, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.bin"]


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data + b"\0" * 8, lambda data: b"", lambda data: b"\xff" * len(data)]
)
def test_a_bad_tokenizer_leaves_nothing(checkpoint, words, tmp_path, spoil):
    (tmp_path / "bad.bin").write_bytes(spoil(words.read_bytes()))
    with pytest.raises(LabError, match=r"no llama2.c tokenizer of \d+ pieces"):
        convert(checkpoint, tmp_path / "bad.bin", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.bin"]


def test_a_missing_file_and_a_taken_folder(checkpoint, words, tmp_path):
    with pytest.raises(LabError, match=r"cannot read .*No such file"):
        convert(tmp_path / "none.bin", words, tmp_path / "out")
    with pytest.raises(LabError, match=r"exists already"):
        convert(checkpoint, words, tmp_path)
