"""The relational memory as a method: what it shows for a question, from what it was taught; and its rival over the same names."""

import pytest

from hippo_core.delivery.types import Question
from hippo_core.evaluation.asked import penalty_of
from hippo_core.methods.base import Query
from hippo_core.models.abstention import ALWAYS, NEVER
from tests.methods.asking import bound
from tests.methods.relational.test_graph import CHAIN, traces

LAMP = "In which city did Omar buy a lamp?"


def retrieve(tiny, texts, question=LAMP, name="memory/sgc_rss", **overrides):
    texts = traces(*texts)
    method = bound(name, tiny, **{"encoder": "own", **overrides})
    return method, method.open(texts)(Query(question, tuple(trace.source for trace in texts)))


def test_a_path_is_shown_as_one_text_in_its_own_order_and_answered(tiny):
    texts = [*reversed(CHAIN)]  # the order of telling is not the path's
    method, retrieved = retrieve(tiny, texts)
    assert [trace.text for trace in retrieved.shown] == [CHAIN[1], CHAIN[3]]
    assert retrieved.together
    assert retrieved.confidence > 0.5
    [kv] = method.delivery.ask([Question(LAMP, retrieved.shown, together=True)], 4)
    [text] = bound("memory/sgc_rss", tiny, encoder="own", delivery="text").delivery.ask([Question(LAMP, retrieved.shown)], 4)
    assert kv.text == text.text
    assert kv.prompt_tokens == text.prompt_tokens  # one block, as the prompt has it
    apart = Question(LAMP, retrieved.shown)
    assert len(apart.blocks) == 2
    assert len(Question(LAMP, retrieved.shown, together=True).blocks) == 1


def test_what_was_not_taught_for_a_question_is_not_shown(tiny):
    stored = traces(*CHAIN)
    method = bound("memory/sgc_rss", tiny, encoder="own")
    retrieved = method.open(stored)(Query(LAMP, tuple(trace.source for trace in stored if trace.text != CHAIN[3])))
    assert CHAIN[3] not in [trace.text for trace in retrieved.shown]


UNTOLD = {
    "where the firm is": (CHAIN[3], "The Finch shop sends letters to Lima."),
    "the link": (CHAIN[1], "Omar bought a ring at the Finch shop."),
    "a like event in its place": (CHAIN[1], "Omar looked at a lamp at the Finch shop."),
}


@pytest.mark.parametrize(("told", "instead"), UNTOLD.values(), ids=UNTOLD)
def test_a_path_around_what_was_never_told_is_unsure_and_unknown(tiny, told, instead):
    method, full = retrieve(tiny, CHAIN)
    _, retrieved = retrieve(tiny, [instead if text == told else text for text in CHAIN])
    assert full.confidence > 0.5 > retrieved.confidence
    assert [penalty_of(method, result) for result in (full, retrieved)] == [NEVER, ALWAYS]


def test_a_name_that_the_path_does_not_meet_makes_it_less_sure(tiny):
    asked = LAMP, LAMP.replace("Omar", "the friend of Omar and Zuleika")
    here, elsewhere = (retrieve(tiny, CHAIN, question) for question in asked)
    assert elsewhere[1].confidence < here[1].confidence
    searches = [method.search(traces(*CHAIN)) for method, _ in (here, elsewhere)]
    assert [search.best(question)[0].evidence["met"] for search, question in zip(searches, asked, strict=True)] == [1.0, 0.5]


def test_without_a_path_the_likest_statements_are_shown_and_the_model_decides(tiny):
    _, retrieved = retrieve(tiny, CHAIN, "who sends letters?")
    assert CHAIN[7] in [trace.text for trace in retrieved.shown]
    assert (len(retrieved.shown), retrieved.together, retrieved.confidence) == (3, False, None)


def test_it_says_nothing_where_it_is_switched_off_or_was_told_nothing(tiny):
    assert retrieve(tiny, CHAIN, traces="off")[1].shown == ()
    assert retrieve(tiny, [])[1].shown == ()


def test_the_drawing_shows_the_path_and_what_lost(tiny):
    texts = traces(*CHAIN, "Later the Finch shop moved to Oslo.", "Rumor has it that the Finch shop is in Bath & Bow.")
    [picture] = bound("memory/sgc_rss", tiny, encoder="own").pictures(LAMP, None, texts)
    assert "Later the Finch shop moved to Oslo." in picture.svg
    assert 'text-decoration="line-through">The Finch shop is in Lima.' in picture.svg
    assert "Bath &amp; Bow" in picture.svg


def test_a_walk_over_names_brings_the_second_fact(tiny):
    _, searched = retrieve(tiny, CHAIN, name="baselines/rag_graph", seeds=1)
    ranks = {trace.text: rank for rank, trace in enumerate(searched.ranking)}
    assert ranks[CHAIN[3]] < ranks[CHAIN[5]]  # named by the best hit
    altered = [text.replace("Finch shop is in", "Quill shop is in") for text in CHAIN]
    _, other = retrieve(tiny, altered, name="baselines/rag_graph", seeds=1)
    assert {trace.text: rank for rank, trace in enumerate(other.ranking)}[altered[3]] > ranks[CHAIN[3]]


TEAM = ("Ulla wears the shirt of Tarn Rovers.", "The Ost winds past Larkhill.", "Tarn Rovers do their drills at Larkhill.")


def test_a_path_in_words_of_no_pattern_is_told_by_its_end_and_follows_the_store(tiny):
    question = "Where do the team of Ulla train?"
    _, retrieved = retrieve(tiny, TEAM, question)
    assert [trace.text for trace in retrieved.delivered] == ["Where do the team of Ulla train: Larkhill."]
    _, altered = retrieve(tiny, [text.replace("Larkhill", "Saxby") for text in TEAM], question)
    assert altered.delivered[0].text.endswith(": Saxby.")
    _, own = retrieve(tiny, TEAM, question, **{"relational.wording": "own"})
    assert [trace.text for trace in own.delivered] == [TEAM[0], TEAM[2]]


def test_a_path_that_patterns_know_is_told_by_its_statements(tiny):
    assert [trace.text for trace in retrieve(tiny, CHAIN)[1].delivered] == [CHAIN[1], CHAIN[3]]
    assert [trace.text for trace in retrieve(tiny, CHAIN, **{"relational.wording": "question"})[1].delivered] == [f"{LAMP[:-1]}: Lima."]


def test_a_path_can_be_told_without_its_tellers(tiny):
    texts = (CHAIN[1], CHAIN[3].replace("The", "Lea says that the", 1), *CHAIN[4:])
    retrieved = retrieve(tiny, texts, **{"relational.wording": "plain"})[1].delivered
    assert [trace.text for trace in retrieved] == [f"{CHAIN[1]} {CHAIN[3]}"]


def test_what_held_at_the_time_that_is_asked_about_is_told_in_the_questions_words(tiny):
    texts = (
        "The Finch shop is in Lima.",
        "The Marlow shop is in Bath.",
        "In March the Finch shop moved to Oslo.",
        "Later the Marlow shop moved to Riga.",
    )
    question = "In which city was the Finch shop in February?"
    assert [trace.text for trace in retrieve(tiny, texts, question)[1].delivered] == ["In which city was the Finch shop in February: Lima."]
    altered = [text.replace("March", "January") for text in texts]
    assert retrieve(tiny, altered, question)[1].delivered[0].text == "In which city was the Finch shop in February: Oslo."
    now = "In which city is the Finch shop?"
    assert [trace.text for trace in retrieve(tiny, texts, now)[1].delivered] == [texts[2]]
