"""Small models share a GPU by the memory that they declare, big ones have it alone, others take no part of it."""

from itertools import pairwise

import pytest

from hippo_core.lab.grid.executors.local import Local, shares
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import DEFAULTS


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
