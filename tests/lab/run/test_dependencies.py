"""Cells of a memory: which share a taught store, what is run before what, and that a store is a part of a record."""

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from hippo_core.errors import LabError
from hippo_core.files import write_text
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.lab.grid.grid_status import status_of
from hippo_core.lab.run import fingerprints, notebook_files
from hippo_core.lab.run.cells import Cell, Requirements, cells_of, command, materials
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.models import checksums
from hippo_core.protocols.base.qa import parameters as parameters_module
from hippo_core.protocols.questions.parameters import MemoryParameters
from hippo_core.protocols.questions.protocol import MEMORY
from hippo_core.results import records
from tests.lab.conftest import make_lab
from tests.lab.running import here, lab

MEMORIES = ("memory/hei_nw", "memory/sgc_rss", "memory/smpd")
SHARING = ["controls/empty_store", "controls/shuffled_store", "controls/oracle_store", "controls/random_traces"]
SHARING += ["ablations/predictive", "ablations/hopfield", "ablations/no_replay", "memory/hei_nw_text"]
TAUGHT_APART = ["memory/hei_nw_gated", "ablations/no_sparsity", "ablations/no_writes", "ablations/traces_off"]
TAUGHT_APART += ["ablations/gate_random", "ablations/gate_unflagged", "controls/altered_store"]
ALTERED = ("controls/altered_sgc_rss", "controls/altered_smpd")


def checked(**changes) -> MemoryParameters:
    return MEMORY.check({"model": "model", "n": 4, **changes}, "test")


def chain(**changes) -> tuple[Cell, ...]:
    return cells_of(MEMORY.plan(checked(**changes)))


def steps(cells) -> list[str]:
    return [str(cell.parameters.get("step", "data")) for cell in cells]


def of_step(grid, step) -> list[Cell]:
    return [cell for cell in grid.cells if cell.experiment == "memory" and cell.parameters["step"] == step]


def test_every_preset_of_a_memory_is_in_one_of_the_lists():
    combined = {"memory/all", "controls/altered_all", *(f"ablations/all_{traces}" for traces in ("off", "episodic", "semantic", "spatial"))}
    assert {*SHARING, *TAUGHT_APART, *MEMORIES, *ALTERED, *combined} == {name for name in preset_names() if load_preset(name).taught}


def test_an_altered_composite_is_taught_as_each_altered_memory_is_alone(lab_dir):
    taught = {cell.id for cell in chain(preset="controls/altered_all", suite="mixed") if cell.parameters.get("step") == "teach"}
    alone = {chain(preset=name, suite="mixed")[1].id for name in ("controls/altered_store", *ALTERED)}
    assert taught == alone and taught.isdisjoint(chain(preset=name, suite="mixed")[1].id for name in MEMORIES)


@pytest.mark.parametrize("preset", SHARING)
def test_controls_and_ablations_of_recall_share_the_taught_store(lab_dir, preset):
    _, teach, test = chain(preset=preset, overrides=["k=3", "delivery=text"])
    assert teach.id == chain()[1].id
    assert teach.parameters["preset"] == "memory/hei_nw" and teach.parameters["overrides"] == []
    assert test.id != chain()[2].id


@pytest.mark.parametrize("preset", TAUGHT_APART)
def test_what_is_told_otherwise_is_taught_apart(lab_dir, preset):
    teach = chain(preset=preset)[1]
    assert teach.id != chain()[1].id
    assert teach.parameters["preset"] == "memory/hei_nw" and teach.parameters["overrides"]
    alone = cells_of(MEMORY.plan(MemoryParameters.model_validate(teach.parameters)))  # its own parameters name it again
    assert alone[-1].id == teach.id


def test_an_override_and_the_preset_that_says_it_are_one_taught_store(lab_dir):
    _, teach, _ = chain(preset="memory/hei_nw_gated")
    assert teach.id == chain(overrides=["episodic.use_gate=true", "episodic.store.budget=0.5"])[1].id


CHANGES = [{"n": 5}, {"seed": 1}, {"split": "val"}, {"overrides": ["n_facts=40"]}, {"overrides": ["traces=off"]}]


@pytest.mark.parametrize("change", [*CHANGES, {"overrides": ["episodic.store.kv=disk"]}])
def test_a_taught_store_follows_what_is_told(lab_dir, change):
    assert chain(**change)[1].id != chain()[1].id


def test_a_replay_follows_the_settings_of_replay_and_recall(lab_dir):
    def replayed(*overrides: str) -> tuple[str, str]:
        _, teach, replay = chain(step="replay", overrides=list(overrides))
        return teach.id, replay.id

    usual = replayed()
    for override in ("replay.rate=0.5", "replay.cycles=3", "episodic.use_completion=predictive", "episodic.recall.candidates=5"):
        assert replayed(override)[0] == usual[0] and replayed(override)[1] != usual[1], override
    for override in ("control=empty", "k=5", "delivery=text"):
        assert replayed(override) == usual, override


@pytest.mark.parametrize(
    ("step", "regime", "due"),
    [
        ("teach", "immediate", ["data", "teach"]),
        ("replay", "delayed", ["data", "teach", "replay"]),
        ("test", "delayed", ["data", "teach", "test"]),
        ("test", "after_sleep", ["data", "teach", "replay", "test"]),
    ],
)
def test_a_cell_stands_behind_all_that_it_needs(lab_dir, step, regime, due):
    cells = chain(step=step, regime=regime)
    assert steps(cells) == due
    seen: set[str] = set()
    for cell in cells:
        assert cell.needed <= seen
        seen.add(cell.id)


def test_ids_follow_the_weights_of_the_memory_and_a_baselines_do_not(lab_dir):
    folder = lab_dir / "data/weights/model"
    before, own = chain()[2].id, checksums.weights("model")
    folder.mkdir(parents=True)
    (folder / "adapter.safetensors").write_bytes(b"trained")
    (lab_dir / "model/key.safetensors").write_bytes(b"trained")
    fingerprints.forget()
    assert chain()[2].id != before
    assert checksums.weights("model") == own


def test_a_grid_adds_what_memories_need_once_and_baselines_do_not_sleep(lab_dir):
    grid = expand("sleep")
    assert {step: len(of_step(grid, step)) for step in ("teach", "replay", "test")} == {"teach": 2, "replay": 1, "test": 2 * 2 + 2}
    assert [cell.parameters["regime"] for cell in grid.cells if cell.phase == "02_baseline"] == ["delayed"]
    assert not [cell for cell in of_step(grid, "test") if cell.parameters["regime"] == "immediate"]  # the same prompts as delayed
    assert {cell.id for cell in of_step(grid, "teach")} == {need for cell in of_step(grid, "replay") for need in cell.needed} | {
        of_step(grid, "teach")[1].id
    }
    assert materials(grid.cells) == Requirements(("model",), ())


def test_the_full_grid_runs_all_memories_and_all_of_them_together_from_the_same_stores(lab_dir):
    grid = expand("full", selection=Selection(models=("model",)))
    tests, teaches = of_step(grid, "test"), of_step(grid, "teach")
    counts = Counter(cell.parameters["preset"] for cell in teaches)
    assert counts == {"memory/hei_nw": 19 * 9, "memory/sgc_rss": 20 * 9, "memory/smpd": 20 * 9}  # 18 profiles, gates, routes on 5 x 5 grids
    asleep = [cell for cell in tests if cell.parameters["regime"] == "after_sleep"]
    assert len(asleep) == 2 * (4 + 1 + 1) * 9  # after one cycle and after three
    assert len(tests) - len(asleep) == 18 * 9 + 4 * 9 + len(teaches) + 9  # all together, whose traces mixed worlds need, a gate of a map
    assert {need for cell in tests for need in cell.needed} >= {cell.id for cell in teaches}


def test_a_store_is_not_left_to_be_taught_where_nothing_waits_for_it(lab_dir):
    data, teach, test = chain()
    for cell in (data, test):
        write_text(cell.record / "metrics.csv", "")
        records.seal(cell.record)
    assert status_of([data, teach, test]).waiting == ()
    shutil.rmtree(test.record)
    assert status_of([data, teach, test]).waiting == (teach, test)
    shutil.rmtree(data.record)
    assert status_of([data, teach, test]).waiting == (data, teach, test)


def test_a_test_without_its_store_says_what_to_run(lab_dir):
    cells = chain(run_id="single", regime="after_sleep")
    assert command(cells[1]) == ".venv/bin/hippo run memory suite=episodic preset=memory/hei_nw model=model n=4 seed=1337 step=teach"
    assert command(cells[-1]).endswith("model=model n=4 seed=1337 step=test regime=after_sleep")
    assert [cell.sources.get("store") for cell in cells] == [None, None, cells[1].record, cells[2].record]
    path = notebook_files.notebook_path("03_memory")
    space = {**notebook_files.defaults(path), "model": "model", "n": 4, "regime": "after_sleep", "record_dir": "filled/by/a/runner"}
    with pytest.raises(
        LabError, match=r"needs the record of 'episodic memory/hei_nw replay 4_1337 model', .* run it first: .venv/bin/hippo run"
    ):
        exec(notebook_files.code(path)[0], space)
    assert not (lab_dir / "executed").exists()


@pytest.fixture(scope="module")
def slept(tmp_path_factory):
    """A lab whose grid of memories has run, in warm kernels and with its records copied to a folder; and what that printed."""
    lab_dir = make_lab(tmp_path_factory.mktemp("slept") / "lab")
    archive = lab_dir.parent / "archive"
    return lab_dir, archive, lab(lab_dir, "grid", "sleep", "--records", str(archive))


def prepared(run):
    return [record for step in ("teach", "replay") for record in records.records_with(run, step=step)]


def store_of(record):
    return record / "store/hei_nw" / f"hei_{record.parents[4].name}" / "traces.sqlite"


def test_memories_run_as_cells_in_order_and_stores_are_sealed(slept):
    lab_dir, _, ran = slept
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "12 done, 0 skipped, 0 failed" in ran.stdout  # a data set, 2 taught, 1 replayed, 6 tests, a rag, the report
    taught = [record for record in prepared(lab_dir / "executed/sleep") if "teach" in record.name]
    assert len(taught) == 2
    for record in taught:
        assert "store/hei_nw/hei_sleep/traces.sqlite" in json.loads((record / "DONE").read_text())["sha256"]
    assert records.verify(lab_dir / "executed/sleep") == (12, [])


def test_a_test_after_sleep_reads_the_replayed_store_and_others_the_taught_one(slept):
    lab_dir, _, _ = slept
    rows = records.read_rows(lab_dir / "executed/sleep").query("preset == 'memory/hei_nw'")
    assert dict(rows.groupby("regime")["replayed"].max()) == {"after_sleep": 1, "delayed": 0}


def test_metrics_of_teaching_and_replay_are_telemetry_and_of_a_test_both(slept):
    lab_dir, _, _ = slept
    for record in prepared(lab_dir / "executed/sleep"):
        metrics = records.read_metrics(record)
        assert "metrics" not in metrics
        assert (metrics["gates"]["hei_nw"]["attempts"] if "teach" in record.name else metrics["telemetry"]["items"]) > 0
        assert records.read_meta(record)["step"] in record.name
        assert len(records.read_meta(record)["needs"]) == 1
    [record] = (lab_dir / "executed/sleep/memory/hei_nw/episodic/4_1337").glob("delayed-test-*")
    metrics = records.read_metrics(record)
    assert metrics["metrics"]["episodic"]["em"] == 1 and metrics["telemetry"]["requests"] == 4


@pytest.mark.long
def test_another_machine_goes_on_with_the_stores_of_the_archive(slept, tmp_path):
    """It has the archive's stores and lost one test, which reads a store that was taught elsewhere."""
    lab_dir, archive, _ = slept
    other = make_lab(tmp_path / "lab")
    lost = next((archive / "sleep/controls/shuffled_store/episodic/4_1337").glob("after_sleep-test-*"))
    mine = tmp_path / "archive"
    shutil.copytree(archive, mine)
    shutil.rmtree(mine / lost.relative_to(archive))
    ran = lab(other, "grid", "sleep", "--records", str(mine), "--kernel", "cold")
    assert "2 done, 10 skipped, 0 failed" in ran.stdout, ran.stdout + ran.stderr
    assert records.diff(lab_dir / "executed/sleep/controls", other / "executed/sleep/controls")[1] == []


def test_a_changed_store_is_a_damaged_record_and_another_session_is_no_difference(slept, tmp_path):
    lab_dir, _, _ = slept
    record = next(record for record in prepared(lab_dir / "executed/sleep") if "teach" in record.name)
    copy = tmp_path / "executed/again" / record.relative_to(lab_dir / "executed/sleep")
    shutil.copytree(record, copy)
    store_of(copy).parent.parent.mkdir(exist_ok=True)
    (copy / "store/hei_nw/hei_sleep").rename(copy / "store/hei_nw/hei_again")
    records.seal(copy)
    assert records.diff(record, copy) == (1, [])
    with closing(sqlite3.connect(store_of(copy))) as store, store:
        store.execute("UPDATE traces SET uses = 7 WHERE rowid = 1")
    assert not records.is_complete(copy)
    [difference] = records.diff(record, copy)[1]
    assert ": table traces.row " in difference


@pytest.mark.long
def test_one_cell_runs_alone_with_what_it_needs(slept):
    lab_dir, _, _ = slept
    words = ("run", "memory", "suite=episodic", "preset=controls/empty_store", "model=model", "n=4", "regime=after_sleep")
    first = lab(lab_dir, *words)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "[4/4]" in first.stdout and "questions right, after_sleep" in first.stdout
    other = lab(lab_dir, *words[:3], *words[4:6], "step=test")
    assert "[1/1]" in other.stdout, other.stdout + other.stderr  # the store is there
    teach = here(lab_dir, *words[:2], *words[4:6], "step=teach")
    assert "finished already: executed/single/memory/hei_nw" in teach.stdout


@pytest.mark.parametrize("encoder", ["own", "minilm"])
def test_a_grid_that_names_an_encoder_has_the_same_cells_on_every_machine(lab_dir, monkeypatch, encoder):
    """Whatever `encoder: auto` stands for there, which the cells of a grid that names none follow."""

    def ids(usual, **values):
        monkeypatch.setenv("HIPPO_ENCODER", usual)
        given = {"model": "model", "n": 4, "preset": "memory/hei_nw", "suite": "episodic", **values}
        parameters_module.forget()
        return [cell.id for parameters in MEMORY.variants(MEMORY, given, "here") for cell in cells_of(MEMORY.plan(parameters))]

    assert ids("own", encoder=encoder) == ids("minilm", encoder=encoder)
    assert ids("own")[1:] != ids("minilm")[1:]
