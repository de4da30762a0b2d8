"""k-winners-take-all: the same bits from every version, ties to the lower index, zeros never win."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.kernels.kwta import kwta
from tests.kernels.impls import IMPLS, device

NEAR_HALVES = [127 * 0.5 / step for step in range(1, 127)]  # entries whose quotients lie at the edges of rounding


def code(x, winners, impl):
    return [part.cpu() for part in kwta(x.to(device(impl)), winners, impl)]


def by_hand(row, winners: int) -> list[tuple[int, int]]:
    """The contract, one entry after the other, in numpy's float32."""
    row = np.asarray(row, np.float32)
    largest = np.abs(row).max()
    q = [int(np.rint(entry / largest * np.float32(127))) if largest else 0 for entry in row]
    best = sorted(range(len(q)), key=lambda index: (-abs(q[index]), index))[:winners]
    return [(index, q[index]) for index in sorted(best) if q[index]]


def entries(seed: int, rows: int, dims: int, kind: str) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, dims, generator=random)
    if kind == "ties":
        return x.round()
    if kind == "halves":
        return torch.tensor(NEAR_HALVES).repeat(rows, 1) * torch.rand(rows, 1, generator=random)
    if kind == "tiny":
        return x * 1e-42
    return x / x.abs().amax() * 3e38 if kind == "huge" else x


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("kind", ["normal", "ties", "halves", "tiny", "huge"])
@pytest.mark.parametrize(("dims", "winners"), [(1, 1), (7, 3), (64, 64), (300, 32), (1030, 64), (5, 9)])
def test_every_version_is_the_contract_bit_for_bit(impl, kind, dims, winners):
    x = entries(dims, 6, dims, kind)
    indices, values = code(x, winners, impl)
    assert indices.dtype == torch.int32
    assert values.dtype == torch.int8
    assert indices.shape == values.shape == (6, winners)
    for row in range(6):
        due = by_hand(x[row], winners)
        kept = [(int(index), int(value)) for index, value in zip(indices[row], values[row], strict=True)]
        assert kept == due + [(-1, 0)] * (winners - len(due))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("power", [-130, 0, 119])
def test_halves_go_to_the_even_neighbour(impl, sign, power):
    """Every half there is, 0.5 to 126.5: the odd entries below the largest, 254.

    Each lands on its half h in float32. With x / max|x| = h / 127 rounded to f, 127 f is off h by at most 127 ulp(f) / 2. For h from 2^e
    to 2^e * 127 / 64, f lies below 2^(e - 6), so that is 127 / 128 of ulp(h) / 2: the product rounds to h. These are all halves but
    63.5, whose f is 1 / 2 exactly. A power of two in front changes neither step.
    """
    odd, largest = np.arange(1, 254, 2, dtype=np.float32), np.float32(254)
    halves = odd / largest * np.float32(127)
    assert halves.tolist() == [k + 0.5 for k in range(127)]
    x = torch.tensor([[*odd, largest]]) * 2.0**power * sign
    indices, values = code(x, 128, impl)
    even = [k + k % 2 for k in range(127)]
    kept = {index: sign * q for index, q in enumerate([*even, 127]) if q}
    assert dict(zip(indices[0, : len(kept)].tolist(), values[0, : len(kept)].tolist(), strict=True)) == kept
    assert (indices[0, len(kept) :] == -1).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=30), st.integers(1, 12), st.sampled_from(["reference", "cpu"]))
def test_any_row(row, winners, impl):
    indices, values = code(torch.tensor([row]), winners, impl)
    due = by_hand(row, winners)
    assert list(zip(indices[0].tolist(), values[0].tolist(), strict=True))[: len(due)] == due
    assert (indices[0, len(due) :] == -1).all()


@pytest.mark.parametrize("impl", IMPLS)
def test_rows_that_do_not_lie_together_and_those_with_gradients(impl):
    x = entries(3, 40, 6, "normal")
    assert all(torch.equal(a, b) for a, b in zip(code(x.T, 5, impl), code(x.T.contiguous().requires_grad_(), 5, impl), strict=True))


@pytest.mark.parametrize("impl", IMPLS)
def test_no_rows(impl):
    assert [part.shape for part in code(torch.zeros(0, 4), 2, impl)] == [(0, 2), (0, 2)]


@pytest.mark.parametrize(("wrong", "told"), [(torch.nan, "NaN"), (torch.inf, "infinite"), (-torch.inf, "infinite")])
def test_what_is_no_number_is_refused_with_its_row(wrong, told):
    x = torch.ones(4, 3)
    x[2, 1] = wrong
    with pytest.raises(LabError, match=f"row 2 has.*{told}"):
        kwta(x, 2)


@pytest.mark.parametrize("x", [torch.ones(3), torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 0)])
def test_other_tensors_are_refused(x):
    with pytest.raises(LabError, match=r"expects float32 \[N, D\]"):
        kwta(x, 1)


def test_no_winner_is_refused():
    with pytest.raises(LabError, match="at least 1 winner, got 0"):
        kwta(torch.ones(1, 2), 0)
