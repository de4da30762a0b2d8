"""Trace attention: every version is the formula in float64 up to a bound on float32's rounding; nothing seen is neutral, never NaN."""

import pytest
import torch
from torch.autograd import gradcheck

from hippo_core.errors import LabError
from hippo_core.kernels.trace_attention import merge, trace_attention
from tests.kernels.impls import IMPLS, device, to

DIFFERENTIABLE = ["reference", "cpu"]


def attend(q, k, v, mask, impl, scale=None):
    return tuple(part.cpu() for part in trace_attention(*to(device(impl), q, k, v, mask), scale, impl))


def draw(seed, shape, dtype=torch.float32):
    """Queries, keys, values and a mask of [B, H, G, T, S, d]."""
    batch, heads, groups, queries, tokens, dims = shape
    random = torch.Generator().manual_seed(seed)
    q = torch.randn(batch, heads, queries, dims, generator=random, dtype=dtype)
    k, v = torch.randn(2, batch, groups, tokens, dims, generator=random, dtype=dtype)
    return q, k, v, torch.rand(batch, tokens, generator=random) > 0.3


def formula(q, k, v, mask, scale):
    """One head, one query at a time in float64: out, lse, and how far float32 may be from each.

    A score is off by at most (d + 3) eps of the sum of its products' sizes, a sum over S weights by S eps more (Higham 2002, section 3.1).
    """
    eps, dims, tokens = torch.finfo(torch.float32).eps, q.shape[3], k.shape[2]
    q, k, v = q.double(), k.double(), v.double()
    out, lse = torch.zeros_like(q), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            own = h // (q.shape[1] // k.shape[1])
            keys, values = k[b, own, mask[b]], v[b, own, mask[b]]
            scores = scale * q[b, h] @ keys.T
            out[b, h], lse[b, h] = scores.softmax(1) @ values, scores.logsumexp(1)
    size = scale * float((q.abs().flatten(0, 2).max(0).values * k.abs().flatten(0, 2).max(0).values).sum())
    off = (dims + 3) * eps * size
    return out, lse, (2 * off + (tokens + 8) * eps) * float(v.abs().max()), off + (tokens + 8) * eps


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1, 1, 1), (2, 6, 3, 5, 70, 24), (3, 4, 4, 17, 3, 16), (1, 9, 3, 2, 40, 64), (2, 4, 1, 3, 33, 8)]
)
@pytest.mark.parametrize("scale", [None, 0.05, 3.0])
def test_every_version_is_the_formula(impl, shape, scale):
    q, k, v, mask = draw(sum(shape), shape)
    mask[0, 0] = True
    out, lse = attend(q, k, v, mask, impl, scale)
    due, due_lse, off, off_lse = formula(q, k, v, mask, shape[-1] ** -0.5 if scale is None else scale)
    seen = mask.any(1)
    assert ((out - due)[seen].abs() <= off).all()
    assert ((lse - due_lse)[seen].abs() <= off_lse).all()


@pytest.mark.parametrize("impl", IMPLS)
def test_where_nothing_may_be_seen_the_rest_is_as_it_was(impl):
    q, k, v, mask = draw(1, (3, 4, 2, 5, 6, 8))
    mask[1] = False
    k[1], v[1] = 1e4, torch.inf
    out, lse = attend(q, k, v.nan_to_num(posinf=3e38), mask, impl)
    assert (out[1] == 0).all()
    assert (lse[1] == -torch.inf).all()
    assert not (out.isnan().any() or lse.isnan().any())
    alone, _ = attend(q[:1], k[:1], v[:1], mask[:1], impl)
    assert torch.allclose(out[:1], alone, atol=1e-6)


@pytest.mark.parametrize("impl", IMPLS)
def test_no_trace_is_neutral(impl):
    q, k, v, mask = draw(2, (2, 4, 2, 5, 0, 8))
    out, lse = attend(q, k, v, mask, impl)
    assert (out.shape, lse.shape) == (q.shape, q.shape[:3])
    assert (out == 0).all()
    assert (lse == -torch.inf).all()


@pytest.mark.parametrize("impl", IMPLS)
def test_two_parts_merged_are_the_whole(impl):
    q, k, v, mask = draw(3, (2, 4, 2, 5, 20, 8))
    mask[1, :9] = False
    parts = [attend(q, k[:, :, part], v[:, :, part], mask[:, part], impl) for part in (slice(0, 9), slice(9, 20))]
    out, lse = merge(*parts[0], *parts[1])
    due, due_lse, off, off_lse = formula(q, k, v, mask, 8**-0.5)
    assert ((out - due).abs() <= 3 * off).all()
    assert ((lse - due_lse).abs() <= 3 * off_lse).all()


def test_nothing_merged_with_nothing_is_nothing():
    nothing = torch.zeros(1, 1, 2, 3), torch.full((1, 1, 2), -torch.inf)
    out, lse = merge(*nothing, *nothing)
    assert (out == 0).all()
    assert (lse == -torch.inf).all()


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_answers_in_its_own_dtype_with_lse_in_float32(impl, dtype):
    """Weights and answers are rounded once each by eps / 2; keys and values as given are exact in float32."""
    if impl == "triton" and dtype == torch.bfloat16 and device(impl) == "cpu":
        pytest.skip("Triton's interpreter multiplies bfloat16 by its bits")
    q, k, v, mask = draw(5, (2, 4, 2, 5, 20, 16))
    mask[:, 0] = True
    q, k, v = (part.to(dtype) for part in (q, k, v))
    due, due_lse, off, off_lse = formula(q.float(), k.float(), v.float(), mask, 16**-0.5)
    out, lse = attend(q, k, v, mask, impl)
    assert (out.dtype, lse.dtype) == (dtype, torch.float32)
    assert ((out - due).abs() <= off + torch.finfo(dtype).eps * float(v.abs().max())).all()
    assert ((lse - due_lse).abs() <= off_lse + torch.finfo(dtype).eps).all()


@pytest.mark.parametrize("impl", DIFFERENTIABLE)
@pytest.mark.parametrize("which", [0, 1])
def test_gradients_through_out_and_lse(impl, which):
    q, k, v, mask = draw(6, (2, 4, 2, 3, 5, 4), torch.float64)
    mask[0, 0] = True
    assert gradcheck(
        lambda *parts: trace_attention(*parts, mask, impl=impl)[which][mask.any(1)], [part.requires_grad_() for part in (q, k, v)]
    )


@pytest.mark.parametrize("impl", DIFFERENTIABLE)
def test_gradients_where_nothing_is_seen_are_zero(impl):
    q, k, v, mask = draw(7, (2, 4, 2, 3, 5, 4))
    mask[1] = False
    parts = [part.requires_grad_() for part in (q, k, v)]
    out, lse = trace_attention(*parts, mask, impl=impl)
    (out.square().sum() + lse[0].sum()).backward()
    assert all((part.grad[1] == 0).all() for part in parts)
    assert all(part.grad.isfinite().all() for part in parts)


def test_a_gradient_of_the_merge_is_that_of_the_whole():
    q, k, v, mask = draw(8, (2, 4, 2, 3, 6, 4), torch.float64)
    mask[1, :3] = False
    mask[:, 4] = True
    q.requires_grad_()
    full, _ = trace_attention(q, k, v, mask, impl="reference")
    parts = [trace_attention(q, k[:, :, part], v[:, :, part], mask[:, part], impl="cpu") for part in (slice(0, 3), slice(3, 6))]
    due, got = (torch.autograd.grad(out.square().sum(), q)[0] for out in (full, merge(*parts[0], *parts[1])[0]))
    assert torch.allclose(due, got, atol=1e-10)


@pytest.mark.parametrize("impl", IMPLS[2:])
def test_triton_refuses_gradients(impl):
    q, k, v, mask = to(device(impl), *draw(9, (1, 2, 1, 2, 3, 4)))
    with pytest.raises(LabError, match="has no gradients"):
        trace_attention(q.requires_grad_(), k, v, mask, impl=impl)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"q": torch.ones(1, 4, 3, 5)}, r"expects q \[B, H, T, d\]"),
        ({"k": torch.ones(1, 3, 6, 8), "v": torch.ones(1, 3, 6, 8)}, "equal groups"),
        ({"mask": torch.ones(1, 6)}, "mask bool"),
        ({"v": torch.ones(1, 2, 6, 8, dtype=torch.float64)}, "one floating dtype"),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    q, k, v, mask = draw(0, (1, 4, 2, 3, 6, 8))
    with pytest.raises(LabError, match=told):
        trace_attention(**{"q": q, "k": k, "v": v, "mask": mask, **change})
