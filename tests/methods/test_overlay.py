"""Presets that extend others: what differs is laid over them at any depth; cycles, strangers and unknown settings are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.files import LabError
from hippo_core.methods import is_memory, load_memory, load_preset, origin, preset_names
from hippo_core.methods.episodic.settings import flat
from hippo_core.methods.overlay import merged, nested

KEYS = st.sampled_from("abcd")
TREES = st.recursive(st.integers() | st.lists(st.integers(), max_size=2), lambda inner: st.dictionaries(KEYS, inner, max_size=3))
MAPPINGS = st.dictionaries(KEYS, TREES, max_size=3)


@pytest.fixture
def presets(tmp_path, monkeypatch):
    """An empty folder of presets, and a way to write one."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))

    def write(name: str, text: str) -> None:
        path = tmp_path / "params/presets" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


@given(MAPPINGS, MAPPINGS)
def test_what_is_above_stands_and_what_it_does_not_say_stays(below, above):
    both = merged(below, above)
    assert merged(both, above) == both
    assert set(both) == set(below) | set(above)
    for key, value in above.items():
        told = isinstance(value, dict) and isinstance(below.get(key), dict)
        assert both[key] == (merged(below[key], value) if told else value)
    assert {key: value for key, value in both.items() if key not in above} == {key: below[key] for key in below if key not in above}


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d.e", "b.d.f"]), st.integers()))
def test_dotted_keys_are_nested_mappings(values):
    assert flat(nested(values)) == values


def test_an_overlay_is_the_preset_below_but_for_what_it_says(presets):
    presets("one", "condition: rag_bm25\nk: 3")
    presets("two", "extends: one\nk: 5")
    presets("three", "extends: two\ndecoding: plain")
    assert load_preset("three").model_dump(exclude_none=True) == {"name": "three", "condition": "rag_bm25", "decoding": "plain", "k": 5}
    assert origin("three") == "one"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a": "extends: b", "b": "extends: c", "c": "extends: a"}, "extend each other: a -> b -> c -> a"),
        ({"a": "extends: a"}, "extend each other: a -> a"),
        ({"a": "extends: b", "c": "condition: oracle"}, r"unknown preset \(which a extends\) 'b'; legal: a, c"),
        ({"a": "extends: b\ncondition: oracle", "b": "condition: window"}, "keeps the condition of the preset that it extends, which is b"),
        ({"a": "condition: dream"}, "unknown condition of preset a 'dream'; legal: .*hei_nw.*window"),
    ],
)
def test_what_is_wrong_is_named(presets, files, says):
    for name, text in files.items():
        presets(name, text)
    with pytest.raises(LabError, match=says):
        load_preset("a")


@pytest.mark.parametrize(
    ("text", "overrides", "says"),
    [
        ("episodic: {use_gates: true}", {}, "unknown setting of preset m 'episodic.use_gates'; legal: .*episodic.use_gate"),
        ("", {"replay.rat": 1}, "unknown setting of preset m 'replay.rat'; legal: .*replay.rate"),
        ("", {"episodic": 3}, "unknown setting of preset m 'episodic'"),
        ("", {"k": {"a": 1}}, "unknown setting of preset m 'k.a'"),
        ("", {"replay.rate": 2}, "replay.rate: .*got 2"),
        ("", {"episodic.use_completion": True}, "episodic.use_completion: .*'predictive', 'hopfield' or 'off'.*got True"),
        ("", {"episodic.code.channels": ["words", "words"]}, "a channel is named twice"),
        ("", {"condition": "hei_nw"}, "condition cannot be replaced"),
        ("controls: none", {}, "unknown setting of preset m 'controls'; legal: .*control"),
    ],
)
def test_what_is_wrong_with_a_memory_is_named(presets, text, overrides, says):
    presets("m", f"condition: hei_nw\n{text}")
    with pytest.raises(LabError, match=says):
        load_memory("m", overrides)


def test_a_condition_is_no_memory():
    with pytest.raises(LabError, match="is no memory's; run it alone: python -m hippo_core run baseline preset=controls/oracle"):
        load_memory("controls/oracle")


def test_each_control_and_ablation_says_one_thing_more_than_what_it_extends():
    gated = {"episodic.use_gate", "episodic.store.budget"}  # judged with room for half of what is told
    more = {
        "memory/hei_nw_gated": gated,
        "ablations/gate_random": gated | {"episodic.gate.policy", "episodic.gate.write_rate"},
        "ablations/gate_unflagged": gated | {"episodic.gate.gamma", "episodic.gate.delta"},
    }
    usual = load_memory("memory/hei_nw").of_phase("test")
    for name in (name for name in preset_names() if is_memory(name) and name != "memory/hei_nw"):
        told = load_memory(name).of_phase("test")
        differing = {key for key in told if told[key] != usual[key]}
        assert differing == more[name] if name in more else len(differing) == 1, name
        assert origin(name) == "memory/hei_nw"
