"""Whether a condition ignores the window is what the method of its preset says."""

import pytest

from hippo_core.errors import LabError
from hippo_core.methods import presets
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.results.conditions import ignores_window
from hippo_core.results.figures import palette
from hippo_core.results.figures.palette import style_of


def test_of_our_presets_two_use_the_window():
    assert {name for name in preset_names() if not ignores_window(name)} == {"baselines/core", "baselines/span_short"}


def test_a_presets_look_is_data_beside_it_that_no_setting_and_no_record_knows(other_lab):
    file = other_lab / "params" / "presets" / "mine" / "recent.yaml"
    before = load_preset("mine/recent").described()
    file.write_text(file.read_text() + 'look: {order: 3, colour: "#123456", marker: o}\n')
    for cached in (palette._styles_in, presets._styles_of_presets):
        cached.cache_clear()
    assert style_of("mine/recent").colour == "#123456" and load_preset("mine/recent").described() == before
    file.write_text(file.read_text().replace("marker", "market"))
    for cached in (palette._styles_in, presets._styles_of_presets):
        cached.cache_clear()
    with pytest.raises(LabError, match="market is unknown or missing"):
        style_of("mine/recent")


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
