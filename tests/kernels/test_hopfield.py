"""Hopfield completion: every version is the dense formula in float64 up to the rounding of float32, which is bounded, not tuned."""

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.kernels.hopfield import hopfield
from tests.kernels.impls import IMPLS, device, to

EPS = torch.finfo(torch.float32).eps


def complete(memory, cue, beta, mask, impl, steps=1):
    return hopfield(*to(device(impl), memory, cue), beta, steps, *to(device(impl), mask), impl=impl).cpu()


def dense(memory, cue, beta, mask=None):
    """One step in float64, and how far float32 may be from it.

    A score of D products is off by at most (D + 3) eps of the sum of their sizes; a weight then by twice the largest of that, relatively,
    and by as many eps as there are rows that are added up (Higham 2002, section 3.1); an entry by that share of the largest in M.
    """
    m, z = memory.double(), cue.double()
    scores = beta * z @ m.T
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    off = (m.shape[1] + 3) * EPS * abs(beta) * (z.abs() @ m.abs().T).amax(1, keepdim=True)
    return scores.softmax(1) @ m, (2 * off + (len(m) + 8) * EPS) * m.abs().max()


def draw(seed: int, rows: int, cues: int, dims: int):
    random = torch.Generator().manual_seed(seed)
    memory, cue = torch.randn(rows, dims, generator=random), torch.randn(cues, dims, generator=random)
    return memory / memory.norm(dim=1, keepdim=True), cue, torch.rand(rows, generator=random) > 0.4


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize(("rows", "cues", "dims"), [(1, 1, 1), (30, 1, 20), (33, 3, 16), (1500, 1, 8), (2100, 2, 5), (64, 20, 40)])
@pytest.mark.parametrize("beta", [0.0, 8.0, 300.0, -2.0])
@pytest.mark.parametrize("masked", [False, True])
def test_streaming_is_the_dense_formula(impl, rows, cues, dims, beta, masked):
    memory, cue, mask = draw(rows, rows, cues, dims)
    mask[-1] = True
    got = complete(memory, cue, beta, mask if masked else None, impl)
    due, off = dense(memory, cue, beta, mask if masked else None)
    assert got.dtype == torch.float32
    assert ((got - due).abs() <= off).all()


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("cues", [1, 4])
def test_steps_follow_one_another(impl, cues):
    memory, cue, mask = draw(3, 70, cues, 12)
    once = complete(memory, cue, 4.0, mask, impl)
    assert torch.equal(
        complete(memory, cue, 4.0, mask, impl, steps=3), complete(memory, complete(memory, once, 4.0, mask, impl), 4.0, mask, impl)
    )


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("cues", [0, 1, 3])
def test_without_a_row_the_cue_comes_back(impl, cues):
    memory, cue, mask = draw(0, 9, cues, 6)
    assert torch.equal(complete(memory[:0], cue, 8.0, None, impl), cue)
    assert torch.equal(complete(memory, cue, 8.0, torch.zeros_like(mask), impl), cue)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("cues", [1, 4])
def test_a_masked_row_is_as_if_it_were_not_there(impl, cues):
    """Whatever it holds: all of a first chunk is masked, and would win by far."""
    memory, cue, _ = draw(5, 1400, cues, 6)
    memory[:1100] *= 1e4
    mask = torch.arange(1400) >= 1100
    due, off = dense(memory[1100:], cue, 8.0)
    assert ((complete(memory, cue, 8.0, mask, impl) - due).abs() <= off + 1400 * EPS).all()


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("cues", [1, 4])
@pytest.mark.parametrize(("beta", "size"), [(1.0, 1e16), (1e16, 1e8), (-1e36, 1.0)])
def test_the_only_row_that_may_be_used_comes_back_however_low_its_score(impl, cues, beta, size):
    """A softmax over one score is 1 whatever that score is; no masked row, and nothing beyond the last, takes a share of it."""
    memory, cue, _ = draw(9, 1100, cues, 5)
    only_row, cue = 1050, cue.abs() * size
    memory[only_row] = -size if beta > 0 else size
    assert (beta * cue.double() @ memory[only_row].double() < -1e31).all()
    due = memory[only_row].expand(cues, -1)
    assert torch.equal(complete(memory, cue, beta, torch.arange(1100) == only_row, impl), due)
    assert torch.equal(complete(memory[only_row : only_row + 1], cue, beta, None, impl), due)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"memory": torch.ones(3, 4)}, "one D, got"),
        ({"cue": torch.ones(2, 5, dtype=torch.float64)}, "of float32"),
        ({"mask": torch.ones(2, dtype=torch.bool)}, r"mask must be bool \[3\]"),
        ({"beta": float("nan")}, "finite beta"),
        ({"steps": 0}, "at least 1 step"),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    with pytest.raises(LabError, match=told):
        hopfield(**{"memory": torch.ones(3, 5), "cue": torch.ones(2, 5), "beta": 1.0, **change})
