"""The index of neighbours: where it may miss none it is exact, whatever was added and removed; where it may, it finds nearly all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.retrieval.neighbours import cells
from hippo_core.retrieval.neighbours import index as module
from hippo_core.retrieval.neighbours.index import NeighbourIndex, learn_units, nearest_unit
from hippo_core.retrieval.vectors import lengths_of, quantised

WIDTH, FAMILY, ROWS = 70, 25, 20_000  # a width that fills no number of 64 signs
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("recall"), st.integers(1, 12), st.integers(0, 3)),
    ),
    max_size=25,
)


def drawn(seed: int, count: int) -> np.ndarray:
    """Vectors of which some are the same and some are nothing."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-2, 3, (count, WIDTH)).astype(np.int8)
    vectors[random.random(count) < 0.2] = 1
    vectors[random.random(count) < 0.05] = 0
    return vectors


def families(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors in families, in no order, and cues that are like one of them."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((-(-count // FAMILY), WIDTH)).repeat(FAMILY, axis=0)[:count] + 0.8 * random.standard_normal(
        (count, WIDTH)
    )
    cues = rows[random.integers(0, count, 50)] + 0.5 * random.standard_normal((50, WIDTH))
    return quantised(rows[random.permutation(count)]), quantised(cues)


def due(vectors: np.ndarray, alive: np.ndarray, cues: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest rows by numpy: by cosine, of equals the lower row first."""
    ids, cosines = np.full((len(cues), top), -1), np.full((len(cues), top), -np.inf)
    rows = np.flatnonzero(alive)
    for number, cue in enumerate(cues):
        products = vectors[rows].astype(np.int64) @ cue.astype(np.int64) / lengths_of(vectors[rows])
        first = np.lexsort((rows, -products))[:top]
        ids[number, : len(first)], cosines[number, : len(first)] = rows[first], products[first] / lengths_of(cue[None])
    return ids, cosines


@pytest.mark.parametrize("learn", [10, 10_000])
@settings(max_examples=20, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 10_000), exact=st.booleans())
def test_it_is_exact_where_all_units_are_asked_and_all_rows_compared(learn, steps, seed, exact):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEARN", learn)
        index = NeighbourIndex(WIDTH, probes=999, compared=9999)
        vectors, alive = np.empty((0, WIDTH), np.int8), np.empty(0, bool)
        for number, (step, count, width) in enumerate(steps):
            if step == "add":
                more = drawn(seed + number, count)
                assert index.add(more) == range(len(vectors), len(vectors) + count)
                vectors, alive = np.concatenate([vectors, more]), np.append(alive, np.ones(count, bool))
            elif step == "remove" and len(index):
                index.remove([count % len(index), count % len(index)])
                alive[count % len(index)] = False
            elif step == "recall":
                mask = np.random.default_rng(seed).random(len(index)) > 0.3 if width % 2 else None
                cues = drawn(seed + number, width)
                result = index.recall(cues, count, mask, exact)
                ids, cosines = due(vectors, alive if mask is None else alive & mask, cues, count)
                np.testing.assert_array_equal(result.ids, ids)
                np.testing.assert_allclose(result.cosines, cosines)


@pytest.fixture(scope="module")
def filled() -> tuple[NeighbourIndex, np.ndarray]:
    """Rows of which the first are there when units are learnt, the others come one hundred at a time."""
    rows, cues = families(ROWS)
    index = NeighbourIndex(WIDTH)
    for start in range(0, ROWS, 100):
        index.add(rows[start : start + 100])
    return index, cues


def share(index: NeighbourIndex, cues: np.ndarray, top: int = 10) -> float:
    """How many of the nearest it finds."""
    pairs = zip(index.recall(cues, top).ids, index.recall(cues, top, exact=True).ids, strict=True)
    return float(np.mean([len(set(result) & set(near)) / len(near) for result, near in pairs]))


def test_it_finds_nearly_all_of_the_nearest_ten_and_reads_a_tenth_of_the_rows(filled):
    index, cues = filled
    assert share(index, cues) > 0.95
    read = [index._cells.counts[won].sum() for won in _won(index, cues)]
    assert np.mean(read) < 0.1 * ROWS


def _won(index: NeighbourIndex, cues: np.ndarray) -> np.ndarray:
    won = np.empty((len(cues), index.probes), np.int64)
    cells.code(cues, cells.signs_of(cues), index._units, won)
    return won


def test_rows_that_win_a_second_unit_are_found_more_often(monkeypatch):
    random = np.random.default_rng(4)  # in no families, so that most rows lie between units
    rows, cues = quantised(random.standard_normal((module.LEARN, WIDTH))), quantised(random.standard_normal((100, WIDTH)))
    result = []
    for wins in (module.WINS, 1):
        monkeypatch.setattr(module, "WINS", wins)
        index = NeighbourIndex(WIDTH)
        index.add(rows)
        result.append(share(index, cues))
    assert result[0] > result[1] + 0.05


def test_two_fill_it_alike_at_once_and_by_and_by():
    rows, cues = families(module.LEARN + 3000, seed=3)
    at_once, by_and_by = NeighbourIndex(WIDTH), NeighbourIndex(WIDTH)
    at_once.add(rows[: module.LEARN])
    at_once.add(rows[module.LEARN :])
    for start in range(0, len(rows), 1024):
        by_and_by.add(rows[start : start + 1024])
    np.testing.assert_array_equal(at_once.recall(cues, 10).ids, by_and_by.recall(cues, 10).ids)


def test_what_is_removed_is_not_recalled_and_does_not_crowd_out_what_is_left():
    rows, cues = families(3 * ROWS, seed=2)
    index = NeighbourIndex(WIDTH)
    index.add(rows)
    removed = np.random.default_rng(0).permutation(3 * ROWS)[: 2 * ROWS]
    before = index.recall(cues, 10).ids
    index.remove(removed)
    assert np.isin(before, removed).mean() > 0.5
    assert not np.isin(index.recall(cues, 10).ids, removed).any()
    assert share(index, cues, 5) > 0.9  # a family has eight left


def test_a_few_that_may_be_recalled_are_all_found(filled):
    index, cues = filled
    mask = np.zeros(ROWS, bool)
    mask[::1000] = True
    result = index.recall(cues, 20, mask).ids
    assert (np.sort(result, axis=1) == np.arange(0, ROWS, 1000)).all()


def test_units_are_learnt_again_from_the_rows_that_are_left(monkeypatch):
    monkeypatch.setattr(module, "LEARN", 64)
    rows, cues = families(2000, seed=5)
    index = NeighbourIndex(WIDTH, probes=999, compared=999)
    index.add(rows[:64])
    first = index._learned_from
    index.remove(range(50))
    index.add(rows[64 : 64 + 2 * 64 - 14])
    assert (first, index._learned_from) == (64, 128)
    assert index._cells.counts.sum() == module.WINS * 128  # none of those removed
    assert index.recall(cues, 3).ids.min() >= 50


def test_units_are_the_means_of_what_they_win():
    vectors = np.array([[100, 1], [1, 100], [90, -9], [-9, 90], [100, 3]], np.int8)
    units = learn_units(vectors, 2)
    np.testing.assert_array_equal(nearest_unit(vectors, units), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(units, [[127, -2], [-5, 127]])


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda index: index.add(np.zeros((2, 5), np.int8)), r"int8 \[N, 70\], got int8 \[2, 5\]"),
        (lambda index: index.add(np.zeros((2, WIDTH))), "got float64.*quantised"),
        (lambda index: index.recall(np.zeros(WIDTH, np.int8), 1), r"cues must be int8 \[N, 70\]"),
        (lambda index: index.recall(np.zeros((1, WIDTH), np.int8), 0), "top of at least 1"),
        (lambda index: index.recall(np.zeros((1, WIDTH), np.int8), 1, np.ones(3, bool)), r"mask must be bool \[2\]"),
        (lambda index: index.remove([2]), "from 0 to 1"),
        (lambda index: index.remove(np.array([0.5])), "whole numbers"),
        (lambda _: NeighbourIndex(WIDTH, probes=0), "at least 1"),
    ],
)
def test_what_it_cannot_take_is_said(use, said):
    index = NeighbourIndex(WIDTH)
    index.add(np.ones((2, WIDTH), np.int8))
    with pytest.raises(LabError, match=said):
        use(index)
