"""Every notebook runs from its first cell to its last on smoke parameters, through papermill, as the grid and a reader run it.

The first of them runs in an ordinary kernel, the others in forks of one process, which saves the imports of each.
"""

import json
import re

import papermill
import pytest

from hippo_core.files import root
from hippo_core.lab.warm import NAME, client, spec

SMOKE = {
    "00_base_model": {"n": 0},  # the measurement: tests/training/test_card.py
    "01_build_datasets": {"n": 10, "suites": ["episodic", "spatial"]},
    "02_baseline": {"run_id": "smoke-test", "suite": "semantic", "preset": "controls/oracle", "dry_run": True},
    "03_memory": {"run_id": "smoke-test", "step": "teach", "dry_run": True},
    "04_consolidation": {"run_id": "smoke-test", "dry_run": True, "steps": 2, "wordings": 4, "in_context": 2, "other_suites": 2},
    "04_sleeps": {
        "run_id": "smoke-test",
        "dry_run": True,
        "n": 50,
        "groups": 2,
        "steps": 2,
        "questions": 8,
        "wordings": 4,
        "in_context": 2,
    },
    "05_report": {"run_id": "smoke-test"},
    "06_cache_robustness": {"run_id": "smoke-test", "dry_run": True, "tasks": ["text"], "severities": [1.0], "defences": ["reset"]},
    "07_conversation": {"run_id": "smoke-test", "dry_run": True, "techniques": ["oracle", "recency", "bm25"]},
    "08_forgetting": {"run_id": "smoke-test", "dry_run": True, "model": "small", "tasks": ["copy", "reverse"]},
    "09_paired_evaluation": {"run_id": "smoke-test", "dry_run": True, "encoder": "own"},
    "10_dashboard": {"run_id": "smoke-test"},
}
NAMES = sorted(path.stem for path in (root() / "notebooks").glob("*.ipynb"))


def test_every_notebook_has_smoke_parameters():
    assert sorted(SMOKE) == NAMES


@pytest.fixture(scope="module")
def a_root_of_its_own(tmp_path_factory):
    """A root of its own for what the notebooks write, with the repository's code, data and parameters linked into it."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("root")
        for name in ("hippo_core", "params", "notebooks", "requirements.lock", "pyproject.toml"):
            (folder / name).symlink_to(root() / name)
        (folder / "data").mkdir()
        for name in ("weights", "paired"):
            (folder / "data" / name).symlink_to(root() / "data" / name)
        patch.setenv("HIPPO_ROOT", str(folder))
        patch.delenv("HIPPO_DATA", raising=False)  # text by path takes minutes
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def kernels(a_root_of_its_own):
    """Forked kernels, though another test may have ended those of this process."""
    spec.install()
    client.reopen()
    yield
    client.close()


def run(name, target, parameters, kernel=NAME):
    source = str(root() / "notebooks" / f"{name}.ipynb")
    notebooks = str(root() / "notebooks")  # where JupyterLab runs them
    papermill.execute_notebook(source, str(target), parameters, kernel_name=kernel, progress_bar=False, cwd=notebooks)


@pytest.fixture(scope="module")
def ran(tmp_path_factory, kernels):
    folder = tmp_path_factory.mktemp("notebooks")
    executed = {}
    for name in NAMES:  # in order: the report needs the record of the baseline
        target = folder / f"{name}.ipynb"
        run(name, target, SMOKE[name], "python3" if name == NAMES[0] else NAME)
        executed[name] = json.loads(target.read_text(encoding="utf-8"))
    return executed


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_ends_with_a_sentence_or_a_figure(ran, name):
    code = [cell for cell in ran[name]["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert code[-1]["outputs"], "the last cell shows nothing"


def test_the_page_of_a_report_is_a_link_that_leads_there_from_the_notebooks(ran):
    shown = [output["data"].get("text/html", "") for output in ran["05_report"]["cells"][-2]["outputs"] if "data" in output]
    [link] = re.findall(r'<a href="([^"]+)">', "".join(map("".join, shown)))
    assert link.startswith("../reports/smoke-test/")
    assert (root() / link.removeprefix("../")).is_file()


@pytest.mark.parametrize(("step", "regime"), [("replay", "delayed"), ("test", "delayed"), ("test", "after_sleep")])
def test_what_was_taught_is_replayed_and_asked(ran, tmp_path, step, regime):
    parameters = {**SMOKE["03_memory"], "step": step, "regime": regime}
    run("03_memory", tmp_path / "out.ipynb", parameters)
    records = root().glob(f"executed/smoke-test/memory/hei_nw/episodic/50_1337/{'after_sleep' if step == 'replay' else regime}-{step}-*")
    assert [(record / "DONE").is_file() for record in records] == [True]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_glues_its_result(ran, name):
    scraps = [output for cell in ran[name]["cells"] for output in cell.get("outputs", []) if "scrapbook" in output.get("metadata", {})]
    assert scraps
