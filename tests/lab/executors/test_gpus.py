"""What cells take of a machine: small models share a GPU by the memory that they declare, big ones have it alone; and a worker is fit for
cells when its packages are those of the lock and its code is the runner's."""

from itertools import pairwise

import pytest

from hippo_core.lab.grid.executors import worker
from hippo_core.lab.grid.executors.local import Local, shares
from hippo_core.lab.run import execute
from hippo_core.lab.run.cells import Cell, Requirements
from hippo_core.lab.run.execute import DEFAULTS

NOTHING = Requirements((), ())
OURS = {"python": "3.11", "lock": "l", "code": "c", "packages": [], "seen": True}


@pytest.fixture
def cells(lab_dir):
    for gb in (2, 6, 12, 20):
        (lab_dir / f"params/models/of-{gb}.yaml").write_text(f"source: model\nmax_memory_gb: {gb}\n")
    return [
        Cell("p", {"model": name} if name else {}, name or "none", lab_dir, name)
        for name in ("of-2", "of-6", "of-12", "of-20", "model", "")
    ]


def test_shares_follow_the_declared_memory(cells):
    assert shares(cells, 24) == {"of-2": 2 / 24, "of-6": 0.25, "of-12": 0.5, "of-20": 1.0}
    assert set(shares(cells, float("inf")).values()) == {1.0}
    shares_of_6 = [shares(cells, gb)["of-6"] for gb in (8, 11, 12, 24, 80)]
    assert all(a >= b for a, b in pairwise(shares_of_6))


def test_this_machines_gpu_is_never_overfull(cells, monkeypatch):
    monkeypatch.setattr("hippo_core.lab.grid.executors.local.memory_gb", lambda: 24.0)
    local = Local(cells, 8, DEFAULTS, ())
    two, six, twelve, twenty, small, _ = cells
    assert local.fits(twelve, [twelve])
    assert not local.fits(two, [twelve, twelve])
    assert local.fits(twenty, []) and not local.fits(twenty, [two])
    assert local.fits(small, [twenty])
    assert [local.fits(six, [six] * count) for count in range(5)] == [True] * 4 + [False]
    local.close()


@pytest.mark.parametrize(
    ("change", "shared", "says"),
    [
        ({}, True, ""),
        ({"python": "3.12"}, True, "another Python"),
        ({"lock": "other"}, True, "another requirements.lock"),
        ({"code": "other"}, True, "other code"),
        ({"packages": ["numpy 1.0 where requirements.lock says 2.4.6"]}, True, "numpy 1.0 where requirements.lock says 2.4.6"),
        ({"missing": "no model at data/models/x"}, True, "no model at data/models/x"),
        ({"seen": False}, True, "RECORDS="),
        ({"seen": False}, False, ""),
    ],
    ids=str,
)
def test_what_differs_is_said(change, shared, says):
    why = worker.unfit(OURS, OURS | change, shared)
    assert says in why if says else why == ""


def test_a_package_that_is_not_as_the_lock_says_is_found(lab_dir):
    """The lock is compared with what is installed."""
    (lab_dir / "requirements.lock").unlink()
    (lab_dir / "requirements.lock").write_text("numpy==1.0\nno-such-package==1\npytest\n")
    description = worker.describe(NOTHING, "nowhere")
    assert [line.split(" where ")[0].split()[0] for line in description["packages"]] == ["numpy", "no-such-package"]
    assert "no-such-package missing where requirements.lock says 1" in description["packages"]
    assert description["seen"] is False


def test_a_checkout_that_changes_under_a_worker_is_seen(lab_dir):
    before = worker.describe(NOTHING, "nowhere")
    (lab_dir / "hippo_core/suites/episodic.py").open("a").write("# other\n")
    assert worker.describe(NOTHING, "nowhere")["code"] != before["code"]


def test_a_kernel_beside_others_has_half_and_a_confined_one_of_its_part(monkeypatch, tmp_path):
    assert (
        execute.kernel_memory_limit(1)
        == pytest.approx(2 * execute.kernel_memory_limit(2))
        == pytest.approx(2 * execute.kernel_memory_limit(200))
    )
    (tmp_path / "memory.max").write_text("2000000000\n")
    monkeypatch.setattr(execute, "CGROUP", tmp_path / "memory.max")
    assert execute.kernel_memory_limit(2) == pytest.approx(0.9)
    (tmp_path / "memory.max").write_text("max\n")
    assert execute.kernel_memory_limit(1) > 1
