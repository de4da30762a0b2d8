"""The encoder minilm: vectors as published, whatever they are encoded beside; only the published files; loaded once, facts encoded once."""

import shutil
from pathlib import Path

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.evaluation.run import passages_of
from hippo_core.files import root
from hippo_core.models import minilm
from hippo_core.models.packages.pins import packages
from hippo_core.retrieval.key_encoder import BlockStates, KeyHead, KeyModel, KeySettings, MiniLMStates
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.ranking import standardised
from hippo_core.retrieval.scores import bm25_scores, dense_scores
from hippo_core.retrieval.text_encoder import KeyEncoder, with_payloads
from hippo_core.retrieval.trace_index import TraceIndex
from tests.methods.asking import asker, choose, index_of
from tests.models.handmade import worlds

WORLD, SMALL = worlds()
ITEM = WORLD.items[0]
TEXTS = [*(fact.text for fact in WORLD.facts), "", "Who?", "word " * 40]
PUBLISHED = dict(minilm.PUBLISHED)  # the fixture empties it
REAL = Path(__file__).resolve().parents[2] / minilm.FOLDER
pytestmark = pytest.mark.usefixtures("minilm")


def plain(text: str) -> torch.Tensor:
    """One text's vector, written out: the mean over the states of all its pieces, divided by its length."""
    tokenizer, model = minilm._loaded(root() / minilm.FOLDER, "cpu")
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *tokenizer.tokenize(text)[:254], "[SEP]"])
    with torch.inference_mode():
        mean = model(torch.tensor([ids])).last_hidden_state[0].double().mean(0)
    return mean / mean.square().sum().sqrt()


def test_vectors_are_the_mean_of_all_pieces_at_unit_length():
    for text in TEXTS:
        torch.testing.assert_close(minilm.encode([text])[0].double(), plain(text), atol=1e-6, rtol=0)


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_vectors_come_in_order_whatever_stands_beside_them(batch_size):
    alone = torch.stack([minilm.encode([text])[0] for text in TEXTS])
    torch.testing.assert_close(minilm.encode(TEXTS, batch_size=batch_size), alone, atol=1e-6, rtol=0)


def test_the_states_of_pieces_are_those_that_a_vector_is_the_mean_of():
    tokenizer, model = minilm._loaded(root() / minilm.FOLDER, "cpu")
    for text, states in zip(TEXTS, minilm.token_states(TEXTS, batch_size=3), strict=True):
        ids = tokenizer.convert_tokens_to_ids(["[CLS]", *tokenizer.tokenize(text), "[SEP]"])
        with torch.inference_mode():
            every = model(torch.tensor([ids])).last_hidden_state[0]
        torch.testing.assert_close(states, every[1:-1], atol=1e-5, rtol=0)


def test_a_text_is_cut_at_256_pieces_and_not_before():
    words = "guitar fence lamp clock " * 100
    cut, longer = (" ".join(words.split()[:count]) for count in (253, 254))
    assert torch.equal(minilm.encode([longer]), minilm.encode([words]))
    assert not torch.allclose(minilm.encode([cut]), minilm.encode([words]), atol=1e-6)


def test_cosines_are_those_of_the_vectors(loaded):
    scores = dense_scores(index_of(loaded["qwen2"], WORLD), ITEM.taught, ITEM.question, "minilm")
    due = [float(plain(fact.text) @ plain(ITEM.question)) for fact in WORLD.facts]
    assert scores == pytest.approx(due, abs=1e-6)


def test_what_it_runs_for_a_question_is_counted_beside_what_the_key_runs(loaded):
    """[CLS], the pieces and [SEP], each time that they are run: for a cosine, for a memory's channel, for a key that is read off them."""
    lm, (tokenizer, _) = loaded["qwen2"], minilm._loaded(root() / minilm.FOLDER, "cpu")
    own, pieces = len(lm.encode(ITEM.question)) / 2, len(tokenizer.tokenize(ITEM.question)) + 2
    assert choose("baselines/rag_dense", lm, WORLD, ITEM, encoder="minilm").computed_tokens == pieces
    torch.manual_seed(0)
    counted = {}
    for name, source, hidden in (("own", BlockStates(lm, (0, 1)), 64), ("minilm", MiniLMStates(), 24)):
        head = KeyHead(KeySettings(blocks=(0,), hidden=hidden, units=64)).eval().requires_grad_(False)
        encoder = KeyEncoder(KeyModel(source, head), 64, 8)
        traces = with_payloads(encoder, passages_of(WORLD))
        for channels in (("grams",), ("key",), ("grams", "key")) + ((("key", "minilm"),) if name == "minilm" else ()):
            counted[name, channels] = TraceIndex(traces, channels, encoder).cue_tokens(ITEM.question)
    assert counted == {
        ("own", ("grams",)): 0, ("own", ("key",)): own, ("own", ("grams", "key")): own, ("minilm", ("grams",)): 0,
        ("minilm", ("key",)): pieces, ("minilm", ("grams", "key")): pieces, ("minilm", ("key", "minilm")): pieces,
    }  # fmt: skip


def test_facts_are_encoded_once_a_world_and_each_query_alone(loaded, monkeypatch):
    calls, encode = [], minilm.encode
    monkeypatch.setattr(minilm, "encode", lambda texts, *more: calls.append(len(texts)) or encode(texts, *more))
    ask = asker("baselines/rag_hybrid", loaded["qwen2"], WORLD, encoder="minilm")
    for item in WORLD.items:
        ask(item)
    assert calls == [8, 1, 1, 1, 1]  # the facts and a first query before the clock runs, then the queries


def test_a_missing_folder_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    with pytest.raises(LabError, match=r"all-MiniLM-L6-v2 in data/models/minilm, found nothing; run `make models`"):
        minilm.encode(["Who?"])


@pytest.mark.parametrize("damage", ["other", "cut", "gone"])
def test_other_files_than_the_published_ones_are_refused(random_encoder, tmp_path, monkeypatch, damage):
    shutil.copytree(random_encoder / minilm.FOLDER, tmp_path / minilm.FOLDER)
    weights = tmp_path / minilm.FOLDER / "model.safetensors"
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    monkeypatch.setattr(minilm, "PUBLISHED", {weights.name: "0" * 64 if damage == "other" else minilm.sha256(weights)})
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-100])
    if damage == "gone":
        weights.unlink()
    with pytest.raises(LabError, match=r"model.safetensors is not that of all-MiniLM-L6-v2; .*`make models`"):
        minilm.encode(["Who?"])


def test_the_published_files_are_those_that_make_models_brings():
    pinned = packages()["minilm"]
    assert pinned.becomes == minilm.FOLDER
    assert {name: pinned.members[name] for name in PUBLISHED} == PUBLISHED


@pytest.mark.skipif(not REAL.is_dir(), reason="make models brings MiniLM")
def test_similarities_are_those_that_its_authors_print(monkeypatch):
    """Of the quick start of sentence-transformers' documentation, and of the model's card."""
    monkeypatch.undo()  # the real files, and their check
    vectors = minilm.encode(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    due = torch.tensor([[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]])
    torch.testing.assert_close(vectors @ vectors.T, due, atol=6e-5, rtol=0)
    asked, *similar_texts = minilm.encode(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert [round(float(asked @ vector), 3) for vector in similar_texts] == [0.695, 0.943, 0.257]


def test_in_a_sum_words_and_vectors_count_alike(loaded):
    index, taught = index_of(loaded["qwen2"], WORLD), tuple(fact.id for fact in WORLD.facts)
    parts = bm25_scores(index, taught, ITEM.question, grams), dense_scores(index, taught, ITEM.question, "minilm")
    scores = choose("baselines/rag_sum", loaded["qwen2"], WORLD, ITEM).retrieved.scores
    assert sorted(scores) == pytest.approx(sorted(sum(standardised(part) for part in parts)), abs=1e-5)
