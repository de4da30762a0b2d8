"""The memory's notebook hands the right worlds to the right part: its code cells run here, on the few questions of a dry run."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.files import root, sha256
from hippo_core.lab.run import fingerprints, notebook_files
from hippo_core.protocols.base.qa import parameters
from hippo_core.store import TraceStore
from hippo_core.suites.datasets.build import write_dataset

GATED = {"step": "teach", "preset": "memory/hei_nw_gated"}
ITEMS = parameters.DRY_ITEMS
REPOSITORY = Path(__file__).resolve().parents[2]
BOTH = "method: hippo_core.methods.composite:Composite\nparts: {whole: memory/hei_nw, half: memory/hei_nw_gated}\n"


@pytest.fixture
def lab_root(tmp_path, monkeypatch):
    """A root of its own for what the notebook writes, with the repository's code, weights and parameters linked into it."""
    for name in ("hippo_core", "params", "notebooks", "requirements.lock", "data/weights"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(root() / name)
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    fingerprints.forget()
    yield tmp_path
    fingerprints.forget()
    parameters.forget()


def run_cells(**values):
    """What the notebook's cells, but for the figure, leave behind."""
    path = notebook_files.notebook_path("03_memory")
    space = {**notebook_files.defaults(path), "dry_run": True, **values}
    for source in notebook_files.code(path)[:-1]:
        exec(source, space)
    return space


def id_of(space):
    """The id of a cell, which its record is called by."""
    return space["cell"].record.name


def taught():
    """What it leaves when a gate teaches: the rows, and the calibration that its store keeps."""
    space = run_cells(**GATED)
    with TraceStore.open(space["cell"].store, space["session"], read_only=True) as store:
        return space["rows"], store.meta["calibration"]


def swap(split, seed):
    """Put the worlds of another seed in the place of a split's worlds on the disk."""
    mine, other = (write_dataset("episodic", n=ITEMS, seed=seed) for seed in (1337, seed))
    shutil.rmtree(mine / split)
    shutil.copytree(other / split, mine / split)
    names = json.loads((mine / "checksums.json").read_text())
    (mine / "checksums.json").write_text(json.dumps({name: sha256(mine / name) for name in names}))


def test_a_gate_is_calibrated_on_validation_worlds_and_judges_test_worlds(lab_root):
    rows, calibration = taught()
    assert calibration["samples"] == len(rows) == 32
    swap("test", seed=7)
    others, same = taught()
    assert same == calibration
    assert others["S"].tolist() != rows["S"].tolist()
    swap("val", seed=7)
    again, other = taught()
    assert other["tau"] != calibration["tau"] and other["mean"] != calibration["mean"]
    assert again["surprise"].tolist() == others["surprise"].tolist()


def test_a_store_of_ones_own_is_kept_asked_and_replayed(lab_root):
    mine = {"store_dir": "stores", "session_id": "s1"}
    usual = run_cells(step="teach")
    kept = run_cells(step="teach", persist=True, **mine)
    file = lab_root / "stores/hei_nw/s1/traces.sqlite"
    assert id_of(kept) != id_of(usual) and file.is_file()
    meta = json.loads(file.with_name("store_meta.json").read_text())
    assert (meta["traces"], meta["source"], meta["replay_samples"]) == (len(kept["rows"]), "teach", 0)
    asked = run_cells(**mine)
    assert list(asked["cell"].sources) == ["data"] and asked["rows"]["store_written"].all()
    assert asked["rows"]["pred"].equals(run_cells(store_dir="stores/hei_nw", session_id="s1")["rows"]["pred"])
    with TraceStore.open(lab_root / "stores", "s1") as store:
        store.delete([trace.id for trace in store.traces()])
    emptied = run_cells(**mine)
    assert id_of(emptied) != id_of(asked) and not emptied["rows"]["store_written"].any()
    with pytest.raises(LabError, match=r"there is a store at .*stores/hei_nw/s1"):
        run_cells(step="teach", persist=True, **mine)


def test_a_composite_is_asked_with_what_its_parts_were_taught(lab_root):
    (lab_root / "params").unlink()
    shutil.copytree(root().parent / "params" if False else REPOSITORY / "params", lab_root / "params")
    (lab_root / "params/presets/memory/both.yaml").write_text(BOTH)
    taught = {name: run_cells(step="teach", preset=f"memory/{name}") for name in ("hei_nw", "hei_nw_gated")}
    asked = run_cells(preset="memory/both")
    assert asked["cell"].sources["store:whole"] == taught["hei_nw"]["cell"].record
    assert asked["cell"].sources["store:half"] == taught["hei_nw_gated"]["cell"].record
    assert (asked["rows"]["store_size"] == 32 + 16).all()
    assert len(list(lab_root.glob("executed/scratch/*/*/*/*/*-teach-*"))) == 2


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"persist": True, "store_dir": "stores"}, "a test writes nothing"),
        ({"persist": True, "step": "teach"}, "give store_dir=FOLDER"),
        ({"store_dir": "nowhere"}, "no store at .*nowhere/hei_nw/hei_scratch.*teach first"),
        ({"use_chat_template": False, "overrides": ["decoding=short"]}, "say the same thing"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(lab_root, values, says):
    with pytest.raises(LabError, match=says):
        run_cells(**values)
    assert not (lab_root / "executed").exists()


def test_an_answer_has_the_tokens_and_the_template_that_are_asked_for(lab_root):
    mine = {"store_dir": "stores", "session_id": "s1"}
    run_cells(step="teach", persist=True, **mine)
    usual, short = run_cells(**mine), run_cells(**mine, max_new_tokens=1)
    with pytest.raises(LabError, match=r"lines of plain prompts.*got.*lines of short prompts"):
        run_cells(**mine, use_chat_template=False)
    plain = {"store_dir": "plain", "session_id": "s1", "use_chat_template": False}
    run_cells(step="teach", persist=True, **plain)
    bare = run_cells(**plain)
    assert short["rows"]["generated_tokens"].max() == 1 < usual["rows"]["generated_tokens"].max()
    assert bare["rows"]["prompt"].str.endswith("Answer:").all() and not usual["rows"]["prompt"].str.endswith("Answer:").any()
    decodings = [yaml.safe_load((out["cell"].record / "config_snapshot.yaml").read_text())["decoding"] for out in (usual, short, bare)]
    assert [out["max_new_tokens"] for out in decodings] == [8, 1, 8] and [out["use_chat_template"] for out in decodings] == [
        True,
        True,
        False,
    ]
