"""Fixtures of these tests: random models on disk and in memory, and a random encoder in the place of MiniLM."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from hippo_core.models import minilm as encoder
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from tests.models.handmade import ASKED, WORLD_TEXTS, folders, lm, loaded

__all__ = ["folders", "lm", "loaded"]

REPOSITORY = Path(__file__).resolve().parents[2]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def tokenizer() -> PreTrainedTokenizerFast:
    """Lower-case word pieces of the handmade texts, opened by [CLS] and closed by [SEP]; like MiniLM's it says to pad and cut at 128."""
    words = Tokenizer(WordPiece(unk_token="[UNK]"))
    words.normalizer, words.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    texts = [text for told in WORLD_TEXTS.values() for text in told] + [question for asked in ASKED.values() for question, *_ in asked]
    words.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False))
    words.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    words.enable_truncation(128)
    words.enable_padding(length=128)
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


@pytest.fixture(scope="session")
def random_encoder(tmp_path_factory) -> Path:
    """A root with the lab's settings and a random encoder of MiniLM's kind where MiniLM would lie."""
    folder, words = tmp_path_factory.mktemp("root"), tokenizer()
    (folder / "params").symlink_to(REPOSITORY / "params")
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, "initializer_range": 0.4}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(BertConfig(vocab_size=len(words), **shape)).save_pretrained(folder / encoder.FOLDER)
    words.save_pretrained(folder / encoder.FOLDER)
    return folder


@pytest.fixture
def minilm(random_encoder, monkeypatch) -> Path:
    """That root, and the check of the published files switched off."""
    monkeypatch.setenv("HIPPO_ROOT", str(random_encoder))
    monkeypatch.setattr(encoder, "PUBLISHED", {})
    return random_encoder


@pytest.fixture(scope="module")
def tiny():
    """The lab's own small model."""
    return load(load_spec("hippo-tiny"), threads=1)


@pytest.fixture
def presets(tmp_path, monkeypatch):
    """An empty folder of presets, and a way to write one."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))

    def write(name: str, text: str) -> None:
        path = tmp_path / "params/presets" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write
