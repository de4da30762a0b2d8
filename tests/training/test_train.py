"""A training that is killed goes on to the same weights; a reader changes its adapter and nothing else."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from hippo_core.errors import LabError
from hippo_core.files import is_marked, read_object, root, seal
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.training.train import CHECKPOINT, resume, share_of_rate, train
from recipes import reader as reader_training
from recipes import weights
from recipes.reader import Reader, ReaderRecipe
from recipes.tiny import Recipe, Tiny

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
        monkeypatch.setattr(f"recipes.{module}.examine", lambda *_: {})


def silent(line: str) -> None:
    pass


def test_batches_follow_from_seed_and_step_alone(tokenizer):
    trainee, same = Tiny(RECIPE, tokenizer), Tiny(RECIPE, tokenizer)
    trainee.batch(2)
    for a, b in zip(trainee.batch(3), same.batch(3), strict=True):
        assert torch.equal(a.ids, b.ids)


def test_a_killed_training_goes_on_to_the_same_weights(tokenizer, tmp_path):
    uninterrupted = Tiny(RECIPE, tokenizer)
    train(uninterrupted, tmp_path / "whole", silent, every=2)

    def stop_at_four(line):
        if line.startswith("step 5/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Tiny(RECIPE, tokenizer), tmp_path / "cut", stop_at_four, every=2)
    resumed = Tiny(RECIPE, tokenizer)
    train(resumed, tmp_path / "cut", silent, every=2)
    for name, weight in uninterrupted.weights().items():
        assert torch.equal(weight, resumed.weights()[name]), name


@pytest.fixture
def trained(tokenizer, tmp_path):
    """The checkpoint of a whole training."""
    train(Tiny(RECIPE, tokenizer), tmp_path, silent, every=2)
    return tmp_path / CHECKPOINT


def test_a_checkpoint_of_another_recipe_is_refused(tokenizer, trained):
    with pytest.raises(LabError, match="another recipe"):
        train(Tiny(RECIPE.model_copy(update={"seed": 1}), tokenizer), trained.parent, silent)


@pytest.mark.parametrize("place", [10, 60, -1, -3000, -30_000])
def test_a_checkpoint_that_is_damaged_is_refused(tokenizer, trained, place):
    content = bytearray(trained.read_bytes())
    content[place] ^= 1
    trained.write_bytes(content)
    with pytest.raises(LabError, match=r"is damaged.*; delete .* to train anew"):
        resume(Tiny(RECIPE, tokenizer), trained.parent)


def test_a_reader_learns_in_its_adapter_alone(tmp_path):
    lm = load(load_spec("hippo-tiny"), "cpu")
    reader = Reader(READER, lm)
    frozen = {name: p.detach().clone() for name, p in reader.adapted.named_parameters() if not p.requires_grad}
    before = {name: weight.detach().clone() for name, weight in reader.weights().items()}
    train(reader, tmp_path, silent, every=2)
    assert all(torch.equal(p, frozen[name]) for name, p in reader.adapted.named_parameters() if name in frozen)
    assert any(not torch.equal(weight, before[name]) for name, weight in reader.weights().items())


@pytest.fixture
def made_reader(tmp_path, monkeypatch):
    """What makes a reader of a few steps below a folder of the test's own."""
    monkeypatch.setattr(weights, "ReaderRecipe", lambda **values: READER.model_copy(update=values))
    monkeypatch.setattr(weights, "SAVED_EVERY", 2)
    for name in ("CHECKPOINT_DIR", "WEIGHTS"):
        monkeypatch.setattr(weights, name, str(tmp_path / name))
    return lambda seed=1337, steps=2: weights.make_reader("hippo-tiny", seed, steps, silent)


def test_a_reader_that_is_made_is_what_its_training_ended_with(made_reader, tmp_path):
    folder = made_reader()
    ended = load_file(tmp_path / "CHECKPOINT_DIR/hippo-tiny-reader" / CHECKPOINT)
    for name, weight in load_file(folder / "adapter_model.safetensors").items():
        assert torch.equal(ended[f"model.{name.replace('.weight', '.default.weight')}"].bfloat16(), weight), name
    made = read_object(folder / "training.json")
    assert made["recipe"] == READER.model_copy(update={"steps": 2}).model_dump(mode="json")
    assert made["weights"] == {"adapter_model.safetensors": seal(folder / "adapter_model.safetensors")}


@pytest.fixture
def of_two_descents(tmp_path, monkeypatch):
    """Once called, readers have a second descent, no checkpoint, and note the steps that they learn in, with their weights."""

    def change():
        shutil.rmtree(tmp_path / "CHECKPOINT_DIR")
        monkeypatch.setattr(reader_training, "DESCENTS", ((2, 1.0), (1, 0.5)))
        monkeypatch.setattr(reader_training, "STEPS", 3)
        begun = []
        monkeypatch.setattr(Reader, "learn", lambda self, step: begun.append((step, dict(self.weights()))) or {})
        return begun

    return change


def test_a_reader_goes_on_from_where_an_earlier_descent_ended(made_reader, of_two_descents, monkeypatch):
    monkeypatch.setattr(reader_training, "DESCENTS", ((2, 1.0),))
    monkeypatch.setattr(reader_training, "STEPS", 2)
    shipped = load_file(made_reader() / "adapter_model.safetensors")
    begun = of_two_descents()
    folder = made_reader(steps=3)
    [(step, weights_then)] = begun
    assert step == 2
    for name, weight in shipped.items():
        assert torch.equal(weights_then[name.replace(".weight", ".default.weight")].bfloat16(), weight), name
    assert read_object(folder / "training.json")["recipe"]["steps"] == 3


@pytest.mark.parametrize("change", [{"seed": 7, "steps": 3}, {"steps": 4}])
def test_a_reader_of_another_recipe_begins_at_the_first_step(made_reader, of_two_descents, change):
    made_reader()
    begun = of_two_descents()
    made_reader(**change)
    assert begun[0][0] == 0


def test_weights_replace_none_but_the_labs_own(made_reader, tmp_path):
    folder = made_reader()
    (tmp_path / "CHECKPOINT_DIR/hippo-tiny-reader" / CHECKPOINT).unlink()
    before = read_object(folder / "training.json")
    assert made_reader(7) == folder and read_object(folder / "training.json") != before
    assert is_marked(folder) and [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling"])
@pytest.mark.parametrize("name", ["hippo-tiny-reader", "hippo-tiny-reader.new", ".hippo-tiny-reader.old"])
def test_what_the_lab_did_not_make_is_refused_and_left(tmp_path, kind, name):
    own, target = tmp_path / "own", tmp_path / "weights" / name
    own.mkdir()
    (own / "diary.txt").write_text("mine")
    target.parent.mkdir()
    if kind == "folder":
        own.rename(target)
    elif kind == "file":
        target.write_text("mine")
    else:
        target.symlink_to(own if kind == "link" else tmp_path / "nowhere")
    (tmp_path / "log.jsonl").write_text('{"step": 1, "seconds": 2}\n')
    with pytest.raises(LabError, match=rf"{name} would be replaced, and was not made by the lab .*; move it away"):
        weights.ship(Tiny.__new__(Tiny), "make", lambda new: None, tmp_path / "log.jsonl", tmp_path / "weights/hippo-tiny-reader")
    left = target if kind == "folder" else own
    assert (left / "diary.txt").read_text() == "mine" and [path.name for path in target.parent.iterdir()] == [name]


@pytest.mark.parametrize("make", [lambda: weights.make_tiny(RECIPE, silent), lambda: weights.make_reader("hippo-tiny", 1, 2, silent)])
def test_that_is_said_before_the_training(tmp_path, monkeypatch, make):
    monkeypatch.setattr(weights, "WEIGHTS", str(tmp_path))
    monkeypatch.setattr(weights, "train", lambda *_: pytest.fail("trained for nothing"))
    for name in ("hippo-tiny", "hippo-tiny-reader"):
        (tmp_path / name).mkdir()
    with pytest.raises(LabError, match="would be replaced"):
        make()


def test_the_folders_that_are_shipped_are_the_labs():
    for name in ("hippo-tiny", "smollm2-135m-reader"):
        weights.require_own(root() / weights.WEIGHTS / name)


def test_a_fresh_reader_is_the_base(tmp_path):
    reader = Reader(READER, load(load_spec("hippo-tiny"), "cpu"))
    _, text = reader.batch(0)
    assert float(reader._divergence(text).detach()) < 1e-6


def test_the_rate_rises_stays_and_falls_to_nothing():
    rates = [share_of_rate(step, 100, 10, 0.5) for step in range(100)]
    assert rates[0] == 0.1
    assert rates[9] == rates[49] == 1.0
    assert rates[99] == pytest.approx(0.02)
