"""Kernels run with every fresh tensor full of NaN (integers: their largest)."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def poisoned():
    """PyTorch fills fresh memory itself when it is asked to be deterministic."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(before)
