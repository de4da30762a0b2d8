"""A grid expands to each cell once, in order of dependence, with ids that follow values and nothing else."""

import re

import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.lab.grid.expand import Selection, expand, load_grid
from hippo_core.lab.run import cells, fingerprints
from hippo_core.lab.run.cells import cells_of
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.base.qa.parameters import forget
from hippo_core.suites import drawn_suites


def write_grid(lab_dir, **changes):
    file = yaml.safe_load((lab_dir / "params/grids/tiny.yaml").read_text())
    file["blocks"][0] |= changes
    (lab_dir / "params/grids/tiny.yaml").write_text(yaml.safe_dump(file))
    return expand("tiny")


def cell_with(**changes):
    experiment = load_experiment("answer")
    return cells_of(experiment.plan(experiment.check({"model": "model", "n": 4, **changes}, "test")))[-1]


def of_phase(grid, phase):
    return [cell for cell in grid.cells if cell.phase == phase]


def test_coinciding_cells_are_left_out(lab_dir):
    settings = {(c.parameters["suite"], c.parameters["preset"], c.parameters["regime"]) for c in of_phase(expand("tiny"), "02_baseline")}
    assert settings == {
        ("episodic", "baselines/span_short", "immediate"),
        ("episodic", "baselines/span_short", "delayed"),
        ("episodic", "baselines/rag_bm25", "delayed"),
        ("episodic_cross", "baselines/span_short", "delayed"),
        ("episodic_cross", "baselines/rag_bm25", "delayed"),
    }


def test_ids_do_not_depend_on_order(lab_dir):
    before = {cell.id for cell in expand("tiny").cells}
    after = {cell.id for cell in write_grid(lab_dir, suites=["episodic_cross", "episodic"], regimes=["delayed", "immediate"]).cells}
    assert after == before


@pytest.mark.parametrize(
    "change",
    [
        {"n": 5},
        {"seed": 1},
        {"profile": "hard"},
        {"preset": "baselines/core"},
        {"split": "val"},
        {"overrides": ["n_facts=40"]},
        {"dry_run": True},
    ],
    ids=str,
)
def test_ids_follow_values(lab_dir, change):
    assert cell_with(**change).id != cell_with().id


def test_ids_do_not_depend_on_the_run(lab_dir):
    assert cell_with(run_id="a", record_dir="x").id == cell_with(run_id="b").id


@pytest.mark.parametrize("name", ["model/model.safetensors", "params/presets/baselines/span_short.yaml", "params/suites/episodic.yaml"])
def test_ids_follow_weights_and_settings(lab_dir, name):
    before = cell_with().id
    changed = {
        "model.safetensors": "other weights",
        "span_short.yaml": "method: hippo_core.methods.baselines:Window\ndecoding: plain\n",
        "episodic.yaml": "default: {n_facts: 9}",
    }
    (lab_dir / name).write_text(changed[name.split("/")[-1]])
    fingerprints.forget()
    forget()
    assert cell_with().id != before


def test_ids_follow_the_code_of_the_notebook_and_not_its_text(lab_dir):
    path = lab_dir / "notebooks/02_baseline.ipynb"
    before = cell_with().id
    path.write_text(path.read_text().replace('"cells": [', '"cells": [{"cell_type": "markdown", "metadata": {}, "source": "Words."}, '))
    fingerprints.forget()
    assert cell_with().id == before
    path.write_text(path.read_text().replace("nobody", "somebody"))
    fingerprints.forget()
    assert cell_with().id != before


def of_preset(grid, name):
    return [cell for cell in of_phase(grid, "02_baseline") if cell.parameters["preset"] == f"baselines/{name}"]


def test_encoders_are_an_axis_of_the_presets_that_read_one(lab_dir):
    grid = write_grid(lab_dir, presets=["baselines/rag_bm25", "baselines/rag_dense"], encoders=["own", "minilm"], suites=["episodic"])
    assert [cell.parameters["overrides"] for cell in of_preset(grid, "rag_bm25")] == [[]]
    assert [cell.parameters["overrides"] for cell in of_preset(grid, "rag_dense")] == [[], ["encoder=minilm"]]
    assert of_preset(grid, "rag_dense")[1].label.endswith("encoder=minilm")


def test_an_encoder_stands_beside_overrides_and_the_usual_one_is_no_override(lab_dir):
    block = {"presets": ["baselines/rag_hybrid"], "overrides": [["n_facts=8"], []], "suites": ["episodic"]}
    before = [cell.id for cell in write_grid(lab_dir, **block).cells]
    assert [cell.id for cell in write_grid(lab_dir, **block, encoders=["own"]).cells] == before
    grid = write_grid(lab_dir, **block, encoders=["minilm"])
    assert [cell.parameters["overrides"] for cell in of_preset(grid, "rag_hybrid")] == [["n_facts=8", "encoder=minilm"], ["encoder=minilm"]]
    assert [cell.plan.config["preset"]["encoder"] for cell in of_preset(grid, "rag_hybrid")] == ["minilm"] * 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"suites": ["episodik"]}, "episodic_cross"),
        ({"presets": ["baselines/rag"]}, "baselines/rag_bm25"),
        ({"models": ["gpt"]}, "hippo-tiny"),
        ({"profiles": ["easy"]}, "default"),
        ({"regimes": ["later"]}, "delayed"),
        ({"sizes": ["many"]}, "many"),
        ({"encoders": ["glove"]}, "minilm"),
        ({"encoders": ["minilm"], "presets": ["baselines/rag_dense"], "overrides": [["encoder=own"]]}, "encoder is given twice"),
        ({"overrides": [["n_fact=3"]]}, "n_facts"),
        ({"overrides": [["n_facts"]]}, "key=value"),
        ({"colours": ["red"]}, "suites"),
        ({"experiment": "answers"}, "answer, cache, consolidation, conversation, forgetting, memory, package.module:NAME, paired, sleeps"),
        ({"experiment": "nobody.knows:THIS"}, "no module 'nobody'"),
    ],
    ids=str,
)
def test_a_wrong_name_is_one_line_with_the_legal_ones(lab_dir, change, says):
    with pytest.raises(LabError) as error:
        write_grid(lab_dir, **change)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["smoke", "default", "full", "real"])
def test_the_grids_of_the_lab_are_whole(lab_dir, name):
    grid = expand(name, selection=Selection(models=("model",)))
    cells = of_phase(grid, "02_baseline")
    assert {c.parameters["suite"] for c in cells} >= {"episodic", "semantic", "spatial", "babi"}
    assert len({c.record for c in cells}) == len(cells)


def test_the_full_grid_asks_every_drawn_suite_of_every_memory_at_three_sizes_with_three_seeds():
    memories = {"memory/hei_nw", "memory/sgc_rss", "memory/smpd", "memory/all"}
    blocks = [axes for _, _, axes in load_grid("full")[1] if memories <= set(axes["preset"])]
    assert {suite for axes in blocks for suite in axes["suite"]} == set(drawn_suites())
    assert {(*axes["n"], len(axes["seed"])) for axes in blocks} == {(50, 200, 1000, 3)}


def test_a_setting_in_the_place_of_a_parameter_is_answered_by_where_it_goes(lab_dir):
    for given, says in ({"k": 3}, "[k=3]"), ({"n_facts": 9, "preset.k": 2}, "[n_facts=9, preset.k=2]"):
        with pytest.raises(LabError, match=re.escape(f"not of the cell: overrides='{says}'")):
            cell_with(preset="baselines/rag_bm25", **given)
    with pytest.raises(LabError, match="nothing: unknown key; legal: "):
        cell_with(nothing=3)


def key_of(cell):
    """What sets a cell of `real` apart."""
    given = cell.parameters
    return given["model"], given["split"], given["suite"], tuple(text for text in given["overrides"] if not text.startswith("encoder"))


def test_the_grid_real_compares_equals_with_a_published_encoder():
    """In the repository itself, whose models it names: they need not be there for that."""
    forget()
    cells = of_phase(expand("real"), "02_baseline")
    dense = [cell for cell in cells if cell.parameters["preset"].endswith(("rag_dense", "rag_hybrid"))]
    assert dense and all("encoder=minilm" in cell.parameters["overrides"] for cell in dense)
    assert not any("encoder=minilm" in cell.parameters["overrides"] for cell in cells if cell not in dense)
    presets = {}
    for cell in cells:
        presets.setdefault(key_of(cell), set()).add(cell.parameters["preset"].split("/")[1])
    rags = {"rag_bm25", "rag_dense", "rag_hybrid"}
    everything = rags | {"span_short", "longctx", "oracle", "random_facts"}
    assert {key: names for key, names in presets.items() if names != (everything if key[1] == "test" else rags)} == {}
    tested = {key[0] + key[2] + str(key[3]) for key in presets if key[1] == "test"}
    assert tested == {key[0] + key[2] + str(key[3]) for key in presets if key[1] == "val"}  # each has its own best rag
    assert len(tested) == 3 + 6 + 1


def test_two_cells_that_would_write_one_folder_are_refused(lab_dir, monkeypatch):
    monkeypatch.setattr(cells, "cell_id", lambda prefix, *_: f"{prefix}-00000000")
    with pytest.raises(LabError, match=r"span_short.*rag_bm25.* would both write .*delayed-test-00000000"):
        write_grid(lab_dir, suites=["episodic"], regimes=["delayed"])


def test_threads_of_the_command_stand_over_those_of_the_file(lab_dir):
    assert {cell.parameters["threads"] for cell in of_phase(expand("tiny"), "02_baseline")} == {1}
    assert {cell.parameters["threads"] for cell in of_phase(expand("tiny", threads=3), "02_baseline")} == {3}


def test_a_selection_keeps_cells_of_its_seeds_and_sizes_and_what_they_need(lab_dir):
    write_grid(lab_dir, seeds=[1337, 2025], sizes=[4, 8])
    cells = {cell.id for cell in expand("tiny").cells}
    part = expand("tiny", selection=Selection(seeds=(2025,), sizes=(8,))).cells
    assert {(cell.parameters["seed"], cell.parameters["n"]) for cell in part} == {(2025, 8)}
    assert {cell.id for cell in part} < cells
    assert {cell.phase for cell in part} == {"01_build_datasets", "02_baseline"}
    with pytest.raises(LabError, match="no cell left of seed 7 and size 4 or 8"):
        expand("tiny", selection=Selection(seeds=(7,), sizes=(4, 8)))
