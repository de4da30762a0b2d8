"""`begin` and `finish`, as a notebook calls them: its worlds are those of its split, and no score stands that the answers do not earn."""

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.files import MARK
from hippo_core.lab.run import notebook_files
from hippo_core.results import records
from hippo_core.suites.draw import worlds


def opened(**parameters):
    """The names of the lab's quick notebook of baselines after its first cell, and the sources of the others."""
    path = notebook_files.notebook_path("02_baseline")
    first, *others = notebook_files.code(path)
    space = {**notebook_files.defaults(path), "model": "model", "n": 7, **parameters}
    exec(first, space)
    return space, others


@pytest.mark.parametrize("split", ["test", "val"])
def test_a_cell_asks_about_the_worlds_of_its_split(lab_dir, split):
    space, others = opened(split=split)
    due = {split: list(worlds("episodic", "default", 7, 1337, split, 512)) for split in ("test", "val")}
    assert space["worlds"] == space["cell"].worlds() == due[split]
    assert {split: space["cell"].worlds(split) for split in due} == due
    for source in others:
        exec(source, space)
    record = space["cell"].record
    assert records.is_complete(record)
    assert pd.read_csv(record / "metrics.csv")["item_id"].tolist() == [item.id for world in due[split] for item in world.items]


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ("rows.assign(score=1.0)", "has score 1, its prediction .* earns 0"),
        ("rows.assign(em_norm=1.0, em_raw=1.0, f1=1.0)", "its prediction .* earns 0"),
        ("rows.assign(pred=[*rows['pred'][1:], rows['pred'][0]])", "its prediction .* earns|and forced to"),
        ("rows.assign(answer=rows['pred'], score=1.0)", "has the answer 'nobody'"),
        ("rows.assign(item_id=rows['item_id'].str.replace('test', 'val'))", "is not in the suite"),
        ("rows.assign(chance=0.0)", "has chance 0"),
        ("rows.assign(mine=0.0)", "column 'mine', which nobody declares"),
    ],
    ids=["score", "exact match", "predictions shifted", "answers as predicted", "other items", "chance", "a column of nobody's"],
)
def test_rows_that_their_answers_do_not_earn_fail_the_cell(lab_dir, lie, says):
    space, [source] = opened()
    with pytest.raises(LabError, match=says):
        exec(source.replace("lab.finish(cell, rows)", f"lab.finish(cell, {lie})"), space)
    assert {path.name for path in space["cell"].record.iterdir()} == {MARK, "config_snapshot.yaml", "meta.json"}  # no rows, no DONE


def cell_of(**parameters):
    """The parameters cell as a person leaves it, its comments aside."""
    values = notebook_files.defaults(notebook_files.notebook_path("02_baseline")) | parameters
    return "\n".join(f"{name} = {value!r}" for name, value in values.items())


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([cell_of(k=3)], "unknown parameter 'k'; legal: batch_size, dry_run"),
        ([cell_of().replace("regime =", "regimes =")], "unknown parameter 'regimes'; .*; nearest: regime"),
        ([cell_of() + "\nregimes: str = 'immediate'"], "'regimes'"),
        (["%matplotlib inline", cell_of(k=3).replace("n = 50", "n = 2 * 25")], "'k'"),
        ([cell_of(), cell_of(k=3)], "'k'"),
        ([cell_of(), "# Parameters\nregimes = 'immediate'\n"], "'regimes'"),
    ],
)
def test_a_parameter_that_the_notebook_does_not_have_is_refused(lab_dir, inputs, says):
    with pytest.raises(LabError, match=says):
        opened(In=["", *inputs, "from hippo_core import lab"])
    assert not (lab_dir / "executed").exists()


@pytest.mark.parametrize(
    "inputs", [[cell_of(k=3), cell_of()], ["a b", cell_of(), "k = 3", "seed = 7\nworlds_seen = 2"], [cell_of(regime="delayed")]]
)
def test_what_was_mended_and_names_of_other_cells_are_no_parameters(lab_dir, inputs):
    assert opened(In=["", *inputs])[0]["cell"].parameters.n == 7
