"""What an encoder made of texts lies on disk, is taken from there, and never from what was made of others."""

import pytest
import torch

from hippo_core.retrieval import encoded

TEXTS = [f"Lot {number} was sold." for number in range(encoded.LEAST)]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that has texts encoded, and how often it was."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    calls = []

    def ask(texts, encoder="one"):
        def encode():
            calls.append(encoder)
            return {"vectors": torch.tensor([[float(len(calls)), float(len(text))] for text in texts])}

        return encoded.kept(encoder, texts, encode)["vectors"]

    ask.calls = calls
    return ask


def test_texts_are_encoded_once(made):
    first = made(TEXTS)
    assert torch.equal(made(list(TEXTS)), first) and len(made.calls) == 1


def test_another_text_order_or_encoder_is_another(made):
    made(TEXTS)
    for texts, encoder in (
        (TEXTS[::-1], "one"),
        ([*TEXTS[:-1], "x"], "one"),
        (TEXTS, "two"),
        ([*TEXTS[:-2], TEXTS[-2] + TEXTS[-1], ""], "one"),
    ):
        before = len(made.calls)
        made(texts, encoder)
        assert len(made.calls) == before + 1


def test_a_damaged_file_is_no_loss(made, tmp_path):
    first = made(TEXTS)
    [path] = (tmp_path / encoded.FOLDER).iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    assert torch.equal(made(TEXTS)[:, 1], first[:, 1]) and len(made.calls) == 2
    assert torch.equal(made(TEXTS), made(TEXTS)) and len(made.calls) == 2


def test_a_few_texts_leave_no_file(made, tmp_path):
    made(TEXTS[:3])
    assert not (tmp_path / encoded.FOLDER).exists()
