"""Cells of a composite: it is taught nothing, and stands behind the same cells as its parts alone."""

import pytest

from hippo_core.errors import LabError
from hippo_core.lab.grid.expand import expand
from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.cells import cells_of
from hippo_core.protocols.base.qa import parameters as parameters_module
from hippo_core.protocols.questions.protocol import MEMORY

COMPOSITE = "method: hippo_core.methods.composite:Composite\ndelivery: kv\n"
BOTH = f"{COMPOSITE}parts: {{episodic: memory/hei_nw, gated: memory/hei_nw_gated}}\n"
WAKEFUL = "from hippo_core.methods.base import Memory\n\n\nclass Wakeful(Memory):\n    pass\n"
GRID = """
title: a composite beside its parts
blocks:
  - {suites: [episodic], presets: [memory/hei_nw, mine/both], regimes: [delayed, after_sleep], models: [model], sizes: [4]}
"""


@pytest.fixture
def lab(lab_dir, monkeypatch):
    """The small lab with presets of a composite, and a way to write one more."""

    def write(name, text):
        path = lab_dir / "params/presets/mine" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        parameters_module.forget()
        fingerprints.forget()

    write("both", BOTH)
    return write


def chain(**changes):
    given = {"model": "model", "n": 4, "preset": "mine/both", **changes}
    return cells_of(MEMORY.plan(MEMORY.check(given, "test")))


def test_a_composite_stands_behind_the_cells_of_its_parts(lab):
    for regime, step in (("delayed", "teach"), ("after_sleep", "replay")):
        test = chain(regime=regime, overrides=["k=2", "n_facts=40"])[-1]
        alone = {part: chain(preset=part, regime=regime, overrides=["n_facts=40"])[-1] for part in ("memory/hei_nw", "memory/hei_nw_gated")}
        assert list(test.needs) == ["data", "store:episodic", "store:gated"]
        assert [test.needs[f"store:{name}"] for name in ("episodic", "gated")] == [cell.needs["store"] for cell in alone.values()]
        assert all(step in test.needs[f"store:{name}"] for name in ("episodic", "gated"))


def test_a_part_without_a_replay_brings_what_it_was_taught(lab, lab_dir, monkeypatch):
    monkeypatch.syspath_prepend(lab_dir)
    (lab_dir / "own_wakeful.py").write_text(WAKEFUL)
    lab("wakeful", "method: own_wakeful:Wakeful")
    lab("both", f"{COMPOSITE}parts: {{episodic: memory/hei_nw, wakeful: mine/wakeful}}")
    needs = chain(regime="after_sleep")[-1].needs
    assert "replay" in needs["store:episodic"] and "teach" in needs["store:wakeful"]
    with pytest.raises(LabError, match="preset mine/wakeful has no replay"):
        chain(preset="mine/wakeful", regime="after_sleep")
    before = chain()[-1]
    (lab_dir / "own_wakeful.py").write_text(f"{WAKEFUL}    k = 2\n")
    fingerprints.forget()
    changed = chain()[-1]
    assert changed.checksums["library"] != before.checksums["library"]
    assert changed.needs["store:episodic"] == before.needs["store:episodic"]


def test_a_part_s_settings_and_the_order_of_parts_are_the_test_s(lab):
    usual = chain()[-1]
    lab("late", "extends: memory/hei_nw\nepisodic: {recall: {recency: 1.0}}")
    other = chain(overrides=["parts.episodic=mine/late"])[-1]
    assert other.id != usual.id and other.needs == usual.needs
    assert chain(overrides=['parts={"episodic": "mine/late"}'])[-1].checksums == other.checksums
    lab("both", f"{COMPOSITE}parts: {{gated: memory/hei_nw_gated, episodic: memory/hei_nw}}")
    assert chain()[-1].id != usual.id
    lab("late", "extends: memory/hei_nw\nepisodic: {recall: {recency: 1.5}}")
    lab("both", BOTH)
    assert chain()[-1].id == usual.id and chain(overrides=["parts.episodic=mine/late"])[-1].id != other.id


def test_a_grid_teaches_once_for_a_composite_and_its_part(lab, lab_dir):
    (lab_dir / "params/grids/parts.yaml").write_text(GRID)
    cells = expand("parts").cells
    steps = [cell.parameters.get("step", "data") for cell in cells]
    assert {step: steps.count(step) for step in steps} == {"data": 1, "teach": 2, "replay": 2, "test": 4}


@pytest.mark.parametrize("parameters", [{"step": "teach"}, {"step": "replay"}, {"store_dir": "stores"}, {"step": "teach", "persist": True}])
def test_a_composite_has_no_store_of_its_own(lab, parameters):
    with pytest.raises(LabError, match=r"has no store of its own: .*preset=memory/hei_nw, preset=memory/hei_nw_gated") as error:
        chain(**parameters)
    assert "\n" not in str(error.value)
