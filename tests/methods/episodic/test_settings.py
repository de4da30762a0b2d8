"""A memory's settings: every one reachable and checked, and each phase depends on what it reads and on nothing else."""

import subprocess
import sys

import pytest

from hippo_core.errors import LabError
from hippo_core.methods import encoded
from hippo_core.methods.episodic import settings
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.methods.presets import leaves, load_preset, settings_of
from hippo_core.models.kv_storage import KVStorage

OTHER = {  # another legal value of each setting
    "decoding": "plain", "traces": "off", "control": "empty", "delivery": "text", "k": 3, "unknown_below": 0.3,
    "memory.runtime.enable_writes": False,
    "memory.runtime.alter_answers": True, "memory.forgetting.ttl": 5, "memory.forgetting.merge": 0.9,
    "episodic.use_sparsity": False, "episodic.use_completion": "predictive", "encoder": "minilm",
    "episodic.use_gate": True, "episodic.code.winners": 5, "episodic.code.expansion": 50, "episodic.code.channels": ["key"],
    "episodic.recall.candidates": 5, "episodic.recall.fusion": "fitted", "episodic.recall.recency": 1.0,
    "episodic.recall.versions": "off", "episodic.hopfield.beta": 2.0,
    "episodic.hopfield.steps": 3, "episodic.predictive.candidates": 4, "episodic.predictive.below": 0.5,
    "episodic.gate.alpha": 0.0, "episodic.gate.beta": 0.5,
    "episodic.gate.gamma": 0.0, "episodic.gate.delta": 0.0, "episodic.gate.write_rate": 0.25, "episodic.gate.tau": 1.5,
    "episodic.gate.policy": "random", "episodic.store.budget": 0.5, "episodic.store.kv": "none", "episodic.store.kv_precision": "model",
    "episodic.store.kv_memory_mb": 64, "episodic.store.kv_disk_mb": 64, "replay.enabled": False,
    "replay.cycles": 3, "replay.policy": "spaced", "replay.rate": 0.5, "replay.noise_level": 0.3, "replay.max_items": 7,
}  # fmt: skip
ONLY_TEST = {"control", "delivery", "unknown_below", "k"}
RECALL = {"use_completion", *(f"recall.{name}" for name in ("candidates", "fusion", "recency", "versions"))}
RECALL |= {"hopfield.beta", "hopfield.steps", "predictive.candidates", "predictive.below"}
NOT_TEACH = ONLY_TEST | {f"episodic.{name}" for name in RECALL} | {key for key in OTHER if key.startswith("replay.")}


def test_every_setting_is_listed_once_and_can_be_overridden():
    assert sorted(leaves(HeiNWSettings)) == sorted({*OTHER, "abstention"})  # whose other value needs a method that says how sure it is
    assert settings_of("controls/empty_store") == {*OTHER, "abstention"}
    assert "abstention" not in load_preset("memory/hei_nw").of_step("teach")


@pytest.mark.parametrize("key", OTHER)
def test_a_setting_reaches_the_phases_that_read_it_and_no_other(key):
    usual, changed = load_preset("memory/hei_nw"), load_preset("memory/hei_nw", {key: OTHER[key]})
    differs = {mode for mode in ("teach", "replay", "test") if usual.of_step(mode) != changed.of_step(mode)}
    assert differs == {"test"} | ({"replay"} if key not in ONLY_TEST else set()) | ({"teach"} if key not in NOT_TEACH else set())
    assert changed.of_step("test")[key] == OTHER[key]


def test_the_file_of_the_memory_says_the_defaults():
    assert load_preset("memory/hei_nw").settings == HeiNWSettings()


def test_auto_is_minilm_where_it_is_there_unless_the_environment_says_otherwise(monkeypatch):
    for reason, setting, chosen in (
        (None, "", "minilm"), ("not there", "", "own"), (None, "own", "own"), ("not there", "minilm", "minilm"),
    ):  # fmt: skip
        monkeypatch.setattr(encoded, "available", lambda name, reason=reason: reason)
        monkeypatch.setenv(encoded.ENCODER, setting)
        memory = load_preset("memory/hei_nw").settings
        assert memory.encoder == chosen and memory.channels == settings.CHANNELS[chosen]
        assert memory.requires == (("minilm",) if chosen == "minilm" else ())
    monkeypatch.setenv(encoded.ENCODER, "bert")
    with pytest.raises(LabError, match="HIPPO_ENCODER=bert is neither own nor minilm"):
        load_preset("memory/hei_nw")


def test_vectors_are_a_channel_only_of_the_encoder_that_makes_them():
    with pytest.raises(LabError, match="the channel minilm needs encoder=minilm"):
        load_preset("memory/hei_nw", {"encoder": "own", "episodic.code.channels": ["minilm"]})


def test_what_is_said_of_keys_and_values_is_how_they_are_kept_and_a_rag_keeps_them_alike():
    kv_settings = {"kv": "disk", "kv_precision": "model", "kv_memory_mb": 3, "kv_disk_mb": 4}
    memory = load_preset("memory/hei_nw", {f"episodic.store.{key}": value for key, value in kv_settings.items()}).settings
    assert memory.kv_storage == KVStorage("disk", "model", 3, 4)
    rag = load_preset("baselines/rag_bm25", {"delivery": "kv"}).settings
    assert rag.kv_storage == load_preset("memory/hei_nw").settings.kv_storage == KVStorage()


def test_off_is_off_however_yaml_reads_it():
    for value in ("off", False):
        preset = load_preset("memory/hei_nw", {"traces": value, "episodic.use_completion": value})
        assert (preset.settings.traces, preset.settings.episodic.use_completion) == ("off", "off")


def test_what_plans_a_grid_brings_no_torch():
    modules = ("store", "retrieval.sparse_key", "methods.episodic.gate", "methods.episodic.replay")
    code = "import sys, hippo_core.methods.episodic.settings; assert not {'torch', 'numpy'} & set(sys.modules); "
    code += "".join(f"import hippo_core.{module}; assert 'torch' not in sys.modules, {module!r}; " for module in modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
