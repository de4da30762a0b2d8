"""The relational memory as a method: what it shows for a question, from what it was taught; and its rival over the same names."""

import pytest

from hippo_core.delivery.types import Question
from hippo_core.evaluation.asked import penalty_of
from hippo_core.methods.base import Query
from hippo_core.models.abstention import ALWAYS, NEVER
from tests.methods.asking import bound
from tests.methods.relational.test_graph import CHAIN, traces

LAMP = "In which city did Omar buy a lamp?"


def brought(tiny, told, question=LAMP, name="memory/sgc_rss", **overrides):
    told = traces(*told)
    method = bound(name, tiny, **{"encoder": "own", **overrides})
    return method, method.open(told)(Query(question, tuple(trace.source for trace in told)))


def test_a_path_is_shown_as_one_text_in_its_own_order_and_answered(tiny):
    told = [*reversed(CHAIN)]  # the order of telling is not the path's
    method, found = brought(tiny, told)
    assert [trace.text for trace in found.shown] == [CHAIN[1], CHAIN[3]]
    assert found.together
    assert found.confidence > 0.5
    [kv] = method.delivery.ask([Question(LAMP, found.shown, together=True)], 4)
    [text] = bound("memory/sgc_rss", tiny, encoder="own", delivery="text").delivery.ask([Question(LAMP, found.shown)], 4)
    assert kv.text == text.text
    assert kv.prompt_tokens == text.prompt_tokens  # one block, as the prompt has it
    apart = Question(LAMP, found.shown)
    assert len(apart.blocks) == 2
    assert len(Question(LAMP, found.shown, together=True).blocks) == 1


def test_what_was_not_taught_for_a_question_is_not_shown(tiny):
    told = traces(*CHAIN)
    method = bound("memory/sgc_rss", tiny, encoder="own")
    found = method.open(told)(Query(LAMP, tuple(trace.source for trace in told if trace.text != CHAIN[3])))
    assert CHAIN[3] not in [trace.text for trace in found.shown]


UNTOLD = {
    "where the firm is": (CHAIN[3], "The Finch shop sends letters to Lima."),
    "the link": (CHAIN[1], "Omar bought a ring at the Finch shop."),
    "a like event in its place": (CHAIN[1], "Omar looked at a lamp at the Finch shop."),
}


@pytest.mark.parametrize(("told", "instead"), UNTOLD.values(), ids=UNTOLD)
def test_a_path_around_what_was_never_told_is_unsure_and_unknown(tiny, told, instead):
    method, whole = brought(tiny, CHAIN)
    _, found = brought(tiny, [instead if text == told else text for text in CHAIN])
    assert whole.confidence > 0.5 > found.confidence
    assert [penalty_of(method, one) for one in (whole, found)] == [NEVER, ALWAYS]


def test_a_name_that_the_path_does_not_meet_makes_it_less_sure(tiny):
    asked = LAMP, LAMP.replace("Omar", "the friend of Omar and Zuleika")
    here, elsewhere = (brought(tiny, CHAIN, question) for question in asked)
    assert elsewhere[1].confidence < here[1].confidence
    searches = [method.search(traces(*CHAIN)) for method, _ in (here, elsewhere)]
    assert [search.best(question)[0].evidence["met"] for search, question in zip(searches, asked, strict=True)] == [1.0, 0.5]


def test_without_a_path_the_likest_statements_are_shown_and_the_model_decides(tiny):
    _, found = brought(tiny, CHAIN, "who sends letters?")
    assert CHAIN[7] in [trace.text for trace in found.shown]
    assert (len(found.shown), found.together, found.confidence) == (3, False, None)


def test_it_says_nothing_where_it_is_switched_off_or_was_told_nothing(tiny):
    assert brought(tiny, CHAIN, traces="off")[1].shown == ()
    assert brought(tiny, [])[1].shown == ()


def test_the_drawing_shows_the_path_and_what_lost(tiny):
    told = traces(*CHAIN, "Later the Finch shop moved to Oslo.", "Rumor has it that the Finch shop is in Bath & Bow.")
    [picture] = bound("memory/sgc_rss", tiny, encoder="own").pictures(LAMP, None, told)
    assert "Later the Finch shop moved to Oslo." in picture.svg
    assert 'text-decoration="line-through">The Finch shop is in Lima.' in picture.svg
    assert "Bath &amp; Bow" in picture.svg


def test_a_walk_over_names_brings_the_second_fact(tiny):
    _, walked = brought(tiny, CHAIN, name="baselines/rag_graph", seeds=1)
    ranks = {trace.text: rank for rank, trace in enumerate(walked.ranking)}
    assert ranks[CHAIN[3]] < ranks[CHAIN[5]]  # named by the best hit
    altered = [text.replace("Finch shop is in", "Quill shop is in") for text in CHAIN]
    _, other = brought(tiny, altered, name="baselines/rag_graph", seeds=1)
    assert {trace.text: rank for rank, trace in enumerate(other.ranking)}[altered[3]] > ranks[CHAIN[3]]


TEAM = ("Ulla wears the shirt of Tarn Rovers.", "The Ost winds past Larkhill.", "Tarn Rovers do their drills at Larkhill.")


def test_a_path_in_words_of_no_pattern_is_told_by_its_end_and_follows_the_store(tiny):
    question = "Where do the team of Ulla train?"
    _, found = brought(tiny, TEAM, question)
    assert [trace.text for trace in found.delivered] == ["Where do the team of Ulla train: Larkhill."]
    _, altered = brought(tiny, [text.replace("Larkhill", "Saxby") for text in TEAM], question)
    assert altered.delivered[0].text.endswith(": Saxby.")
    _, own = brought(tiny, TEAM, question, **{"relational.wording": "own"})
    assert [trace.text for trace in own.delivered] == [TEAM[0], TEAM[2]]


def test_a_path_that_patterns_know_is_told_by_its_statements(tiny):
    assert [trace.text for trace in brought(tiny, CHAIN)[1].delivered] == [CHAIN[1], CHAIN[3]]
    assert [trace.text for trace in brought(tiny, CHAIN, **{"relational.wording": "question"})[1].delivered] == [f"{LAMP[:-1]}: Lima."]


def test_a_path_can_be_told_without_its_tellers(tiny):
    told = (CHAIN[1], CHAIN[3].replace("The", "Lea says that the", 1), *CHAIN[4:])
    found = brought(tiny, told, **{"relational.wording": "plain"})[1].delivered
    assert [trace.text for trace in found] == [f"{CHAIN[1]} {CHAIN[3]}"]


def test_what_held_at_the_time_that_is_asked_about_is_told_in_the_questions_words(tiny):
    told = (
        "The Finch shop is in Lima.",
        "The Marlow shop is in Bath.",
        "In March the Finch shop moved to Oslo.",
        "Later the Marlow shop moved to Riga.",
    )
    question = "In which city was the Finch shop in February?"
    assert [trace.text for trace in brought(tiny, told, question)[1].delivered] == ["In which city was the Finch shop in February: Lima."]
    altered = [text.replace("March", "January") for text in told]
    assert [trace.text for trace in brought(tiny, altered, question)[1].delivered] == [
        "In which city was the Finch shop in February: Oslo."
    ]
    now = "In which city is the Finch shop?"
    assert [trace.text for trace in brought(tiny, told, now)[1].delivered] == [told[2]]
