"""A training that is killed goes on to the same weights; a reader changes its adapter and nothing else."""

import pytest
import torch
from transformers import AutoTokenizer

from hippo_core.files import LabError, root
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.training.reader import Reader, ReaderRecipe
from hippo_core.training.tiny import Recipe, Tiny
from hippo_core.training.train import share_of_rate, train

RECIPE = Recipe(width=32, mlp=48, heads=2, lessons=3, stories=1, steps=6, warmup=2, threads=1)
READER = ReaderRecipe(
    base="hippo-tiny", steps=4, lessons=2, text_tokens=32, rank=2, alpha=4, parts=1, warmup=1, guided=((2, (0,)),), threads=1
)


pytestmark = pytest.mark.usefixtures("made_up_texts")


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny")


@pytest.fixture(autouse=True)
def no_exam(monkeypatch):
    for module in ("tiny", "reader"):
        monkeypatch.setattr(f"hippo_core.training.{module}.examine", lambda model, encoder: {})


def silent(line: str) -> None:
    pass


def test_batches_follow_from_seed_and_step_alone(tokenizer):
    one, other = Tiny(RECIPE, tokenizer), Tiny(RECIPE, tokenizer)
    one.batch(2)
    for a, b in zip(one.batch(3), other.batch(3), strict=True):
        assert torch.equal(a.ids, b.ids)


def test_a_killed_training_goes_on_to_the_same_weights(tokenizer, tmp_path):
    whole = Tiny(RECIPE, tokenizer)
    train(whole, tmp_path / "whole", silent, every=2)

    def stop_at_four(line):
        if line.startswith("step 5/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Tiny(RECIPE, tokenizer), tmp_path / "cut", stop_at_four, every=2)
    resumed = Tiny(RECIPE, tokenizer)
    train(resumed, tmp_path / "cut", silent, every=2)
    for name, weight in whole.weights().items():
        assert torch.equal(weight, resumed.weights()[name]), name


def test_a_checkpoint_of_another_recipe_is_refused(tokenizer, tmp_path):
    train(Tiny(RECIPE, tokenizer), tmp_path, silent, every=2)
    with pytest.raises(LabError, match="another recipe"):
        train(Tiny(RECIPE.model_copy(update={"seed": 1}), tokenizer), tmp_path, silent)


def test_a_reader_learns_in_its_adapter_alone(tmp_path):
    lm = load(load_spec("hippo-tiny"), "cpu")
    reader = Reader(READER, lm)
    frozen = {name: p.detach().clone() for name, p in reader.adapted.named_parameters() if not p.requires_grad}
    before = {name: weight.detach().clone() for name, weight in reader.weights().items()}
    train(reader, tmp_path, silent, every=2)
    assert all(torch.equal(p, frozen[name]) for name, p in reader.adapted.named_parameters() if name in frozen)
    assert any(not torch.equal(weight, before[name]) for name, weight in reader.weights().items())


def test_a_fresh_reader_is_the_base(tmp_path):
    reader = Reader(READER, load(load_spec("hippo-tiny"), "cpu"))
    _, text = reader.batch(0)
    assert float(reader._divergence(text).detach()) < 1e-6


def test_the_rate_rises_stays_and_falls_to_nothing():
    rates = [share_of_rate(step, 100, 10, 0.5) for step in range(100)]
    assert rates[0] == 0.1
    assert rates[9] == rates[49] == 1.0
    assert rates[99] == pytest.approx(0.02)
