"""Presets: overrides reach them, what differs is laid over what they extend at any depth, and what is wrong is named."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.presets import flat, load_preset, merged, nested, preset_names


@pytest.mark.parametrize("name", ["baselines/rag_dense", "baselines/rag_hybrid", "baselines/rag_rerank"])
def test_the_encoder_is_the_model_itself_unless_told_otherwise(name):
    assert load_preset(name).settings.encoder == "own"
    assert load_preset(name, {"encoder": "minilm"}).settings.encoder == "minilm"


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("baselines/rag", {}, "unknown preset 'baselines/rag'; legal: .*baselines/core, .*controls/random_facts"),
        ("../grids/smoke", {}, "unknown preset"),
        (f"{root()}/params/presets/baselines/core", {}, "unknown preset"),
        ("baselines/rag_bm25", {"kk": 3}, "kk: unknown key; legal: decoding, delivery, control, abstention, unknown_below, k, recency"),
        ("baselines/rag_bm25", {"k": 0}, "k: .*got 0"),
        ("baselines/rag_bm25", {"k": "many"}, "k: .*got 'many'"),
        ("baselines/rag_dense", {"encoder": "glove"}, "encoder: .*'own' or 'minilm'.*got 'glove'"),
        ("baselines/core", {"k": 3}, "k: unknown key; legal: decoding, delivery, control"),
        ("baselines/rag_bm25", {"encoder": "own"}, "encoder: unknown key; legal: .*k, recency"),
        ("baselines/rag_dense", {"candidates": 5}, "candidates: unknown key; legal: .*encoder"),
        ("baselines/core", {"method": "a:B"}, "its method cannot be replaced"),
        ("memory/hei_nw", {"episodic.use_gates": True}, "preset memory/hei_nw: episodic.use_gates: unknown key; legal: .*use_gate"),
        ("memory/hei_nw", {"replay.rat": 1}, "replay.rat: unknown key; legal: .*rate"),
        ("memory/hei_nw", {"episodic": 3}, "episodic: .*got 3"),
        ("memory/hei_nw", {"k": {"a": 1}}, "k: .*got"),
        ("memory/hei_nw", {"replay.rate": 2}, "replay.rate: .*got 2"),
        ("memory/hei_nw", {"episodic.use_completion": True}, "use_completion: .*'predictive', 'hopfield' or 'off'.*got True"),
        ("memory/hei_nw", {"episodic.code.channels": ["words", "words"]}, "a channel is named twice"),
        ("memory/hei_nw", {"controls": "none"}, "controls: unknown key; legal: .*control"),
    ],
)
def test_what_is_wrong_with_a_preset_of_the_lab_is_named(name, overrides, message):
    with pytest.raises(LabError, match=message):
        load_preset(name, overrides)


def test_reading_presets_brings_no_torch():
    code = (
        "import sys, hippo_core.methods.presets as c; [c.load_preset(name) for name in c.preset_names()]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


KEYS = st.sampled_from("abcd")
TREES = st.recursive(st.integers() | st.lists(st.integers(), max_size=2), lambda inner: st.dictionaries(KEYS, inner, max_size=3))
MAPPINGS = st.dictionaries(KEYS, TREES, max_size=3)


@given(MAPPINGS, MAPPINGS)
def test_what_is_above_stands_and_what_it_does_not_say_stays(below, above):
    both = merged(below, above)
    assert merged(both, above) == both
    assert set(both) == set(below) | set(above)
    for key, value in above.items():
        both_are_mappings = isinstance(value, dict) and isinstance(below.get(key), dict)
        assert both[key] == (merged(below[key], value) if both_are_mappings else value)
    assert {key: value for key, value in both.items() if key not in above} == {key: below[key] for key in below if key not in above}


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d.e", "b.d.f"]), st.integers()))
def test_dotted_keys_are_nested_mappings(values):
    assert flat(nested(values)) == values


def test_an_overlay_is_the_preset_below_but_for_what_it_says(presets):
    presets("one", "method: hippo_core.methods.rag.rankers:BM25\nk: 3")
    presets("two", "extends: one\nk: 5")
    presets("three", "extends: two\ndecoding: plain")
    preset = load_preset("three")
    assert (preset.name, preset.path, preset.origin) == ("three", "hippo_core.methods.rag.rankers:BM25", "one")
    assert (preset.settings.decoding, preset.settings.k) == ("plain", 5)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a": "extends: b", "b": "extends: c", "c": "extends: a"}, "extend each other: a -> b -> c -> a"),
        ({"a": "extends: a"}, "extend each other: a -> a"),
        ({"a": "extends: b", "c": "k: 3"}, r"unknown preset \(which a extends\) 'b'; legal: a, c"),
        ({"a": "extends: b\nmethod: one:Two", "b": "method: two:One"}, "keeps the method of the preset that it extends, which is b"),
        ({"a": "k: 3"}, "preset a names no method; expected `method: package.module:Class`"),
        ({"a": "method: dream"}, "preset a: method: expected package.module:NAME, got 'dream'"),
        ({"a": "method: dream.of:It"}, "preset a: method: there is no module 'dream'; install its package, or put its folder into"),
        ({"a": "method: hippo_core.methods.baselines:Dream"}, "module hippo_core.methods.baselines has no 'Dream'"),
        ({"a": "method: hippo_core.files:LabError"}, "is no subclass of hippo_core.methods.base.Method"),
    ],
)
def test_what_is_wrong_is_named(presets, files, says):
    for name, text in files.items():
        presets(name, text)
    with pytest.raises(LabError, match=says):
        load_preset("a")


def test_a_method_of_ones_own_is_found_in_the_labs_root(presets, tmp_path):
    (tmp_path / "my_memory_package").mkdir()
    (tmp_path / "my_memory_package/mine.py").write_text("from hippo_core.methods.base import Memory\n\nclass Mine(Memory):\n    pass\n")
    presets("mine", "method: my_memory_package.mine:Mine\nk: 2\ncontrol: oracle")
    preset = load_preset("mine")
    assert (preset.method.__name__, preset.taught, preset.settings.k, preset.settings.control) == ("Mine", True, 2, "oracle")


def test_each_control_and_ablation_says_one_thing_more_than_what_it_extends():
    gated = {"episodic.use_gate", "episodic.store.budget"}  # judged with room for half of what is told
    more = {
        "memory/hei_nw_gated": gated,
        "ablations/gate_random": gated | {"episodic.gate.policy", "episodic.gate.write_rate"},
        "ablations/gate_unflagged": gated | {"episodic.gate.gamma", "episodic.gate.delta"},
    }
    usual = load_preset("memory/hei_nw").of_step("test")
    of_their_own = {f"memory/{preset_name}" for preset_name in ("hei_nw", "sgc_rss", "smpd", "all")} | {
        "controls/altered_sgc_rss",
        "controls/altered_smpd",
    }
    for name in (name for name in preset_names() if load_preset(name).taught and load_preset(name).origin == "memory/all"):
        assert name in ("memory/all", "controls/altered_all", f"ablations/all_{load_preset(name).settings.traces}")
        of_their_own.add(name)
    for name in (name for name in preset_names() if load_preset(name).taught and name not in of_their_own):
        both_are_mappings = load_preset(name).of_step("test")
        differing = {key for key in both_are_mappings if both_are_mappings[key] != usual[key]}
        assert differing == more[name] if name in more else len(differing) == 1, name
        assert load_preset(name).origin == "memory/hei_nw"
