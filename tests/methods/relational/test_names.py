"""A name that is nearly known is found by an index as by a look at all; so are words, by the statements that are met."""

from random import Random

import pytest

from hippo_core.methods.relational.graph import Graph
from hippo_core.methods.relational.likeness import Likeness, spelling
from hippo_core.methods.relational.mentions import NEAR, NameIndex
from hippo_core.methods.relational.paths import Search
from tests.methods.relational.test_graph import CHAIN, traces

PARTS = ("ash", "ashe", "bell", "belle", "cole", "coll", "dale", "dales", "finch", "fitch")


def looked_up(name, known):
    """The same by a look at all."""
    if name in known:
        return name
    part = [one for one in known if set(name.split()) <= set(one.split()) or set(one.split()) <= set(name.split())]
    best = max((spelling(name, one), one) for one in known)
    return min(part, key=len) if part else best[1] if best[0] >= NEAR else ""


@pytest.mark.parametrize("seed", range(20))
def test_the_index_finds_what_a_look_at_all_finds(seed):
    random = Random(seed)
    drawn = [" ".join(random.choices(PARTS, k=random.randint(1, 3))) for _ in range(30)]
    known, names = list(dict.fromkeys(drawn[:15])), NameIndex()
    for name in drawn[:15]:
        names.add(name)
    assert [names.nearest(name) for name in drawn] == [looked_up(name, known) for name in drawn]
    assert names.nearest("zzz") == ""


def test_a_question_looks_at_no_word_of_statements_that_it_does_not_meet():
    met = set()

    class Met(Likeness):
        def words(self, asked, known):
            met.update(known)
            return super().words(asked, known)

    Search(Graph.of(traces(*CHAIN, "Kim has a zeppelin from Max.")), Met()).best("In which city did Omar buy a lamp?")
    assert "lamp" in met
    assert "zeppelin" not in met
