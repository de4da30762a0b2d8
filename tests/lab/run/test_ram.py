"""What memory a cell may take; tests/lab/grid/test_engine.py has one that takes more."""

import pytest

from hippo_core.lab.run import execute


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
