"""The examples of docs/extend*.md as they stand: a memory, a suite with a score, a criterion, a grid, an experiment of one's own."""

import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from types import ModuleType

import nbformat
import pandas as pd
import pytest
import torch

from hippo_core.files import root
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.run import fingerprints
from hippo_core.methods.base import Observation, Query
from hippo_core.methods.presets import load_preset
from hippo_core.models import minilm
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import read_meta, read_metrics, read_rows, read_table, records_with
from hippo_core.store import TraceStore
from hippo_core.store.trace import Statement, Trace
from tests.lab.running import here

DOCS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((root() / "docs").glob("extend*.md")))
EXAMPLES = dict(re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", DOCS, re.DOTALL))
NOTEBOOKS = {  # the cells of each experiment's notebook behind its parameters cell
    "again": (
        'from hippo_core import lab\nfrom my_lab.again import ask_again\n\ncell = lab.begin("my_lab.again:AGAIN", globals())',
        "rows = ask_again(cell, cell.worlds())\nmetrics = lab.finish(cell, rows)",
    ),
    "zeroed": (
        'from hippo_core import lab\nfrom my_lab.zeroed import zeroed\n\ncell = lab.begin("my_lab.zeroed:ZEROED", globals())',
        "metrics = lab.finish(cell, zeroed(cell))",
    ),
    "phases": (
        'from hippo_core import lab\nfrom my_lab.phases import learn\n\ncell = lab.begin("my_lab.phases:PHASES", globals())',
        "metrics = lab.finish(cell, learn(cell))",
    ),
}


def ids():
    """The ids of a baseline's and a memory's cells in the smoke grid, by label."""
    fingerprints.forget()
    return {cell.label: cell.id for cell in expand("smoke", selection=Selection(only=("baselines/rag_bm25", "memory/hei_nw"))).cells}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A lab of its own, the examples in it; and the ids that cells of the smoke grid had before."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("hippo_core", "notebooks", "requirements.lock"):
        (folder / name).symlink_to(root() / name)
    for path in (root() / "params").rglob("*.yaml"):
        (folder / path.relative_to(root())).parent.mkdir(parents=True, exist_ok=True)
        (folder / path.relative_to(root())).symlink_to(path)
    (folder / "data").mkdir()
    for path in (root() / "data").iterdir():
        if path.name != "generated":
            (folder / "data" / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIPPO_ROOT", str(folder))
        before = ids()
        for name, text in EXAMPLES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for name, cells in NOTEBOOKS.items():
            write_notebook(folder / f"my_lab/{name}.ipynb", parameters_cell(name), cells)
        yield folder, before
    fingerprints.forget()


def test_the_composite_reads_the_stores_of_both_of_its_memories(lab):
    preset = load_preset("mine/both")
    assert [part.name for part in preset.parts.values()] == ["memory/hei_nw", "mine/links"]
    assert preset.method.columns["test"] == ("inner_questions", "links_walked")


def write_notebook(path, parameters, cells):
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    notebook.cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}), *map(nbformat.v4.new_code_cell, cells)]
    nbformat.write(notebook, path)


def parameters_cell(name):
    """The parameters of an experiment with their usual values."""
    usual = load_experiment(f"my_lab.{name}:{name.upper()}").parameters().model_dump()
    return "\n".join(f"{key} = {value!r}" for key, value in usual.items())


def test_each_example_is_short():
    assert set(EXAMPLES) >= {
        "my_lab/newest.py",
        "my_lab/sellers.py",
        "my_lab/links.py",
        "my_lab/palace.py",
        "my_lab/again.py",
        "my_lab/zeroed.py",
        "my_lab/phases.py",
        "params/criteria/mine.yaml",
        "params/grids/mine.yaml",
    }
    assert all(text.count("\n") <= 60 for text in EXAMPLES.values())


def test_the_grid_of_the_example_asks_in_ten_worlds(lab):
    cells = [cell for cell in expand("mine").cells if cell.experiment and "SELLERS" in cell.label]
    assert {cell.plan.config["items"] / cell.plan.config["suite"]["settings"]["n_items"] for cell in cells} == {10.0}
    assert "`.venv/bin/hippo run memory preset=mine/newest` first" in DOCS


def test_all_of_it_runs_through_a_grid_to_a_report_and_changes_no_other_cell(ran):
    folder, _ = ran
    rows = {path.parts[-5:-3]: pd.read_csv(path) for path in folder.glob("executed/mine/*/*/*/*/delayed-test-*/metrics.csv")}
    mine, other = rows["newest", "my_lab-sellers-SELLERS"], rows["newest_shuffled", "my_lab-sellers-SELLERS"]
    assert mine["recall_1"].mean() > 0.9 and (mine["score"] >= mine["em_norm"]).all()
    assert other["score"].mean() < mine["score"].mean()
    assert "again" in rows["rag_bm25", "episodic"]
    assert "newest_over_nothing" in {entry["id"] for entry in criteria(folder)}
    page = (folder / "reports/mine/index.md").read_text()
    assert "newest" in page


@pytest.fixture(scope="module")
def ran(lab):
    """The lab when its grid has run, and what that printed."""
    folder, before = lab
    assert ids() == before
    command = [sys.executable, "-m", "hippo_core", "grid", "mine"]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_a_parameter_of_an_experiment_is_an_axis_and_its_table_has_a_section_and_a_verdict(ran):
    folder, _ = ran
    rows = read_table(folder / "executed/mine", "my_lab.zeroed:ZEROED")
    assert sorted(set(rows["share"])) == [0, 0.05, 0.2] and rows["text"].nunique() == 12 and rows["layer"].nunique() > 1
    means = rows.groupby("share")["perplexity"].mean()
    assert means.nunique() == 3
    assert rows[rows["share"] == 0].groupby("text")["perplexity"].nunique().max() == 1  # no layer matters where nothing is zeroed
    [verdict] = [entry for entry in criteria(folder) if entry["id"] == "a_little_is_borne"]
    assert verdict["verdict"] != "not judged" and verdict["n"] == len(rows) / 3 and verdict["n_worlds"] == 12
    assert verdict["mean_a"] == pytest.approx(means[0.05]) and verdict["mean_b"] == pytest.approx(means[0])
    page = (folder / "reports/mine/index.md").read_text()
    assert f"Perplexity is {means[0]:.1f} with 0, {means[0.05]:.1f} with 0.05" in page and "Zeroed cache" in page


def test_phases_share_the_first_and_go_on_after_a_kill_between_them(ran, tmp_path):
    folder, _ = ran
    run = folder / "executed/mine"
    first, second = (records_with(run, experiment="my_lab.phases:PHASES", step=step) for step in ("first", "second"))
    assert len(first) == 1 and len(second) == 2
    assert {read_meta(record)["needs"]["before"] for record in second} == {first[0].name}
    rows = read_table(run, "my_lab.phases:PHASES", "second").groupby(["then", "pair"])["accuracy"].mean()
    assert rows["multiply", "multiply > multiply"] > 0.9 > rows["multiply", "multiply > add"]
    assert "phases, second" in (folder / "reports/mine/index.md").read_text()
    aside = [record.rename(tmp_path / record.name) for record in second]  # as if killed before their seals
    assert "2 to run" in here(folder, "grid-plan", "mine").stdout
    for record, kept in zip(second, aside, strict=True):
        kept.rename(record)
    assert " 0 to run" in here(folder, "grid-plan", "mine").stdout


def test_a_memory_s_own_numbers_reach_its_rows_its_metrics_and_the_report(ran):
    folder, _ = ran
    [teach] = [record for record in records_with(folder / "executed/mine", step="teach") if "/links/" in record.as_posix()]
    taught = pd.read_csv(teach / "teach.csv")
    assert taught["edges"].notna().all() and read_metrics(teach)["own"]["edges"] == pytest.approx(taught["edges"].mean())
    rows = read_rows(folder / "executed/mine").query("preset == 'mine/links'")
    assert rows["walked"].notna().all()
    page = (folder / "reports/mine/index.md").read_text()
    assert "| links | teach |" in page and "| edges |" in page and "| walked |" in page


def test_a_memory_is_told_facts_one_by_one_and_asked_in_between(lab, tmp_path):
    preset = load_preset("mine/links")
    memory = preset.method(load(load_spec("hippo-tiny"), threads=1), preset.settings)
    texts = ("Ada met Ben.", "Ben lives in Rome.", "Otto is far away.")
    rankings, edges = [], []
    with TraceStore.create(tmp_path, "talk", memory.identity()) as store:
        for time, text in enumerate(texts):
            edges.append(memory.write(Observation(Statement(f"f{time}", "w", text, time)), store).columns["edges"])
            retrieved = memory.open(store.traces("w"))(Query("Where does Ada go?", ("f0", "f1", "f2")))
            rankings.append([trace.source for trace in retrieved.ranking])
    assert rankings == [["f0"], ["f0", "f1"], ["f0", "f1"]] and edges == [0, 1, 0]


@pytest.fixture(params=["stand-in", "package"])
def palace(request, lab, tmp_path, monkeypatch):
    """The memory of the published package, over that package or, where it is not installed, over a stand-in with the same calls; words in
    the place of the encoder, a home and a folder for temporary files of its own."""
    if request.param == "package":
        pytest.importorskip("mempalace", reason="mempalace is not installed (docs/extend-package.md says how)")
    else:
        for name, module in stand_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(minilm, "encode", bags)
    monkeypatch.setattr(minilm, "pieces", lambda text: len(text.split()))
    sys.modules.pop("my_lab.palace", None)
    preset = load_preset("mine/palace", {"k": 1})
    yield preset.method(None, preset.settings)
    sys.modules.pop("my_lab.palace", None)


def stand_in():
    """Modules like those of mempalace that the example calls: a palace is what was put under its path, searched by shared words."""
    modules = {name: ModuleType(name) for name in ("mempalace", "mempalace.backends", "mempalace.backends._magic")}
    embedding, palace, searcher = (ModuleType(f"mempalace.{name}") for name in ("embedding", "palace", "searcher"))
    kept = {}

    class Drawers:
        def __init__(self, path, backend):
            self.path = path

        def upsert(self, documents, ids, metadatas):
            os.makedirs(self.path, exist_ok=True)
            kept.setdefault(self.path, {}).update(zip(ids, documents, strict=True))

    class Backend:
        close_palace = staticmethod(kept.pop)

    def search_memories(query, path, n_results):
        cue, [stored] = bags([query])[0], [kept[path]]
        best = sorted(stored, key=lambda key: -(bags([stored[key]])[0] @ cue).item())
        return {"results": [{"drawer_id": key} for key in best[:n_results]]}

    palace.get_collection, palace.get_backend, searcher.search_memories = Drawers, lambda name: Backend, search_memories
    modules["mempalace.backends._magic"].close_retained = lambda: None
    modules["mempalace"].embedding, modules["mempalace"].palace, modules["mempalace"].searcher = embedding, palace, searcher
    return modules


def bags(texts):
    """A vector a text [N, D]: which words it has."""
    vectors = torch.full((len(texts), 64), 1e-3)
    for row, text in enumerate(texts):
        for word in text.lower().strip(".?").split():
            vectors[row, zlib.crc32(word.encode()) % 64] = 1
    return torch.nn.functional.normalize(vectors, dim=-1)


def test_a_package_keeps_worlds_apart_and_ranks_what_is_taught_alone(palace):
    memory = palace.open([Trace("a", "f0", "Ada met Ben in Rome.", time=0), Trace("a", "f1", "Otto is far away.", time=1)])
    two = palace.open([Trace("b", "f0", "Kim sold a boat.", time=0), Trace("b", "f1", "Where did Ada lose it?", time=1)])
    ask = Query("Where did Ada meet Ben?", ("f0", "f1"))
    assert ranked(memory, ask) == ranked(memory, ask) == ["Ada met Ben in Rome.", "Otto is far away."]
    assert ranked(two, ask) == ["Where did Ada lose it?", "Kim sold a boat."]
    assert ranked(memory, Query("Who is far away?", ask.taught)) == ["Otto is far away.", "Ada met Ben in Rome."]
    assert ranked(memory, Query(ask.text, ("f1",))) == ["Otto is far away."]
    assert ranked(memory, Query(ask.text, ())) == ranked(palace.open([]), ask) == []
    assert [trace.source for trace in memory(ask).shown] == ["f0"] and memory(ask).computed_tokens == 5


def ranked(retrieve, query):
    return [trace.text for trace in retrieve(query).ranking]


def test_a_package_leaves_nothing_behind(palace, tmp_path):
    retrieve = palace.open([Trace("a", "f0", "Ada met Ben."), Trace("a", "f1", "Otto is far.")])
    retrieve(Query("Who met Ben?", ("f0", "f1")))
    retrieve(Query("Who met Ben?", ("f0",)))
    [folder] = (tmp_path / "temporary").iterdir()
    assert len([path for path in folder.iterdir() if path.name.isdigit()]) == 2
    del retrieve
    gc.collect()
    assert os.environ["HOME"] == str(tmp_path) and {path.name for path in tmp_path.iterdir()} == {"temporary"}
    assert not list((tmp_path / "temporary").iterdir())


def criteria(folder):
    return json.loads((folder / "reports/mine/criteria.json").read_text())["criteria"]
