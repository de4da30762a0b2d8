"""What is wrong with an experiment, or with a block of a grid that names one, is one line before anything starts."""

from dataclasses import replace
from typing import ClassVar, Literal

import pandas as pd
import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.evaluation.table import ITEMS
from hippo_core.lab.grid import expand as expanding
from hippo_core.lab.grid.expand import expand, in_order
from hippo_core.lab.run.cells import Cell, cells_of
from hippo_core.methods.base import Method
from hippo_core.models import checksums
from hippo_core.protocols.base.experiment import Experiment, experiments, planned
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.results.records import Table
from hippo_core.results.records.read import ITEM

TABLE = Table(columns=("layer", "text", "loss"), unit="layer", cluster="text", measures=("loss",), text=("text",))


class GridParameters(Parameters):
    share: float = 0.0


class Stepped(GridParameters):
    step: Literal["a", "b"] = "a"


MINE = Experiment("mine:MINE", "02_baseline", GridParameters, "hippo_core.files", (TABLE,))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tables": ()}, "experiment mine:MINE has no table; say what its rows are"),
        ({"tables": (TABLE, replace(TABLE, file="b.csv"))}, "two tables have the step 'test'"),
        ({"tables": (TABLE, replace(TABLE, step="b"))}, "two tables have the file 'metrics.csv'"),
        ({"tables": (TABLE, replace(TABLE, step="b", file="b.csv"))}, "has 2 steps and no parameter `step`"),
        ({"tables": (replace(TABLE, cluster="world"),)}, "the cluster column 'world' is none of its columns: layer, text, loss"),
        ({"tables": (replace(TABLE, unit="item"),)}, "the unit column 'item' is none of its columns"),
        ({"tables": (replace(TABLE, measures=("score",)),)}, "measures names 'score', which is none of its columns"),
        ({"tables": (replace(TABLE, file="../rows"),)}, "expected the name of a CSV file"),
    ],
)
def test_parts_that_do_not_fit_together_are_named(change, says):
    with pytest.raises(LabError) as error:
        replace(MINE, **change).require()
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({"share": [0.1]}, "unknown axis 'share'; legal:"),
        ({"experiment": "mine", "corruption": [1]}, "unknown axis 'corruption'; legal: model, seed, threads, dry_run, share"),
        ({"experiment": "mine", "share": []}, "share: expected at least one value"),
        ({"experiment": "mine", "share": ["much"]}, "share: Input should be a valid number"),
        ({"experiment": "mine", "seeds": [1], "seed": [2]}, "seed is an axis twice"),
        ({"experiment": 7}, "experiment: expected a name or a module path, got 7"),
        ({"suites": ["episodic"]}, "it names no experiment and no presets"),
        ({"suites": ["episodic"], "presets": ["baselines/core"], "overrides": ["k=1"]}, "overrides: expected a list of lists"),
    ],
    ids=str,
)
def test_a_block_that_makes_no_cells_is_one_line(tmp_path, monkeypatch, block, says):
    with pytest.raises(LabError) as error:
        expanded(tmp_path, monkeypatch, block)
    assert says in str(error.value) and "\n" not in str(error.value)


def expanded(tmp_path, monkeypatch, block):
    """The cells of a grid of one block, in which `mine` is the experiment of this file."""
    (tmp_path / "params/grids").mkdir(parents=True)
    (tmp_path / "params/grids/one.yaml").write_text(yaml.safe_dump({"title": "one", "blocks": [block]}))
    monkeypatch.setattr(expanding, "grid_names", lambda: ["one"])
    monkeypatch.setattr(expanding, "root", lambda: tmp_path)
    known = expanding.load_experiment
    monkeypatch.setattr(expanding, "load_experiment", lambda name: MINE if name == "mine" else known(name))
    return expand("one").cells


def test_every_value_of_every_axis_is_a_cell(tmp_path, monkeypatch):
    cells = expanded(tmp_path, monkeypatch, {"experiment": "mine", "share": [0.1, 0.2], "seeds": [1, 2], "threads": 2})
    combinations = {(cell.parameters["share"], cell.parameters["seed"], cell.parameters["threads"]) for cell in cells}
    assert combinations == {(share, seed, 2) for share in (0.1, 0.2) for seed in (1, 2)} and len(cells) == 4


def test_a_column_that_is_missing_or_nobody_declares_is_an_error():
    rows = pd.DataFrame({"text": ["a"], "layer": [0], "loss": [1.0]})
    assert list(TABLE.arranged(rows)) == ["layer", "text", "loss"]
    with pytest.raises(LabError, match="lack the column 'loss'"):
        TABLE.arranged(rows.drop(columns="loss"))
    with pytest.raises(LabError, match="column 'mine', which nobody declares"):
        TABLE.arranged(rows.assign(mine=1))
    assert "mine" in TABLE.arranged(rows.assign(mine=1), ("mine",))


def test_the_metrics_of_a_table_go_by_its_clusters():
    rows = pd.DataFrame([{"layer": layer, "text": f"t{text}", "loss": text + layer / 100} for text in range(12) for layer in range(50)])
    apart = TABLE.means(rows)["metrics"]["loss"]
    by_unit = replace(TABLE, cluster="layer").means(rows)["metrics"]["loss"]
    assert apart["n"] == 600 and apart["n_clusters"] == 12 and apart["mean"] == pytest.approx(5.745)
    assert apart["high"] - apart["low"] > 4 and by_unit["n_clusters"] == 50
    assert by_unit["high"] - by_unit["low"] < 1


class Own(Method):
    columns: ClassVar = {"test": ("walked",)}


def test_a_method_s_own_columns_are_those_that_it_declares():
    assert Own.own_columns("test", {"walked": 2}) == {"walked": 2.0}
    assert Own.own_columns("test", {})["walked"] != Own.own_columns("test", {})["walked"]  # NaN: not measured
    assert Own.own_columns("teach", {}) == {}
    with pytest.raises(LabError, match="unknown column of Own at test 'ran'; legal: walked"):
        Own.own_columns("test", {"ran": 1.0})


def test_a_cell_stands_behind_what_it_needs_and_its_id_follows_these():
    def of(share: float, **needs: CellPlan) -> CellPlan:
        return planned(MINE, GridParameters(share=share), needs)

    first, other = of(0.1), of(0.2)
    cells = cells_of(of(0.3, before=first))
    assert [cell.parameters["share"] for cell in cells] == [0.1, 0.3]
    assert cells[-1].needs == {"before": cells[0].id} and cells[-1].sources == {"before": cells[0].record}
    assert len({cells_of(of(0.3, **needs))[-1].id for needs in ({}, {"before": first}, {"before": other}, {"after": first})}) == 4


def test_cells_are_put_behind_their_needs_whatever_their_notebooks_are_called(tmp_path):
    cells = [Cell("p", {}, name, tmp_path, name, {need: need for need in needs}) for name, needs in (("a", "c"), ("b", ""), ("c", "b"))]
    assert [cell.id for cell in in_order(cells)] == ["b", "c", "a"]


def weights_of_model():
    return checksums.weights("model")


def weights_of_method():
    return checksums.fitted(("{model}/key.*",), "hippo-tiny")


@pytest.mark.parametrize(
    ("weights", "folder", "mine", "other"),
    [
        (weights_of_model, "model", "model.safetensors", "relations.safetensors"),
        (weights_of_method, "data/weights/hippo-tiny", "key.safetensors", "adapter.safetensors"),
    ],
)
def test_weights_are_a_part_of_their_cells_and_other_files_beside_them_are_not(tmp_path, monkeypatch, weights, folder, mine, other):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "config.json").write_text("{}")
    ids = []
    for file, content in ((mine, b"weights"), (other, b"of something else"), (mine, b"others")):
        (tmp_path / folder / file).write_bytes(content)
        checksums.forget()
        ids.append(weights())
    checksums.forget()
    assert ids[0] == ids[1] != ids[2]


def test_no_rows_but_answers_are_read_as_such():
    tables = [(experiment, table) for experiment in experiments() for table in experiment.tables]
    answers = {(experiment.name, table.step) for experiment, table in tables if table.unit == ITEM}
    assert answers == {(experiment.name, table.step) for experiment, table in tables if {*ITEMS.columns} <= {*table.columns}}
    assert len(tables) > len(answers) > 1
