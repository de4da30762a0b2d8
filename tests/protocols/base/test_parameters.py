"""What a grid needs of this disk is asked for before any cell starts; a preset with settings in brackets is read as
commands take it."""

import shutil

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.run.cells import require_encoders, require_weights
from hippo_core.protocols.base.assignments import with_settings


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A repository with its parameters and no weights."""
    shutil.copytree(root() / "params", tmp_path / "params")
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("model", "hint"),
    [("hippo-tiny", "run `make base-model`"), ("smollm2-135m", "run `make models`"), ("smollm2-135m-reader", "run `make models`")],
)
def test_missing_weights_say_how_to_get_them(bare, model, hint):
    with pytest.raises(LabError, match=f"model {model}: no weights at .*; {hint}"):
        require_weights([model])


def test_a_missing_adapter_says_how_to_get_it(bare):
    (bare / "data/models/smollm2-135m").mkdir(parents=True)
    require_weights(["smollm2-135m"])
    with pytest.raises(LabError, match=r"no adapter at data/weights/smollm2-135m-reader; run `make base-model MODEL=smollm2-135m`"):
        require_weights(["smollm2-135m-reader"])


def test_models_of_the_hub_are_not_looked_for(bare):
    require_weights(["qwen2.5-1.5b-instruct"])


def test_a_missing_encoder_says_how_to_get_it(bare):
    require_encoders(["own"])
    with pytest.raises(LabError, match=r"encoder minilm: no minilm at data/models/minilm; run `make models`"):
        require_encoders(["own", "minilm"])


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("memory/hei_nw", "memory/hei_nw", {}),
        ("memory/hei_nw[]", "memory/hei_nw", {}),
        ("rag_head[k=5;encoder=minilm]", "rag_head", {"k": 5, "encoder": "minilm"}),
        ('m[episodic.code.channels=["minilm", pieces];fusion=sum]', "m", {"episodic.code.channels": ["minilm", "pieces"], "fusion": "sum"}),
    ],
)
def test_values_are_read_as_yaml_lists_whole(text, name, settings):
    assert with_settings(text) == (name, settings)


@pytest.mark.parametrize(("text", "message"), [("m[k=5", "a bracket is open"), ("m[k]", "key=value"), ("m[k=1;k=2]", "k is given twice")])
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(LabError, match=message):
        with_settings(text)
