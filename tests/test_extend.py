"""The examples of docs/extend.md as they stand: a memory, a suite with a score, a criterion, a grid, an experiment of one's own."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pandas as pd
import pytest

from hippo_core.files import root
from hippo_core.lab.grid.expand import expand
from hippo_core.lab.run import fingerprints

DOCS = (root() / "docs/extend.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", DOCS, re.DOTALL))
AGAIN = """  - experiment: my_lab.again:AGAIN
    suites: [episodic]
    presets: [baselines/rag_bm25]
    regimes: [delayed]
    sizes: [5]
"""
CELLS = (
    'from hippo_core import lab\nfrom my_lab.again import ask_again\n\ncell = lab.begin("my_lab.again:AGAIN", globals())',
    "rows = ask_again(cell, cell.worlds())\nmetrics = lab.finish(cell, rows)",
)


def ids(names):
    """The cells' ids of a grid, by label."""
    fingerprints.forget()
    return {cell.label: cell.id for name in names for cell in expand(name).cells}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A lab of its own, the examples in it; and the ids that cells of the smoke grid had before."""
    place = tmp_path_factory.mktemp("lab")
    for name in ("hippo_core", "notebooks", "requirements.lock"):
        (place / name).symlink_to(root() / name)
    for path in (root() / "params").rglob("*.yaml"):
        (place / path.relative_to(root())).parent.mkdir(parents=True, exist_ok=True)
        (place / path.relative_to(root())).symlink_to(path)
    (place / "data").mkdir()
    for path in (root() / "data").iterdir():
        if path.name != "generated":
            (place / "data" / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIPPO_ROOT", str(place))
        before = ids(["smoke"])
        for name, text in EXAMPLES.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
        grid = place / "params/grids/mine.yaml"
        grid.write_text(f"{grid.read_text()}{AGAIN}", encoding="utf-8")
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
        usual = notebook_parameters()
        notebook.cells = [nbformat.v4.new_code_cell(usual, metadata={"tags": ["parameters"]}), *map(nbformat.v4.new_code_cell, CELLS)]
        nbformat.write(notebook, place / "my_lab/again.ipynb")
        yield place, before
    fingerprints.forget()


def notebook_parameters():
    """The parameters cell of notebook 02, and the one parameter more."""
    content = json.loads((root() / "notebooks/02_baseline.ipynb").read_text())
    [source] = ["".join(cell["source"]) for cell in content["cells"] if "parameters" in cell["metadata"].get("tags", ())]
    return f'{source}\nplease = "Please tell me:"'


def test_each_example_is_short():
    assert set(EXAMPLES) >= {
        "my_lab/newest.py",
        "my_lab/sellers.py",
        "my_lab/again.py",
        "params/criteria/mine.yaml",
        "params/grids/mine.yaml",
    }
    assert all(text.count("\n") <= 60 for text in EXAMPLES.values())


def test_the_grid_of_the_example_asks_in_ten_worlds(lab):
    cells = [cell for cell in expand("mine").cells if cell.resolved and "SELLERS" in cell.label]
    asked = {cell.resolved.parameters.items / cell.resolved.suite.settings().n_items for cell in cells}
    assert asked == {10.0}
    assert "`.venv/bin/hippo run memory preset=mine/newest` first" in DOCS


def test_all_of_it_runs_through_a_grid_to_a_report_and_changes_no_other_cell(lab):
    place, before = lab
    assert ids(["smoke"]) == before
    command = [sys.executable, "-m", "hippo_core", "grid", "mine"]
    ran = subprocess.run(command, cwd=place, env=os.environ, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = {path.parts[-5:-3]: pd.read_csv(path) for path in place.glob("executed/mine/*/*/*/*/*/metrics.csv")}
    mine, other = rows["newest", "my_lab-sellers-SELLERS"], rows["newest_shuffled", "my_lab-sellers-SELLERS"]
    assert mine["recall_1"].mean() > 0.9 and (mine["score"] >= mine["em_norm"]).all()
    assert other["score"].mean() < mine["score"].mean()
    assert "again" in rows["rag_bm25", "episodic"]
    verdicts = json.loads((place / "reports/mine/criteria.json").read_text())["criteria"]
    assert "newest_over_nothing" in {one["id"] for one in verdicts}
    assert "newest" in (place / "reports/mine/index.md").read_text()
