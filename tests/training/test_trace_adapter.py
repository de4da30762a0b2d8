"""A trace adapter is fitted on train worlds, changes nothing but itself, and is asked in an experiment as it was in its lessons."""

from random import Random

import pytest
import torch

from hippo_core.delivery.adapter import AdapterDelivery
from hippo_core.delivery.trace_adapter import AdapterSettings, load_adapter
from hippo_core.delivery.types import Question
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.load import load
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from hippo_core.models.spec import load_spec
from hippo_core.suites.types import RUNGS
from hippo_core.training.train import train
from recipes.trace_adapter import AdapterRecipe, AdapterTrainee, draw_cues

RECIPE = AdapterRecipe(model="hippo-tiny", shape=AdapterSettings(blocks=(3, 4), rank=4), steps=4, lessons=1, warmup=1)


@pytest.fixture
def trainee() -> AdapterTrainee:
    return AdapterTrainee(RECIPE, load(load_spec("hippo-tiny"), "cpu"))


def some(split: str) -> list:
    random = Random(f"test/{split}")
    return [cue for _ in range(60) for cue in draw_cues(random, 5, split)]


def test_the_right_trace_is_among_those_of_a_cue_and_few_are_more_than_asked():
    cues = some("train")
    asked = [cue for cue in cues if cue.skill in RUNGS]
    assert len(asked) > len(cues) / 2
    assert all(any(cue.answer in trace for trace in cue.traces) for cue in asked)
    assert {len(cue.traces) for cue in asked} == {1, 2, 3, 4, 5}


def test_no_trace_of_the_lessons_stands_in_a_validation_world():
    train_texts, val_texts = ({text for cue in some(split) for text in cue.traces} for split in ("train", "val"))
    assert not train_texts & val_texts


def test_cues_follow_from_seed_and_step_alone(trainee):
    assert trainee.cues(3) == trainee.cues(3) != trainee.cues(2)


def test_learning_changes_the_adapter_and_nothing_else(trainee, tmp_path, monkeypatch):
    monkeypatch.setattr(AdapterTrainee, "examine", lambda self: {})
    frozen = {name: weight.clone() for name, weight in trainee.lm.model.state_dict().items()}
    before = {name: weight.detach().clone() for name, weight in trainee.weights().items()}
    train(trainee, tmp_path, lambda line: None, every=2)
    assert all(torch.equal(weight, frozen[name]) for name, weight in trainee.lm.model.state_dict().items())
    assert all(not torch.equal(weight, before[name]) for name, weight in trainee.weights().items())


def test_lessons_ask_as_an_experiment_does():
    """What greedy decoding gives through the shipped adapter is right just where the lessons' own pass says so."""
    lm = load(load_spec("hippo-tiny"), "cpu")
    adapter = load_adapter(lm)
    trainee = AdapterTrainee(RECIPE.model_copy(update={"shape": adapter.settings, "autocast": False}), lm)
    trainee.adapter.load_state_dict(adapter.state_dict())
    cues = [cue for step in range(6) for cue in trainee.cues(step)]
    with torch.no_grad():
        _, marks = trainee._loss(cues)
    delivery = AdapterDelivery(
        lm, adapter, PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision="model"), blocks=adapter.settings.blocks)
    )
    answers = delivery.ask([Question.of_texts(cue.question, cue.traces) for cue in cues], 24)
    ended = [(*trainee.encoder.ids(cue.answer), trainee.encoder.stop) for cue in cues]
    right = [answer.tokens == due for answer, due in zip(answers, ended, strict=True)]
    assert len(right) / 2 < sum(right) < len(right)
    assert marks == right
