"""Whether a condition ignores the window is what the method of its preset says."""

from hippo_core.methods.presets import preset_names
from hippo_core.results.figures.palette import ignores_window


def test_of_our_presets_two_use_the_window():
    assert {name for name in preset_names() if not ignores_window(name)} == {"baselines/core", "baselines/span_short"}


def test_a_variant_does_as_its_preset_does():
    assert not ignores_window("baselines/core (delivery=kv)") and ignores_window("memory/hei_nw (k=5)")


def test_a_preset_of_ones_own_that_uses_the_window_is_seen_in_its_own_lab_only(other_lab, monkeypatch):
    assert not ignores_window("mine/recent") and not ignores_window("mine/recent (control=shuffled)")
    monkeypatch.delenv("HIPPO_ROOT")
    assert ignores_window("mine/recent")


def test_a_preset_that_cannot_be_loaded_here_ignores_the_window_until_it_can(other_lab):
    assert all(map(ignores_window, ("mine/newer_library", "mine/no_module", "mine/later")))
    (other_lab / "params" / "presets" / "mine" / "later.yaml").write_text("method: own_window:Recent\n")
    assert not ignores_window("mine/later")
