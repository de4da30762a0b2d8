"""Scores follow their definitions, equal what is counted by hand or by scipy, and are None where there is nothing to score."""

import math
import random
from itertools import permutations

import pytest

from hippo_core.protocols.paired import assertions
from hippo_core.protocols.paired.scoring import covered, ndcg, recall_at_k, reciprocal_rank


def test_what_has_no_value_is_none_and_never_one():
    assert [recall_at_k(["a"], [], 3), reciprocal_rank(["a"], []), ndcg(["a"], [], 3), covered(["a"], [])] == [None] * 4
    assert assertions.recall("anything", []) is None


def test_ndcg_is_its_gain_over_that_of_the_best_order():
    draw = random.Random(0)
    for _ in range(100):
        names = [f"n{number}" for number in range(draw.randint(2, 6))]
        wanted = set(draw.sample(names, draw.randint(1, len(names))))
        ranking, k = draw.sample(names, len(names)), draw.randint(1, len(names))
        gains = [sum(1 / math.log2(index + 2) for index, name in enumerate(order[:k]) if name in wanted) for order in permutations(names)]
        own = sum(1 / math.log2(index + 2) for index, name in enumerate(ranking[:k]) if name in wanted)
        assert ndcg(ranking, wanted, k) == pytest.approx(own / max(gains), abs=1e-12)


def test_the_reciprocal_rank_is_of_the_first_right_note():
    assert reciprocal_rank(["x", "b", "a"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0.0


@pytest.mark.parametrize(
    ("text", "assertion", "expected"),
    [
        ("The fete is on the cricket field.", "cricket field", True),
        ("The fete is not on the cricket field.", "cricket field", False),
        ("Not the paddock, the cricket field.", "cricket field", True),
        ("The fete is not on the paddock but on the cricket field", "cricket field", True),
        ("Use the lift rather than the stairs", "the stairs", False),
        ("The stairs are no longer used", "the stairs", False),
        ("The stairs are no longer used", "no longer used", True),
        ("140 parcels", "40", False),
        ("It takes 40.5 minutes", "40", False),
        ("It takes 40.", "40", True),
        ("at 8:12 sharp", "8:12", True),
        ("We paired them", "pair", False),
        ("PAIRED runs", "paired runs", True),
        ("Don't wait for Bento", "Bento", False),
        ("Don\u2019t wait for Bento", "Bento", False),
        ("ask Ngozi", ["Bea", "Ngozi"], True),
        ("It was -5 outside.", "5", False),
        ("It was \u22125 outside.", "-5", True),
        ("Written in C++", "C", False),
        ("1,000 parcels of 5km", "1000 parcels of 5 km", True),
        ("\u4ed6\u4f4f\u5728\u5317\u4eac\u3002", "\u5317\u4eac", True),
    ],
)
def test_what_is_denied_is_not_stated(text, assertion, expected):
    assert assertions.says(text, assertion) is expected


REFUSED = [("unknown", True), ("Unknown.", True), ("", True), ("I don't know", True), ("an unknown man", False)]


@pytest.mark.parametrize(("text", "refused"), REFUSED)
def test_a_refusal_says_nothing_else(text, refused):
    assert assertions.refuses(text) is refused
