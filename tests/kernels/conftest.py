"""Kernels run with every fresh tensor full of NaN (integers: their largest), Triton's in its interpreter where there is no GPU."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def interpreted():
    with pytest.MonkeyPatch.context() as patch:
        if not torch.cuda.is_available():
            patch.setenv("TRITON_INTERPRET", "1")
        yield


@pytest.fixture(autouse=True, scope="package")
def poisoned(interpreted):
    """PyTorch fills fresh memory itself when it is asked to be deterministic."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.empty(1).isnan().all()
    yield
    torch.use_deterministic_algorithms(before)
