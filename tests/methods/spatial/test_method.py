"""The spatial memory as a method: what it shows for a question, and in which words."""

import pytest

from hippo_core.delivery.types import Question
from hippo_core.evaluation.asked import penalty_of
from hippo_core.methods.base import Query
from hippo_core.methods.controls import open_controlled
from hippo_core.models.abstention import ALWAYS
from hippo_core.suites.types import Item
from tests.methods.asking import bound
from tests.methods.relational.test_graph import traces
from tests.methods.spatial.test_maps import QUESTION, SQUARE

TEXTS = [
    *SQUARE,
    "There is a lamp at the mill.",
    "A hedge blocks the way north of the mill.",
    "The milk round goes from the pier: west, north.",
]


def retrieve(tiny, texts=TEXTS, question=QUESTION, **overrides):
    texts = traces(*texts)
    method = bound("memory/smpd", tiny, **{"encoder": "own", **overrides})
    return method, method.open(texts)(Query(question, tuple(trace.source for trace in texts)))


def asked(method, retrieved, question=QUESTION):
    [answer] = method.delivery.ask([Question(retrieved.rephrased or question, retrieved.delivered, float("inf"))], 8)
    return answer.text


def test_a_way_reaches_the_model_as_one_sentence_and_comes_back(tiny):
    method, retrieved = retrieve(tiny)
    assert [trace.text for trace in retrieved.shown] == [SQUARE[3], SQUARE[2]]  # what it rests on, along the way
    assert [trace.text for trace in retrieved.delivered] == ["The barn walk goes from the mill: east, north."]
    assert (retrieved.confidence, retrieved.columns["planned_steps"], retrieved.columns["places"]) == (1.0, 2.0, 4.0)
    assert asked(method, retrieved) == "east, north"


def test_the_question_may_stay_as_it_is(tiny):
    _, retrieved = retrieve(tiny, **{"spatial.wording": "question"})
    assert retrieved.rephrased == ""
    assert retrieved.restated == "Which directions lead from the mill to the barn: east, north."


def test_the_answer_follows_what_is_stored(tiny):
    method, retrieved = retrieve(tiny, [*SQUARE, "The lane between the mill and the pier is closed."])
    assert asked(method, retrieved) == "north, east"


@pytest.mark.parametrize(("goal", "answer"), [("fen", "none"), ("mill", "stay")])
def test_the_model_says_that_no_way_leads_there_and_that_one_is_there(tiny, goal, answer):
    question = f"Which directions lead from the mill to the {goal}?"
    method, retrieved = retrieve(
        tiny, [*SQUARE, "The fen is north of the barn.", "The lane between the fen and the barn is closed."], question
    )
    assert asked(method, retrieved, question) == answer


LACKING = {
    "a place that was never named": "Which directions lead from the mill to the lodge?",
    "a way that was never told": "Which directions lead from the mill to the fen?",
    "how far it is there": "How many steps is it from the mill to the fen?",
    "a side of which nothing was told": "Which place is west of the mill?",
    "a thing that was never told": "What is there at the pier?",
    "a route that was never told": "How does the bread round go from the mill?",
    "somebody who was never told of": "Where is Nora now, having left the mill?",
}


@pytest.mark.parametrize("question", LACKING.values(), ids=LACKING)
def test_what_the_map_is_asked_for_and_does_not_hold_is_unknown(tiny, question):
    method, retrieved = retrieve(tiny, [*TEXTS, "The fen is north of the dune."], question)
    assert retrieved.confidence == 0
    assert penalty_of(method, retrieved) == ALWAYS
    more = ("The lodge is east of the barn.", "The fen is east of the barn.", "The cave is west of the mill.", "The pier holds a ring.")
    walk = ("The bread round goes from the mill: east.", "Nora sets out from the mill.", "Nora walks east.")
    assert retrieve(tiny, [*TEXTS, *more, *walk], question)[1].confidence == 1


def test_where_no_link_was_told_the_map_is_not_asked(tiny):
    assert retrieve(tiny, ["There is a lamp at the mill."], QUESTION)[1].confidence is None


def test_statements_are_shown_as_they_are_where_the_map_has_nothing_to_say(tiny):
    _, retrieved = retrieve(tiny, question="Who was seen at the mill?")
    assert [trace.text for trace in retrieved.delivered] == ["There is a lamp at the mill."]
    assert retrieved.confidence is None
    _, route = retrieve(tiny, question="Tell me the milk round from the pier.")
    assert (route.delivered, route.rephrased) == (route.shown, "How does the milk round go from the pier?")
    _, other = retrieve(tiny, question="Who is Ben?")
    assert (len(other.shown), other.restated, other.confidence) == (3, "", None)


@pytest.mark.parametrize("question", ["What is there at the mill?", "What did someone leave at the mill?", "Which thing lies at the mill?"])
@pytest.mark.parametrize(("thing", "said"), [("a lamp", "lamp"), ("an axe", "axe")])
def test_a_thing_is_looked_up_in_the_words_of_one_sentence_whatever_the_question_s(tiny, question, thing, said):
    texts = [*SQUARE[:2], f"Someone left {thing} at the mill."]
    _, retrieved = retrieve(tiny, texts, question)
    assert (retrieved.restated, retrieved.rephrased, retrieved.answer) == (f"The mill holds {thing}.", "What does the mill hold?", said)
    assert [trace.text for trace in retrieved.shown] == texts[2:] and retrieved.confidence == 1.0


@pytest.mark.parametrize("told", ["Rain fell at the mill.", "The mill holds a lamp and a broom.", "Ann left an old lamp at the mill."])
def test_a_thing_is_not_guessed_where_a_statement_does_not_name_one_alone(tiny, told):
    _, retrieved = retrieve(tiny, [*SQUARE[:2], told], "What does the mill hold?")
    assert (retrieved.restated, [trace.text for trace in retrieved.shown]) == ("", [told])
    _, two = retrieve(tiny, [*SQUARE[:2], "There is a lamp at the mill.", "There is a broom at the mill."], "What does the mill hold?")
    assert (two.restated, len(two.shown)) == ("", 2)


def test_it_says_nothing_where_it_is_switched_off_or_was_told_nothing(tiny):
    assert retrieve(tiny, traces="off")[1].shown == ()
    assert retrieve(tiny, [])[1].shown == ()


def under(control, tiny, gold, **overrides):
    own = traces(*TEXTS)
    sources = tuple(trace.source for trace in own)
    item = Item("i", own[0].world, QUESTION, ("east, north",), tuple(sources[number] for number in gold), "grid_path", taught=sources)
    method = bound("memory/smpd", tiny, encoder="own", control=control, **overrides)
    return open_controlled(method, own, ())(item, Query(QUESTION, sources))


def test_a_control_plans_on_the_traces_that_it_chose_and_on_no_others(tiny):
    oracle = under("oracle", tiny, (3, 2))
    assert oracle.retrieved.restated == "The barn walk goes from the mill: east, north."
    assert [trace.text for trace in oracle.opened] == [SQUARE[2], SQUARE[3]]
    part = under("oracle", tiny, (3,)).retrieved  # which does not lead to the barn
    assert (part.restated, part.confidence, [trace.text for trace in part.shown]) == ("", None, [SQUARE[3]])
    wrong = under("random", tiny, (3, 2), k=len(TEXTS))
    assert wrong.retrieved.restated == "The barn walk goes from the mill: none."  # by the well a hedge blocks the way
    assert not {SQUARE[2], SQUARE[3]} & {trace.text for trace in wrong.opened}


def test_the_drawing_shows_the_way_on_the_map(tiny):
    method, _ = retrieve(tiny)
    [picture] = method.pictures(QUESTION, None, traces(*TEXTS))
    assert picture.svg.count("<circle") == 4
    assert picture.svg.count('stroke-width="4"') == 2
    assert "east, north" in picture.reading
    assert method.pictures(QUESTION, None, traces("Ben is a friend of Anna.")) == ()
