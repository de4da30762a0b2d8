"""What a sentence says: who says it and how surely, its names, and the relation of two of them; names that are nearly known."""

from random import Random

import pytest

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.relational.attribution import Attribution, parse_attribution
from hippo_core.methods.relational.clauses import TextSimilarity, spelling
from hippo_core.methods.relational.graph import Graph, read
from hippo_core.methods.relational.mentions import NEAR, NameIndex, mentions
from hippo_core.methods.relational.paths import Search
from hippo_core.methods.relational.relations import FORMS
from hippo_core.store.trace import Trace
from hippo_core.suites import settings_for
from hippo_core.suites.draw import cut, drawn_worlds
from tests.methods.relational.test_graph import CHAIN, traces

HARDER = {
    "plain": {"n_facts": 60, "contradictions": 5, "conflicts": ("plain",)},
    "hedged": {"n_facts": 60, "contradictions": 5, "conflicts": ("plain",), "hedges": True},
    "retold": {"n_facts": 60, "retellings": 0.3, "timed": 2, "near_misses": 6},
}


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Lea thinks that the mill is in Lima.", Attribution("the mill is in Lima", "Lea", 0.6)),
        ("The mill is in Lima, Lea says.", Attribution("The mill is in Lima", "Lea")),
        ("According to Ann Mory, the mill is in Lima.", Attribution("the mill is in Lima", "Ann Mory")),
        ("Rumor has it that the mill is in Lima.", Attribution("the mill is in Lima", "", 0.1)),
        ("Since then the mill has moved to Lima.", Attribution("the mill has moved to Lima", "", None, True)),
        ("Omar wrote a letter to the mill.", Attribution("Omar wrote a letter to the mill")),
        ("", Attribution("")),
    ],
)
def test_who_says_what_and_how_surely(sentence, said):
    assert parse_attribution(sentence) == said


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("At the Marlow & Finch shop, Omar bought a lamp in 1999.", ["Marlow & Finch", "Omar", "1999"]),
        ("Which town did May's aunt Zoë Łukasz leave?", ["May", "Zoë Łukasz"]),
        ("Will met Will.", ["Will"]),  # a name that is a common word is one where no sentence begins with it
        ("The Duke of Kent saw the sea. It was cold.", ["Duke of Kent"]),
        ("nothing is named here", []),
    ],
)
def test_names(text, names):
    assert [mention.name for mention in mentions(text)] == names


@pytest.mark.parametrize("harder", HARDER)
def test_statements_of_test_worlds_are_read_as_they_were_meant(harder):
    settings = settings_for("semantic", "default").model_copy(update=HARDER[harder])
    right, wanted, read_as_known = 0, 0, 0
    for world in cut(drawn_worlds("semantic", "default", 30, 77, "test", settings), 30):
        for fact, trace in zip(world.facts, passages_of(world), strict=True):
            read_statement = read(trace)
            known = read_statement.relation is not None and read_statement.relation.name.split(" <")[0].startswith(tuple(FORMS))
            read_as_known += known
            if fact.schema_fit:
                wanted += 1
                right += (
                    known
                    and {read_statement.head, read_statement.tail} == expected(fact.slots)
                    and (not fact.teller or read_statement.teller == fact.teller)
                )
    assert right >= 0.99 * wanted
    assert right >= 0.99 * read_as_known
    assert wanted > 200


def expected(slots):
    """The two names of a fact: a person's friend or firm, or a firm's city."""
    first = slots["firm"] if "city" in slots else slots["who"]
    return {name.casefold() for name in (first, slots.get("city") or slots.get("friend") or slots["firm"])}


@pytest.mark.parametrize("text", ["Celine works for the Whitby company.", "The Whitby company employs Celine.", "Whitby employs Celine."])
def test_who_works_is_the_head_whichever_name_comes_first(text):
    read_statement = read(Trace("w", "f", text, time=1, id=1))
    assert read_statement.key and read_statement.key[:3] == ("celine", "works for", "whitby")


PARTS = ("ash", "ashe", "bell", "belle", "cole", "coll", "dale", "dales", "finch", "fitch")


def looked_up(name, known):
    """The same by a look at all."""
    if name in known:
        return name
    part = [other for other in known if set(name.split()) <= set(other.split()) or set(other.split()) <= set(name.split())]
    best = max((spelling(name, other), other) for other in known)
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
    compared = set()

    class Recording(TextSimilarity):
        def words(self, asked, known):
            compared.update(known)
            return super().words(asked, known)

    Search(Graph.of(traces(*CHAIN, "Kim has a zeppelin from Max.")), Recording()).best("In which city did Omar buy a lamp?")
    assert "lamp" in compared
    assert "zeppelin" not in compared
