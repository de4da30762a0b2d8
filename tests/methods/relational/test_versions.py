"""Which version of a fact holds: in words that nothing was written for, and without touching what only looks alike."""

import pytest

from hippo_core.methods.relational.path_search import PathSearch
from hippo_core.methods.relational.versions import current_first
from tests.methods.asking import needs_minilm
from tests.methods.relational.test_graph import traces

LIVES = ("Nils Farrow lives in Brent.", "Ada Moor lives in Brent.", "Nils Farrow lives in Skelby.")
CEO = ("The chief executive of Borvik Shipping is Lena Marsh.", "The chief executive of Borvik Shipping is Otto Penn.")


def first(question, texts, ranked, count=1):
    """The first of a ranking of these, given by their places in order of telling, and what it replaced."""
    stored = traces(*texts)
    order, replaced = current_first(question, [stored[index] for index in ranked], count)
    assert sorted(order) == list(range(len(ranked)))
    return [texts[ranked[index]] for index in order], [trace.text for trace in replaced]


@needs_minilm
@pytest.mark.parametrize(
    ("question", "told"),
    [("Where does Nils Farrow live?", LIVES), ("Who is the chief executive of Borvik Shipping?", CEO)],
    ids=["lives", "leads"],
)
@pytest.mark.parametrize("rule", ["words", "reading"])
def test_what_was_told_later_stands_first_and_says_what_it_replaced(question, told, rule, monkeypatch):
    if rule == "reading":
        monkeypatch.setattr("hippo_core.methods.relational.versions.LIKE", 2.0)
    else:
        monkeypatch.setattr(PathSearch, "standing", lambda search, asked, number: (number, ()))
    order, replaced = first(question, told, range(len(told)))
    assert order[0] == told[-1] and order[-1] == told[0] and replaced == [told[0]]
    order, replaced = first(question, told[::-1], range(len(told)))
    assert order[0] == told[0] and replaced == [told[-1]]


@needs_minilm
def test_nothing_replaces_what_is_of_another_name_or_of_another_matter():
    assert first("Where does Ada Moor live?", LIVES, (1, 0, 2)) == ([LIVES[1], LIVES[0], LIVES[2]], [])
    events = ("On Monday, Lara sold a guitar at the market.", "In May, Lara painted a boat at the harbor.")
    assert first("What did Lara sell at the market?", events, (0, 1)) == ([*events], [])


@needs_minilm
def test_of_several_that_are_shown_none_is_out_of_date():
    order, _ = first("Where does Nils Farrow live?", LIVES, (0, 1, 2), count=3)
    assert order == [LIVES[2], LIVES[1], LIVES[0]]


@needs_minilm
def test_a_question_that_names_nothing_and_no_traces_change_nothing():
    assert current_first("Who?", (), 1) == ([], ())
    assert first("Who lives there?", LIVES, (2, 0, 1)) == ([LIVES[2], LIVES[0], LIVES[1]], [])


@needs_minilm
def test_a_text_of_several_sentences_is_no_statement_and_stays():
    texts = (LIVES[0], "Nils Farrow lives in Skelby. He likes it there.")
    assert first("Where does Nils Farrow live?", texts, (0, 1)) == ([*texts], [])
    assert first("Where does Nils Farrow live?", texts, (1, 0)) == ([*texts[::-1]], [])


@needs_minilm
def test_a_correction_is_not_replaced_by_what_it_corrects():
    texts = ("Cameron lives in Berlin.", "No, that was wrong: Cameron lives in Dublin.")
    assert first("In which city does Cameron live?", texts, (1, 0))[0][0] == texts[1]


def test_statements_that_share_little_are_not_read(monkeypatch):
    monkeypatch.setattr("hippo_core.methods.relational.versions.fitted_reader", lambda device: pytest.fail("they were read"))
    texts = (
        "In March, Denise unlocked a guitar at the airport.",
        "In May, Denise repaired a notebook at the bridge.",
        "In June, Omar sold a lamp at the market.",
        "In May, Lea painted a boat at the harbor.",
    )
    assert first("What did Denise unlock?", texts, range(4)) == ([*texts], [])


@needs_minilm
def test_what_is_no_name_is_replaced_by_the_later_statement_in_nearly_the_same_words():
    texts = ("Nils Farrow plays the trumpet.", "Ada Moor plays the trumpet.", "Nils Farrow plays the oboe.")
    order, replaced = first("What instrument does Nils Farrow play?", texts, range(3))
    assert (order[0], order[-1], replaced) == (texts[2], texts[0], [texts[0]])
    order, replaced = first("What does Nils Farrow play?", texts[::-1], range(3))
    assert (order[0], replaced) == (texts[0], [texts[2]])


@needs_minilm
def test_what_lacks_a_word_of_the_question_replaces_nothing():
    texts = ("Kim drinks coffee in the evening.", "Kim drinks tea in the morning.")
    assert first("What does Kim drink in the evening?", texts, (0, 1)) == ([*texts], [])
