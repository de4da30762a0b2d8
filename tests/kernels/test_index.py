"""The inverted index: whatever was added and asked in whatever order, it recalls what the reference finds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall import index as module
from hippo_core.kernels.sparse_recall import sparse_recall
from hippo_core.kernels.sparse_recall.index import SparseIndex
from tests.kernels.impls import draw_code

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 5)),
        st.tuples(st.just("recall"), st.integers(1, 12), st.integers(0, 3)),
    ),
    max_size=25,
)


@pytest.fixture(autouse=True, scope="module")
def small():
    """Blocks of eight rows, settled from two on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 8)
        patch.setattr(module, "FEW", 2)
        yield


class Plain:
    """The rows as they came, recalled by the reference."""

    def __init__(self, width: int) -> None:
        self.code = draw_code(0, 0, width, 1)

    def add(self, code: Code) -> None:
        width = self.code.indices.shape[1]
        wider = [torch.nn.functional.pad(part, (0, width - part.shape[1]), value=fill) for part, fill in zip(code, (-1, 0), strict=True)]
        self.code = Code(*(torch.cat(both) for both in zip(self.code, wider, strict=True)))


def agree(index: SparseIndex, plain: Plain, cue: Code, top: int, mask: torch.Tensor | None = None) -> None:
    due = sparse_recall(plain.code, cue, top, mask, impl="reference")
    got = index.recall(cue, top, mask)
    assert torch.equal(got.ids, due.ids)
    assert torch.equal(got.scores, due.scores)


def play(steps, seed: int) -> None:
    index, plain = SparseIndex(12), Plain(5)
    for number, (step, count, width) in enumerate(steps):
        if step == "add":
            code = draw_code(seed + number, count, width, 12)
            first = len(index)
            assert index.add(code) == range(first, first + count)
            plain.add(code)
        else:
            mask = torch.rand(len(index), generator=torch.Generator().manual_seed(seed)) > 0.3 if width % 2 else None
            agree(index, plain, draw_code(seed + number, width, 5, 14), count, mask)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 10_000))
def test_any_order_of_adding_and_recalling(steps, seed):
    play(steps, seed)


def test_fresh_memory_is_written_before_it_is_read(monkeypatch):
    def poisoned(shape, dtype=float):
        return np.full(
            shape, np.nan if np.issubdtype(dtype, np.floating) else np.iinfo(np.dtype(dtype)).max if dtype != np.bool_ else True, dtype
        )

    steps = [
        ("add", 3, 4),
        ("add", 9, 5),
        ("recall", 4, 2),
        ("add", 0, 3),
        ("add", 7, 2),
        ("recall", 20, 3),
        ("recall", 1, 1),
    ]
    play(steps, 1)  # compiled before numpy's own function is gone
    monkeypatch.setattr(np, "empty", poisoned)
    play(steps, 1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
def test_blocks_as_large_as_they_are(monkeypatch, dtype):
    """More rows than 16 bits can number, so that the highest row of a full block, and the second block, are recalled."""
    monkeypatch.setattr(module, "BLOCK", 65_536)
    random = torch.Generator().manual_seed(5)
    indices = torch.randint(0, 500, (66_000, 4), generator=random, dtype=torch.int32)
    code = Code(indices, torch.randint(-9, 10, indices.shape, generator=random, dtype=dtype))
    index, plain = SparseIndex(500, dtype), Plain(4)
    plain.code = Code(plain.code.indices, plain.code.values.to(dtype))
    for part in (slice(0, 40_000), slice(40_000, 65_530), slice(65_530, 66_000)):
        index.add(Code(*(tensor[part] for tensor in code)))
    plain.add(code)
    rows = torch.tensor([0, 32_767, 32_768, 65_535, 65_536, 65_999])
    for asked in (rows, rows[:1], rows[3:4]):
        agree(index, plain, Code(*(tensor[asked] for tensor in code)), 50)


def test_tensors_that_do_not_lie_together():
    code, index, plain = draw_code(4, 30, 5, 12), SparseIndex(12), Plain(5)
    every_second = Code(*(part[::2] for part in code))
    index.add(every_second)
    plain.add(every_second)
    agree(index, plain, Code(*(part[::3] for part in code)), 9, (torch.arange(45) % 2 > 0)[::3])


def filled() -> SparseIndex:
    index = SparseIndex(9)
    index.add(draw_code(0, 4, 3, 9))
    return index


@pytest.mark.parametrize(
    ("do", "told"),
    [
        (lambda: SparseIndex(0), "at least 1 dimension"),
        (lambda: SparseIndex(4, torch.float32), "int8 or int16"),
        (lambda: filled().add(draw_code(0, 2, 2, 9, torch.int16)), "takes torch.int8 values of dimensions below 9, got torch.int16"),
        (
            lambda: filled().add(Code(torch.tensor([[9]], dtype=torch.int32), torch.ones(1, 1, dtype=torch.int8))),
            "below 9, got .*dimension 9",
        ),
        (lambda: filled().recall(draw_code(0, 1, 3, 9), 0), "top of at least 1"),
        (lambda: filled().recall(draw_code(0, 1, 3, 9), 1, torch.ones(3, dtype=torch.bool)), r"mask must be bool \[4\]"),
    ],
)
def test_what_does_not_fit_is_refused(do, told):
    with pytest.raises(LabError, match=told):
        do()


def test_a_refused_code_leaves_the_index_as_it_was():
    index, plain = filled(), Plain(3)
    plain.add(draw_code(0, 4, 3, 9))
    wrong = Code(torch.tensor([[1], [9]], dtype=torch.int32), torch.ones(2, 1, dtype=torch.int8))
    with pytest.raises(LabError):
        index.add(wrong)
    assert len(index) == 4
    agree(index, plain, draw_code(1, 3, 3, 9), 4)
