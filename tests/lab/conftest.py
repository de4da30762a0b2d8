"""A small lab in a temporary folder: the real library, suites and settings, quick notebooks, a grid of a few cells."""

import compileall
import fcntl
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from hippo_core.lab.run import fingerprints
from hippo_core.protocols.base.qa import parameters
from tests.lab.running import lab

REPOSITORY = Path(__file__).resolve().parents[2]
# What these labs' warm kernels are forked with: their notebooks need no more, and torch and the like take five seconds a grid. The fork
# server as it is stands in tests/lab/warm, in tests/test_extend.py and in the long fault loops.
IMPORTS = (
    *("pandas", "pyarrow.pandas_compat", "scrapbook", "IPython.core.interactiveshell", "ipykernel.kernelapp", "ipykernel.ipkernel"),
    *("hippo_core.lab.run.notebook", "hippo_core.suites.datasets.build", "hippo_core.suites.lexicon", "hippo_core.results.records"),
    *("hippo_core.protocols.questions.protocol", "hippo_core.methods.presets"),
)
ALL_FAULTS = os.environ.get("FAULT_ROUNDS", "1") != "1"

BASELINE = '''
from hippo_core import lab

cell = lab.begin("answer", globals())
worlds = cell.worlds()
''', '''
import pandas as pd
from hippo_core.evaluation.table import ITEMS
from hippo_core.results.scores import RANKING_COLUMNS
from hippo_core.results.scores import score_item

items = [(world, item) for world in worlds for item in world.items]
says = [item.answers[0] if place % 2 else "nobody" for place, (_, item) in enumerate(items)]
told = {"stage": "test", "prompt_tokens": 7, "generated_tokens": 2, "computed_tokens": 9, "kv_mb": 0.1, "latency_ms": 1.5}
told |= {"retrieval_ms": float("nan")} | dict.fromkeys(RANKING_COLUMNS, float("nan"))
rows = pd.DataFrame([
    {"idx": place, "item_id": item.id, "world": item.world, "kind": item.kind, "rung": item.rung, "hops": item.hops,
     "distance": item.distance, "slices": ";".join(item.slices),
     "question": item.question, "answer": " | ".join(item.answers), "pred": said, **score_item(cell.suite, world, item, said), **told}
    for place, ((world, item), said) in enumerate(zip(items, says))
]).assign(forced=lambda rows: rows["pred"], score_forced=lambda rows: rows["score"]).reindex(columns=ITEMS.columns)
metrics = lab.finish(cell, rows)
'''  # fmt: skip
MEMORY = '''
from hippo_core import lab

cell = lab.begin("memory", globals())
worlds, session = cell.worlds(), cell.parameters.session(cell.resolved.preset.method)
''', '''
import sqlite3
from contextlib import closing

path = cell.store / "hei_nw" / session / "traces.sqlite" if step != "test" else cell.stores[""]
kept = {fact.id: 0 for world in worlds for fact in world.facts}
if step == "replay":
    with closing(sqlite3.connect(cell.stores[""])) as store:
        kept = {fact: uses + 1 for fact, uses in store.execute("SELECT * FROM traces")}
if step != "test":
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("CREATE TABLE traces (fact TEXT PRIMARY KEY, uses INTEGER)")
        store.executemany("INSERT INTO traces VALUES (?, ?)", kept.items())
''', '''
import pandas as pd
from hippo_core.protocols.questions.table import REPLAY, TEACH, TEST
from hippo_core.results.scores import RANKING_COLUMNS
from hippo_core.results.scores import score_item

with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
    uses = dict(store.execute("SELECT * FROM traces"))
if step == "teach":
    told = {"S": 0.5, "action": "insert", "ms": 0.1}
    rows = pd.DataFrame([{"fact_id": one.id, "asked": float(one.asked), **told} for world in worlds for one in world.facts])
elif step == "replay":
    told = {"cycle": 1, "recalled": 1.0, "salience_before": 0.0, "salience_after": 1.0, "ms": 0.1}
    rows = pd.DataFrame({"trace_id": range(len(uses))}).assign(**told)
else:
    told = {"stage": "test", "prompt_tokens": 7, "generated_tokens": 2, "computed_tokens": 9, "kv_mb": 0.1, "latency_ms": 1.5}
    told |= {"requests": 1, "candidates": 3, "k_used": 1, "trace_tokens": 5, "replay_contribution": 0.0}
    told |= {f"{name}_ms": 0.1 for name in ("retrieval", "recall", "completion", "encode")}
    rows = pd.DataFrame([
        {"idx": place, "item_id": item.id, "world": item.world, "kind": item.kind, "rung": item.rung, "hops": item.hops,
     "distance": item.distance, "slices": ";".join(item.slices),
         "question": item.question, "answer": " | ".join(item.answers), "pred": item.answers[0],
         **score_item(cell.suite, world, item, item.answers[0]), **told,
         "store_size": float(len(uses)), "replayed": float(max(uses.values())),
         **{name: float(set(item.gold_facts) <= set(uses)) for name in RANKING_COLUMNS}}
        for place, (world, item) in enumerate((world, item) for world in worlds for item in world.items)
    ])
if step == "test":
    rows = rows.assign(forced=rows["pred"], score_forced=rows["score"])
rows = rows.reindex(columns={"teach": TEACH, "replay": REPLAY, "test": TEST}[step].columns)
metrics = lab.finish(cell, rows)
print(lab.sentence(cell, metrics))
'''  # fmt: skip
DATASETS = (
    """
from hippo_core.protocols.base.assignments import assignments
from hippo_core.suites.datasets.build import write_dataset

print(write_dataset(suites[0], profile, n, seed, context_limit, assignments(overrides)).name)
""",
)
DATASETS_PARAMETERS = 'run_id = ""\nsuites = ["episodic"]\nprofile = "default"\nn = 50\nseed = 1337\ncontext_limit = 512\noverrides = []'
REPORT = (
    """
from hippo_core.files import root, write_json
from hippo_core.results.records import read_rows, run_folder

rows = read_rows(run_folder(run_id))
write_json(root() / "reports" / run_id / "criteria.json", {"criteria": [{"about": "instrument", "verdict": "met"}]})
""",
)
GRID = """
title: a few cells
blocks:
  - suites: [episodic, episodic_cross]
    presets: [baselines/span_short, baselines/rag_bm25]
    models: [model]
    sizes: [4]
"""


SLEEP = """
title: a memory, its control and an ablation of its teaching
blocks:
  - suites: [episodic]
    presets: [baselines/rag_bm25, memory/hei_nw, controls/shuffled_store]
    regimes: [immediate, delayed, after_sleep]
    models: [model]
    sizes: [4]
  - suites: [episodic]
    presets: [ablations/no_sparsity]
    overrides: [[], [k=3]]
    models: [model]
    sizes: [4]
"""


def write_notebook(path: Path, parameters_source: str, sources: tuple[str, ...]) -> None:
    """A notebook of these code cells, the first of them its parameters cell."""
    cells = [
        {"cell_type": "code", "id": f"c{number}", "execution_count": None, "outputs": [], "source": source.strip(),
         "metadata": {"tags": ["parameters"]} if number == 0 else {}}
        for number, source in enumerate((parameters_source, *sources))
    ]  # fmt: skip
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def parameters_of(notebook: str) -> str:
    """The parameters cell of the real notebook."""
    cells = json.loads((REPOSITORY / f"notebooks/{notebook}.ipynb").read_text())["cells"]
    return next("".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", []))


def make_lab(lab_dir: Path, source: Path = REPOSITORY) -> Path:
    """Fill a folder with what a lab needs; library and settings are those of `source`."""
    lab_dir.mkdir(parents=True, exist_ok=True)
    (lab_dir / "requirements.lock").symlink_to(REPOSITORY / "requirements.lock")
    compiled(source / "hippo_core")
    shutil.copytree(source / "hippo_core", lab_dir / "hippo_core")
    if source == REPOSITORY and not ALL_FAULTS:
        import_less(lab_dir / "hippo_core/lab/warm/server.py")
    shutil.copytree(source / "params", lab_dir / "params")
    (lab_dir / "data").mkdir()
    for folder in ("paired", "reworded"):
        (lab_dir / "data" / folder).symlink_to(REPOSITORY / "data" / folder)
    (lab_dir / "params/grids/tiny.yaml").write_text(GRID)
    (lab_dir / "params/grids/quick.yaml").write_text(GRID.replace(", episodic_cross", ""))
    (lab_dir / "params/grids/sleep.yaml").write_text(SLEEP)
    (lab_dir / "model").mkdir()
    (lab_dir / "model/config.json").write_text('{"max_position_embeddings": 512}')
    (lab_dir / "model/model.safetensors").write_bytes(b"weights")
    (lab_dir / "notebooks").mkdir()
    write_notebook(lab_dir / "notebooks/02_baseline.ipynb", parameters_of("02_baseline"), BASELINE)
    write_notebook(lab_dir / "notebooks/03_memory.ipynb", parameters_of("03_memory"), MEMORY)
    for name in ("04_consolidation", "06_cache_robustness", "07_conversation", "08_forgetting", "09_paired_evaluation"):
        write_notebook(lab_dir / f"notebooks/{name}.ipynb", parameters_of(name), "raise NotImplementedError")
    write_notebook(lab_dir / "notebooks/01_build_datasets.ipynb", DATASETS_PARAMETERS, DATASETS)
    write_notebook(lab_dir / "notebooks/05_report.ipynb", 'run_id = "smoke"', REPORT)
    return lab_dir


@cache
def compiled(package: Path) -> None:
    """Compile a package once, so that the labs that copy it need not; a module that is changed there is compiled again."""
    compileall.compile_dir(package, quiet=2)


def import_less(server: Path) -> None:
    """Give a lab's fork server fewer modules to import, with the time stamp that it had."""
    stamp = server.stat()
    text, count = re.subn(r"^MODULES = \(.*?^\)$", f"MODULES = {IMPORTS!r}", server.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert count == 1
    server.write_text(text)
    os.utime(server, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A lab whose quick grid has run undisturbed, and what that printed; one for all processes of the tests, not to be altered."""
    base = tmp_path_factory.getbasetemp()
    if session := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        base = base.parent / f"finished-{session}"
    base.mkdir(exist_ok=True)
    kept = base / "finished.json"
    with (base / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            ran = lab(make_lab(base / "finished"), "grid", "quick")
            kept.write_text(json.dumps([ran.args, ran.returncode, ran.stdout, ran.stderr]))
    return base / "finished", subprocess.CompletedProcess(*json.loads(kept.read_text()))


@pytest.fixture
def lab_dir(tmp_path, monkeypatch):
    """A fresh small lab that this process works in."""
    monkeypatch.setenv("HIPPO_ROOT", str(make_lab(tmp_path / "lab")))
    fingerprints.forget()
    parameters.forget()
    yield tmp_path / "lab"
    fingerprints.forget()
    parameters.forget()
