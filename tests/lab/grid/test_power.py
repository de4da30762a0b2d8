"""A grid says before it runs which claims its worlds are too few for; what was not said before a claim's first cell is not said later."""

import json

import pytest
import yaml

from hippo_core.lab.cli.grid_commands import plan_grid
from hippo_core.lab.grid.engine import RunOptions
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.preflight import declare, power
from hippo_core.protocols.base.qa.parameters import forget
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.protocols.questions.report.writing import verdicts_of
from hippo_core.results.criteria.power import read_declared
from tests.lab.conftest import DATASETS_PARAMETERS, make_lab, write_notebook
from tests.lab.running import lab
from tests.results import fake_records

OVER_WINDOW = {"rag_delayed/episodic", "rag_delayed/episodic_cross"}  # what the best rag of the grid tiny may claim


def planned(lab_dir, n, *only):
    """The grid tiny with this many questions, five a world."""
    path = lab_dir / "params/grids/tiny.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"blocks": [_block(path) | {"sizes": [n]}]}))
    return expand("tiny", selection=Selection(only=only))


def _block(path):
    return yaml.safe_load(path.read_text())["blocks"][0]


def declared(lab_dir):
    return {(claim.id, claim.n_worlds, claim.n_claims) for claim in read_declared(lab_dir / "executed/tiny/power.json")}


def ran(grid, *words):
    """Give these cells a record, as one has that ended, well or not."""
    for cell in grid.cells:
        if all(word in cell.label.split() for word in words):
            cell.record.mkdir(parents=True)


def test_a_plan_says_what_it_cannot_show(lab_dir):
    assert power(planned(lab_dir, 50).cells).startswith("2 claims cannot be shown with so few worlds, whatever the data: rag_delayed/")
    assert power(planned(lab_dir, 70).cells) == ""  # 2 * 2 / 2**14 < .001
    assert power(planned(lab_dir, 50, "baselines/rag_bm25").cells) == ""  # against nothing there is no claim


def test_the_cells_of_validation_and_other_worlds_make_no_claim_larger(lab_dir):
    path = lab_dir / "params/grids/tiny.yaml"
    blocks = [_block(path) | {"sizes": [50]}, _block(path) | {"sizes": [200], "splits": ["val"]}]
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"blocks": blocks}))
    assert declare(expand("tiny")).startswith("2 claims")
    assert declared(lab_dir) == {(name, 10, 2) for name in OVER_WINDOW}


def test_what_is_declared_of_a_claim_that_has_begun_stays(lab_dir):
    few = planned(lab_dir, 50)
    declare(few)
    before = (lab_dir / "executed/tiny/power.json").read_bytes()
    ran(few, "episodic", "delayed")
    declare(few)
    assert (lab_dir / "executed/tiny/power.json").read_bytes() == before
    shared = lab_dir / "params/criteria/shared.yaml"
    shared.write_text(shared.read_text().replace("alpha: .001", "alpha: .05"))
    declare(few)
    assert declared(lab_dir) == {("rag_delayed/episodic", 10, 2)}  # of the other nothing had run: the plan as it is now counts


def test_nothing_is_excused_after_its_first_cell(lab_dir):
    few = planned(lab_dir, 50)
    ran(few, "episodic", "baselines/rag_bm25")
    assert declare(few).startswith("2 claims")  # it is true, but comes too late for one of them
    assert declared(lab_dir) == {("rag_delayed/episodic_cross", 10, 2)}


def test_a_part_of_a_plan_takes_nothing_back(lab_dir):
    declare(planned(lab_dir, 50))
    declare(planned(lab_dir, 50, "baselines/rag_bm25"))
    assert {name for name, *_ in declared(lab_dir)} == OVER_WINDOW


def test_a_plan_that_grew_before_it_ran_is_declared_anew(lab_dir):
    declare(planned(lab_dir, 50))
    declare(planned(lab_dir, 70))
    assert declared(lab_dir) == set()
    assert json.loads((lab_dir / "executed/tiny/power.json").read_text())["cannot_be_shown"] == []


def test_a_grid_declares_before_its_first_cell_and_says_so(tmp_path):
    lab_dir = make_lab(tmp_path / "lab")
    path = lab_dir / "params/grids/quick.yaml"
    path.write_text(path.read_text().replace("sizes: [4]", "sizes: [10]"))
    poll = "from hippo_core.files import root\nraise SystemError((root() / 'executed' / run_id / 'power.json').read_text())"
    write_notebook(lab_dir / "notebooks/01_build_datasets.ipynb", DATASETS_PARAMETERS, (poll,))
    stdout = lab(lab_dir, "grid", "quick").stdout
    assert "power: 1 claim cannot be shown with so few worlds, whatever the data: rag_delayed/episodic; at least 10 worlds" in stdout
    [error] = lab_dir.glob("executed/quick/datasets/**/error.txt")
    assert '"cannot_be_shown": [' in error.read_text() and '"id": "rag_delayed/episodic"' in error.read_text()


def test_a_plan_prints_it_and_writes_nothing(lab_dir, capsys):
    planned(lab_dir, 50)
    plan_grid("tiny", "", Selection(), RunOptions())
    assert "\npower: 2 claims cannot be shown" in capsys.readouterr().out
    assert not (lab_dir / "executed").exists()


@pytest.mark.parametrize(("is_declared", "verdict"), [(True, "not judged"), (False, "not shown")])
def test_a_report_excuses_what_its_run_declared(lab_dir, is_declared, verdict):
    run = lab_dir / "executed/tiny"
    if is_declared:
        declare(planned(lab_dir, 50))
    for preset, right in (("baselines/rag_bm25", 1.0), ("baselines/span_short", 0.0)):
        rows = fake_records.make_rows("episodic", preset, "delayed", n=50).assign(score=right, em_norm=right)
        fake_records.add_record(run, "episodic", preset, "delayed", n=50, rows=rows, model="model")
    result = {result.id: result for result in verdicts_of(load_run(run))}["rag_delayed/episodic"]
    assert result.verdict == verdict and ("declared before the run: 10 worlds" in result.reason) is is_declared


def test_a_plan_of_fewer_worlds_than_an_interval_takes_says_so(lab_dir):
    shared = lab_dir / "params/criteria/shared.yaml"
    shared.write_text(shared.read_text().replace("alpha: .001", "alpha: .05"))
    assert "at least 10 worlds would be needed" in power(planned(lab_dir, 45).cells)  # 2 * 2 / 2**9 < .05, and there is no interval
    assert power(planned(lab_dir, 50).cells) == ""


@pytest.fixture(autouse=True)
def strict(request):
    """Ten worlds, the fewest that an interval takes, are too few for two claims at .001. Parameters are resolved anew after a test."""
    if "lab_dir" in request.fixturenames:
        shared = request.getfixturevalue("lab_dir") / "params/criteria/shared.yaml"
        shared.write_text(shared.read_text().replace("alpha: .05", "alpha: .001"))
    yield
    forget()
