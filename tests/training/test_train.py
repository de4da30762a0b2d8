"""A training that is killed goes on to the same weights; a reader changes its adapter and nothing else."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from hippo_core.files import LabError, root, sha256
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.training import weights
from hippo_core.training.reader import RECIPES, Reader, ReaderRecipe
from hippo_core.training.tiny import Recipe, Tiny
from hippo_core.training.train import CHECKPOINT, resume, share_of_rate, train

RECIPE = Recipe(width=32, mlp=48, heads=2, lessons=3, stories=1, steps=6, warmup=2, threads=1)
READER = ReaderRecipe(
    base="hippo-tiny", steps=4, lessons=2, text_tokens=32, rank=2, alpha=4, parts=1, warmup=1, guided=((2, (0,)),), threads=1
)


pytestmark = pytest.mark.usefixtures("made_up_texts")


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny", trust_remote_code=False)


@pytest.fixture(autouse=True)
def no_exam(monkeypatch):
    for module in ("tiny", "reader"):
        monkeypatch.setattr(f"hippo_core.training.{module}.examine", lambda *_: {})


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


@pytest.mark.parametrize("place", [10, 60, -1, -3000, -30_000])
def test_a_checkpoint_that_is_damaged_is_refused(tokenizer, tmp_path, place):
    train(Tiny(RECIPE, tokenizer), tmp_path, silent, every=2)
    content = bytearray((tmp_path / CHECKPOINT).read_bytes())
    content[place] ^= 1
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(LabError, match=r"is damaged.*; delete .* to train anew"):
        resume(Tiny(RECIPE, tokenizer), tmp_path)


def test_a_checkpoint_of_an_earlier_lab_is_gone_on_from(tokenizer, tmp_path):
    train(Tiny(RECIPE, tokenizer), tmp_path, silent, every=2)
    with safe_open(tmp_path / CHECKPOINT, "pt") as file:
        facts = {name: value for name, value in file.metadata().items() if name != "seal"}
    save_file(load_file(tmp_path / CHECKPOINT), tmp_path / CHECKPOINT, facts)
    assert resume(Tiny(RECIPE, tokenizer), tmp_path)[0] == RECIPE.steps


def test_a_reader_learns_in_its_adapter_alone(tmp_path):
    lm = load(load_spec("hippo-tiny"), "cpu")
    reader = Reader(READER, lm)
    frozen = {name: p.detach().clone() for name, p in reader.adapted.named_parameters() if not p.requires_grad}
    before = {name: weight.detach().clone() for name, weight in reader.weights().items()}
    train(reader, tmp_path, silent, every=2)
    assert all(torch.equal(p, frozen[name]) for name, p in reader.adapted.named_parameters() if name in frozen)
    assert any(not torch.equal(weight, before[name]) for name, weight in reader.weights().items())


def test_an_edition_goes_on_from_the_one_before_wherever_it_is_taken_up(tmp_path, monkeypatch):
    recipes = (READER.model_copy(update={"steps": 2}), READER.model_copy(update={"edition": "third", "parts": 2}))
    monkeypatch.setattr(weights, "RECIPES", recipes)
    for name in ("WORKSHOP", "WEIGHTS"):
        monkeypatch.setattr(weights, name, str(tmp_path / name))

    monkeypatch.setattr(weights, "SAVED_EVERY", 2)

    def stop_at_three(line):
        if line.startswith("step 3/4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.make_reader("hippo-tiny", 1337, say=stop_at_three)
    folder = weights.make_reader("hippo-tiny", 1337, say=silent)
    second = tmp_path / "WORKSHOP/hippo-tiny-reader/second" / weights.ADAPTER
    made = json.loads((folder / "training.json").read_text())
    assert (made["recipe"]["edition"], made["recipe"]["start"]) == ("third", sha256(second))
    assert (made["before"]["recipe"]["edition"], made["before"]["recipe"]["steps"]) == ("second", 2)
    recipe = ReaderRecipe(**made["recipe"])
    lm = load(load_spec("hippo-tiny"), "cpu")
    again = Reader(recipe, lm, second)
    begun = load_file(second)
    assert all(torch.equal(weight, begun[name.replace(".default", "")].float()) for name, weight in again.weights().items())
    train(again, tmp_path / "whole", silent, every=50)
    ended = load_file(folder / weights.ADAPTER)
    assert all(torch.equal(weight.bfloat16(), ended[name.replace(".default", "")]) for name, weight in again.weights().items())


def test_another_start_than_the_recipe_names_is_refused(tmp_path):
    lm = load(load_spec("hippo-tiny"), "cpu")
    (tmp_path / "other").write_text("other")
    for start in (None, tmp_path / "other"):
        with pytest.raises(LabError, match="goes on from the adapter of SHA-256 6f8ce0be"):
            Reader(READER.model_copy(update={"start": "6f8ce0be"}), lm, start)


def test_a_published_edition_is_taken_as_it_is_and_what_it_goes_on_from_is_kept(tmp_path, monkeypatch):
    place, workshop = tmp_path / "WEIGHTS/hippo-tiny-reader", tmp_path / "WORKSHOP/hippo-tiny-reader"
    place.mkdir(parents=True)
    (place / weights.ADAPTER).write_text("published")
    (place / "training.json").write_text(json.dumps({"recipe": {"steps": 1600}, "seconds": 3}))
    for name in ("WORKSHOP", "WEIGHTS"):
        monkeypatch.setattr(weights, name, str(tmp_path / name))
    monkeypatch.setattr(weights, "PUBLISHED", {sha256(place / weights.ADAPTER): "second"})
    made = []

    def make(recipe, *args):
        made.append((recipe, *args))
        (workshop / recipe.edition).mkdir()
        (workshop / recipe.edition / weights.ADAPTER).write_text(recipe.edition)

    monkeypatch.setattr(weights, "_make_edition", make)
    weights.make_reader("hippo-tiny", 3, 9, silent)
    [(third, _, first_to, _), (fourth, _, then_to, _)] = made
    assert (workshop / "second" / weights.ADAPTER).read_text() == "published"
    assert (third.start, third.seed, third.steps) == (sha256(place / weights.ADAPTER), 3, RECIPES[1].steps)
    assert (fourth.start, fourth.seed, fourth.steps) == (sha256(workshop / "third" / weights.ADAPTER), 3, 9)
    assert (first_to, then_to) == (workshop / "third", place)


def test_a_fresh_reader_is_the_base(tmp_path):
    reader = Reader(READER, load(load_spec("hippo-tiny"), "cpu"))
    _, text = reader.batch(0)
    assert float(reader._divergence(text).detach()) < 1e-6


def test_the_rate_rises_stays_and_falls_to_nothing():
    rates = [share_of_rate(step, 100, 10, 0.5) for step in range(100)]
    assert rates[0] == 0.1
    assert rates[9] == rates[49] == 1.0
    assert rates[99] == pytest.approx(0.02)
