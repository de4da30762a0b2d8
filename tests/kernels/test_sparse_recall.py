"""Sparse recall: exact integers, the same ids from every version, ties to the lower row, nobody without a shared dimension."""

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall import sparse_recall
from tests.kernels.impls import IMPLS, device, draw_code, to


def recall(store, cue, top, mask, impl):
    where = device(impl)
    recalled = sparse_recall(Code(*to(where, *store)), Code(*to(where, *cue)), top, *to(where, mask), impl=impl)
    return recalled.ids.cpu(), recalled.scores.cpu()


def by_hand(store: Code, cue: Code, top: int, mask: torch.Tensor | None) -> list[list[tuple[int, int]]]:
    """The contract with dictionaries and Python's integers."""
    stored, asked = dictionaries(store), dictionaries(cue)
    allowed = [True] * len(stored) if mask is None else mask.tolist()
    ranked = []
    for cue_values in asked:
        scores = [(sum(value * cue_values.get(dim, 0) for dim, value in row.items()), number) for number, row in enumerate(stored)]
        best = sorted((-score, number) for score, number in scores if score > 0 and allowed[number])[:top]
        ranked.append([(number, -score) for score, number in best] + [(-1, 0)] * (top - len(best)))
    return ranked


def dictionaries(code: Code) -> list[dict[int, int]]:
    pairs = [zip(*row, strict=True) for row in zip(code.indices.tolist(), code.values.tolist(), strict=True)]
    return [{dim: value for dim, value in row if dim >= 0} for row in pairs]


def pairs(ids, scores) -> list[list[tuple[int, int]]]:
    return [list(zip(*row, strict=True)) for row in zip(ids.tolist(), scores.tolist(), strict=True)]


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
@pytest.mark.parametrize(
    ("rows", "cues", "width", "dims", "top"), [(30, 5, 4, 6, 3), (200, 3, 9, 40, 20), (5, 1, 3, 300, 9), (1, 2, 1, 1, 1)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_every_version_is_the_contract(impl, dtype, rows, cues, width, dims, top, masked):
    store, cue = draw_code(rows, rows, width, dims, dtype), draw_code(top, cues, width + 1, dims + 3)
    mask = torch.rand(rows, generator=torch.Generator().manual_seed(1)) > 0.4 if masked else None
    assert pairs(*recall(store, cue, top, mask, impl)) == by_hand(store, cue, top, mask)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize(("rows", "width", "cue_width"), [(0, 3, 3), (4, 0, 3), (4, 3, 0), (0, 0, 0)])
def test_where_there_is_nothing_nothing_is_recalled(impl, rows, width, cue_width):
    ids, scores = recall(draw_code(0, rows, width, 9), draw_code(1, 2, cue_width, 9), 3, None, impl)
    assert (ids.shape, scores.shape) == ((2, 3), (2, 3))
    assert (ids == -1).all()
    assert (scores == 0).all()


@pytest.mark.parametrize("impl", IMPLS)
def test_no_cues(impl):
    assert recall(draw_code(0, 4, 3, 9), draw_code(1, 0, 3, 9), 3, None, impl)[0].shape == (0, 3)


@pytest.mark.parametrize("impl", IMPLS)
def test_equal_scores_come_by_row(impl):
    store = Code(torch.zeros(70, 1, dtype=torch.int32), torch.ones(70, 1, dtype=torch.int8))
    ids, _ = recall(store, Code(store.indices[:1], store.values[:1]), 40, torch.arange(70) % 3 > 0, impl)
    assert ids[0].tolist() == [row for row in range(70) if row % 3][:40]


@pytest.mark.parametrize("impl", IMPLS)
def test_padding_order_and_repeated_indices_do_not_matter(impl):
    tidy = Code(torch.tensor([[1, 4, -1, -1]], dtype=torch.int32), torch.tensor([[5, -2, 0, 0]], dtype=torch.int8))
    untidy = Code(torch.tensor([[4, -1, 1, 1]], dtype=torch.int32), torch.tensor([[-2, 9, 2, 3]], dtype=torch.int8))
    for store in (tidy, untidy):
        for cue in (tidy, untidy):
            assert pairs(*recall(store, cue, 1, None, impl)) == [[(0, 29)]]


@pytest.mark.parametrize("impl", ["reference", "cpu"])
def test_scores_beyond_32_bits_are_exact(impl):
    large = Code(torch.arange(9, dtype=torch.int32)[None], torch.full((1, 9), -(2**15), dtype=torch.int16))
    assert recall(large, large, 1, None, impl)[1].tolist() == [[9 * 2**30]]


@pytest.mark.parametrize("impl", IMPLS[2:])
def test_triton_refuses_scores_beyond_32_bits(impl):
    large = Code(torch.arange(9, dtype=torch.int32)[None], torch.full((1, 9), -(2**15), dtype=torch.int16))
    with pytest.raises(LabError, match=r"below 2\^31, these codes may reach 9663676416"):
        recall(large, large, 1, None, impl)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"store": Code(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int8))}, "store: expected int32 indices"),
        (
            {"cue": Code(torch.zeros(2, 3, dtype=torch.int32), torch.zeros(2, 2, dtype=torch.int8))},
            "cue: indices and values must have one shape",
        ),
        ({"cue": Code(*(part.to("meta") for part in draw_code(1, 2, 3, 9)))}, "must be on cpu"),
        ({"top": 0}, "top of at least 1, got 0"),
        ({"mask": torch.ones(3, dtype=torch.bool)}, r"mask must be bool \[4\]"),
        ({"mask": torch.ones(4)}, r"mask must be bool \[4\]"),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    given_ = {"store": draw_code(0, 4, 3, 9), "cue": draw_code(1, 2, 3, 9), "top": 2, **change}
    with pytest.raises(LabError, match=told):
        sparse_recall(**given_)
