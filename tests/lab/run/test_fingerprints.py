"""A cell's id follows the modules that its rows come from, of this package and of the user's own, and no other."""

import sys

import pytest

from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.cells import cells_of
from hippo_core.protocols.base.experiment import experiment_of, load_experiment
from hippo_core.protocols.base.qa import parameters

CELLS = {  # preset and overrides
    "window": ("baselines/span_short", []),
    "bm25": ("baselines/rag_bm25", []),
    "rerank": ("baselines/rag_rerank", []),
    "memory": ("memory/hei_nw", []),
    "adapter": ("memory/hei_nw", ["delivery=adapter"]),
}
MEMORIES, RAGS = {"memory", "adapter"}, {"bm25", "rerank"}
MEMORY_FILES = ("methods/episodic/replay", "retrieval/recall", "retrieval/trace_index", "store/journal", "protocols/questions/run")
KERNEL_FILES = ("kernels/kwta/cpu", "kernels/hopfield/triton", "delivery/kv")
SHARED_FILES = ("methods/base", "evaluation/run", "models/load", "models/generate", "results/scores", "suites/wording")
OTHER_FILES = ("suites/spatial/__init__", "suites/babi/story", "lab/grid/expand", "lab/run/execute", "training/lessons")
REPORT_FILES = (*(f"protocols/questions/{name}" for name in ("protocol", "figures/plots", "report/tables")), "protocols/base/reporting")
FOLLOW = {  # which cells follow a file
    "methods/baselines.py": {"window"},
    "delivery/text.py": {"window", *RAGS},
    "methods/rag/rankers.py": RAGS,
    "methods/rag/rerank.py": {"rerank"},
    "retrieval/scores.py": RAGS,
    "kernels/trace_attention/reference.py": {"adapter"},
    "delivery/adapter.py": {"adapter"},
    **{f"{name}.py": MEMORIES for name in (*MEMORY_FILES, *KERNEL_FILES)},
    **{f"{name}.py": {*CELLS} for name in SHARED_FILES},
    "suites/wording.yaml": {*CELLS},  # the words of a module
    **{f"{name}.py": set() for name in (*OTHER_FILES, *REPORT_FILES, "results/report/writing")},  # data sets follow their suite's modules
}
OWN = """
from hippo_core.methods.base import Method, Retrieved
from {helper} import LAST


class Mine(Method):
    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[-LAST:]))
"""
OWN_SUITE = """
from hippo_core.suites.episodic import EPISODIC
from dataclasses import replace
import mine.words

SUITE = replace(EPISODIC, name="mine")
"""


def ids(**more):
    """The id of each cell's last part, as a process has it that begins now."""
    fingerprints.forget()
    parameters.forget()
    ids_by_name = {}
    for name, (preset, overrides) in {**CELLS, **more}.items():
        experiment = experiment_of({"preset": preset})
        given = experiment.parameters(model="model", n=4, preset=preset, overrides=overrides)
        ids_by_name[name] = cells_of(experiment.plan(given))[-1].id
    return ids_by_name


def changed(before, **more):
    return {name for name, identity in ids(**more).items() if identity != before[name]}


def test_a_changed_module_changes_the_cells_that_run_it(lab_dir):
    changed, before = {}, ids()
    for file in FOLLOW:
        path = lab_dir / "hippo_core" / file
        path.write_text(path.read_text() + "\n# changed\n")
        after = ids()
        changed[file], before = {name for name in CELLS if after[name] != before[name]}, after
    assert changed == FOLLOW


def test_a_new_method_or_experiment_changes_no_cell(lab_dir):
    before = ids()
    for file in ("methods/newcomer.py", "methods/newcomer_in_parts/__init__.py", "protocols/newcomer/__init__.py"):
        (lab_dir / "hippo_core" / file).parent.mkdir(exist_ok=True)
        (lab_dir / "hippo_core" / file).write_text('"""New."""\n')
    assert changed(before) == set()


def test_a_report_follows_what_writes_it_and_nothing_else(lab_dir):
    def changes(file):
        fingerprints.forget()
        before, path = fingerprints.report_sources(), lab_dir / "hippo_core" / file
        path.write_text(path.read_text() + "\n")
        fingerprints.forget()
        return fingerprints.report_sources() != before

    engine = ("results/report/writing.py", "results/report/templates/style.css", "results/summaries.py", "protocols/base/reporting.py")
    pages = ("protocols/questions/report/tables.py", "protocols/questions/report/templates/before.html.j2")
    assert [file for file in (*engine, *pages) if not changes(file)] == []
    assert not changes("evaluation/run.py")


def test_a_new_version_of_a_kernel_may_be_chosen_when_it_runs(lab_dir):
    before = ids()
    (lab_dir / "hippo_core/kernels/kwta/quick.py").write_text('"""New."""\n')
    assert changed(before) == MEMORIES


def test_what_only_types_are_imported_from_does_not_count_and_what_a_function_imports_does(lab_dir):
    path = lab_dir / "hippo_core/methods/baselines.py"
    source = path.read_text()
    path.write_text(f"{source}\nif TYPE_CHECKING:\n    import hippo_core.training.lessons\n")
    before = ids()
    key = lab_dir / "hippo_core/training/lessons.py"
    key.write_text(f"{key.read_text()}\n# changed\n")
    assert changed(before) == set()
    path.write_text(f"{source}\ndef later():\n    if 1:\n        import hippo_core.training.lessons\n")
    before = ids()
    key.write_text(f"{key.read_text()}\n# changed again\n")
    assert changed(before) == {"window"}


@pytest.fixture
def mine(lab_dir, monkeypatch):
    """A lab with a package of the user's own in its root, which is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(lab_dir)])
    yield lab_dir
    for module in [name for name in sys.modules if name.split(".")[0] in ("mine", "apart")]:
        del sys.modules[module]


@pytest.mark.parametrize("form", ["a package", "a folder", "two modules"])
def test_a_users_own_module_and_what_it_imports_count(mine, form):
    folder = mine if form == "two modules" else mine / "mine"
    folder.mkdir(exist_ok=True)
    here, helper = ("mine", "apart") if form == "two modules" else ("mine.memory", "mine.apart")
    (folder / f"{here.split('.')[-1]}.py").write_text(OWN.format(helper=helper))
    (folder / "apart.py").write_text("LAST = 1\n")
    if form == "a package":
        (folder / "__init__.py").touch()
    (mine / "params/presets/mine.yaml").write_text(f"method: {here}:Mine\n")
    own = {"own": ("mine", [])}
    changes = ["apart.py", f"{here.split('.')[-1]}.py", *(["__init__.py"] if form == "a package" else [])]
    for name in changes:
        before = ids(**own)
        (folder / name).write_text((folder / name).read_text() + "\n# changed\n")
        assert changed(before, **own) == {"own"}, name


def test_a_users_own_suite_and_what_it_imports_count(mine):
    (mine / "mine").mkdir()
    (mine / "mine/suite.py").write_text(OWN_SUITE)
    (mine / "mine/words.py").touch()

    def chain():
        fingerprints.forget()
        parameters.forget()
        experiment = load_experiment("memory")
        given = experiment.parameters(model="model", n=4, suite="mine.suite:SUITE")
        return [cell.id for cell in cells_of(experiment.plan(given))]

    before = chain()
    assert chain() == before
    (mine / "mine/words.py").write_text("WORDS = ()\n")
    assert not set(before) & set(chain())  # the data set, what is taught of it, and the test
