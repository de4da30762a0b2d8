"""Specs: named models, local folders, GGUF files; anything else is one line that lists what is legal."""

import math

import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.spec import ModelSpec, load_spec, validated


def test_an_adapter_is_relative_to_the_repository():
    spec = load_spec("smollm2-135m-reader")
    assert spec.adapter_path == root() / "data/weights/smollm2-135m-reader"
    assert spec.source == load_spec("smollm2-135m").source
    assert load_spec("smollm2-135m").adapter_path is None


def test_a_folder_takes_its_limit_from_its_positions(folders):
    assert load_spec(str(folders["qwen2"])).context_limit == 256


@pytest.mark.parametrize("name", ["no-such-model", "hippo_core", "../x", "missing.gguf", ""])
def test_unknown_names_list_the_legal_ones(name):
    with pytest.raises(LabError, match=r"unknown model .*legal: a \.gguf file, a folder with a config\.json, hippo-tiny"):
        load_spec(name)


WRONG = {"dtype": "float8", "shots": -1, "context_limit": "long", "quantization": "int8"}
WRONG_NATS = [-0.5, math.inf, math.nan, "much"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("dtypo", "float32", "unknown key; legal: name, source, .*shots"),
        *((key, value, f".*got {value!r}") for key, value in WRONG.items()),
        *(("abstention_penalty", nats, "") for nats in WRONG_NATS),
    ],
)
def test_a_wrong_key_or_value_is_named(key, value, says):
    with pytest.raises(LabError, match=rf"m\.yaml: {key}: {says}"):
        validated(ModelSpec, {"name": "m", "source": "x", key: value}, "m.yaml")


def test_a_broken_config_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text("[1, 2")
    with pytest.raises(LabError, match="no model configuration"):
        load_spec(str(tmp_path))


def test_shots_are_enough_and_whole():
    shots = yaml.safe_load((root() / "params" / "shots.yaml").read_text())
    assert len(shots) >= 4
    assert all(any(shot["answer"] in line for line in shot["context"]) for shot in shots)
