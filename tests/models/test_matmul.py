"""Faster products: as exact as float32 is, and off where they would not be."""

import pytest
import torch

from hippo_core.models import matmul
from hippo_core.models.matmul import half_products, quicken_products


@pytest.fixture(autouse=True)
def as_before():
    """The process's setting, put back, and what was tried, forgotten."""
    matmul._is_exact.cache_clear()
    before = torch.backends.mkldnn.matmul.fp32_precision
    yield
    torch.backends.mkldnn.matmul.fp32_precision = before
    matmul._is_exact.cache_clear()


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_products_stay_float32(rows):
    quicken_products()
    a = torch.randn(rows, 576, generator=torch.Generator().manual_seed(1))
    b = torch.randn(576, 1536, generator=torch.Generator().manual_seed(2))
    error = (a @ b - a.double() @ b.double()).abs().max().item()
    assert error < 576 * torch.finfo(torch.float32).eps * 8  # 576 sums of size 24, none off by more than 8 ulp


def test_where_rounding_would_show_nothing_changes(monkeypatch):
    monkeypatch.setattr(matmul, "AS_EXACT", 0)
    before = torch.backends.mkldnn.matmul.fp32_precision
    assert quicken_products() is False
    assert torch.backends.mkldnn.matmul.fp32_precision == before


@pytest.mark.parametrize(("able", "wanted", "half"), [(True, True, True), (False, True, False), (True, False, False)])
def test_products_are_of_bfloat16_only_where_the_processor_has_it(monkeypatch, able, wanted, half):
    monkeypatch.setattr(matmul, "multiplies_bfloat16", lambda: able)
    with half_products("cpu", wanted):
        product = torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert product.dtype == (torch.bfloat16 if half else torch.float32)
