"""What a trace says is read back to its slots and asked for in words that no suite uses; of other texts what they say is asked."""

from dataclasses import replace
from random import Random

import pytest

from hippo_core.methods.base import Observation
from hippo_core.store.trace import Trace
from hippo_core.suites import wording
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Split
from hippo_core.training.consolidation.rehearsal import FORMS, RESTATED, read_event, rehearse, restatements
from hippo_core.training.consolidation.texts import GAP, sentences, spans

SUITES = [("episodic", "base", 40), ("episodic_cross", "default", 40), ("consolidation", "default", 40), ("consolidation", "hard", 40)]
NOTE = "The boiler man comes on Tuesday. Marek Nowak pays 45 for it! The rest is hers."


def facts(suite, profile, n, split: Split = "val"):
    return [fact for world in worlds(suite, profile, n, 1337, split) for fact in world.facts]


def asked(trace, wordings=20, seed=0):
    return rehearse(Random(seed), trace, wordings)


@pytest.mark.parametrize(("suite", "profile", "n"), SUITES)
def test_every_fact_is_read_back_to_its_slots(suite, profile, n):
    for fact in facts(suite, profile, n):
        event_and_words = read_event(fact.text)
        assert event_and_words, fact.text
        event, words = event_and_words
        assert words.slots() == fact.slots, fact.text
        assert words.action in event.action and words.where in event.where and event.when == (words.preposition, words.when)
        assert words.what in (event.what or (None,))


@pytest.mark.parametrize(
    "text", [NOTE, "On Friday, Carla met a guitar at the market.", "Carla sold a guitar at the market on Friday, they say."]
)
def test_another_text_is_no_event(text):
    assert read_event(text) is None


@pytest.mark.parametrize(("suite", "profile", "n"), SUITES)
def test_no_question_of_a_suite_is_rehearsed(suite, profile, n):
    drawn = list(worlds(suite, profile, n, 1337, "val"))
    rehearsed = {
        question.question for world in drawn for fact in world.facts[:12] for question in asked(Observation.of(fact).trace(id=1), 40)
    }
    assert len(rehearsed) > 100
    assert not rehearsed & {item.question for world in drawn for item in world.items}


def test_no_form_reads_like_one_of_the_suites():
    def ends(form):
        bare = form.replace("{rest}", "").replace("{first}", "")
        return bare[0].upper() + bare[1:]

    suites = {ends(form) for forms in (wording.QUESTION_FORMS, wording.HELD_OUT_FORMS) for kind in forms.values() for form in kind}
    assert FORMS.keys() == wording.QUESTION_FORMS.keys()
    assert not suites & {ends(form) for forms in FORMS.values() for form in forms}


def test_answers_are_the_slots_of_the_trace_and_follow_its_words():
    trace = Trace("w", "f", "On Friday, Carla sold a guitar at the market.", id=3)
    answers = {rehearsed.answer for rehearsed in asked(trace, 40)}
    assert answers == {"Carla", "guitar", "market", "Friday"}
    other = {rehearsed.answer for rehearsed in asked(replace(trace, text=trace.text.replace("market", "harbor")), 40)}
    assert other == {"Carla", "guitar", "harbor", "Friday"}
    assert {rehearsed.trace for rehearsed in asked(trace)} == {3}


def test_no_question_holds_its_answer():
    for fact in facts("episodic", "base", 20):
        assert all(rehearsed.answer not in rehearsed.question.split() for rehearsed in asked(Observation.of(fact).trace(id=1)))


def test_a_text_that_names_nothing_gives_no_question():
    empty = Trace("w", "f", "the rest is hers, and so on.")
    assert asked(empty) == restatements(empty) == []


def test_a_restatement_says_all_that_the_trace_says_of_its_cue():
    trace = Trace("w", "f", "On Friday, Carla sold a guitar at the market.", id=3)
    rehearsals = restatements(trace)
    assert len({rehearsed.question for rehearsed in rehearsals}) == 2 * len(RESTATED)
    assert {(rehearsed.trace, rehearsed.answer) for rehearsed in rehearsals} == {(3, trace.text)}
    assert all(("Carla" in rehearsed.question) != ("whoever sold a guitar" in rehearsed.question) for rehearsed in rehearsals)
    of_note = {rehearsed.question: rehearsed.answer for rehearsed in restatements(Trace("w", "f", NOTE))}
    assert of_note["What is known about Marek Nowak?"] == "Marek Nowak pays 45 for it!"


def test_questions_differ_and_follow_from_the_seed():
    trace = Trace("w", "f", "Carla sold a guitar at the market on Friday.")
    rehearsals = asked(trace)
    assert len({rehearsed.question for rehearsed in rehearsals}) == 20
    assert rehearsals == asked(trace) != asked(trace, seed=1)
    assert len(asked(trace, 5)) == 5


TEXT = "The boiler man comes on Tuesday. Marek Nowak pays 45 for the old pump in the cellar! The rest is left to her."
AFTER, ABOUT, FILL = "What does the text say after: ", "What does the text about ", "What belongs in the gap? "


def asked_of_text(text=TEXT, wordings=150, seed=0):
    return rehearse(Random(seed), Trace("w", "f", text, id=7), wordings)


def test_names_numbers_phrases_and_endings_are_asked_for():
    names, phrases, endings = ([span.text for span in kind] for kind in spans(TEXT))
    assert {"Tuesday", "Marek Nowak", "45"} <= set(names)
    assert {"the old pump", "the cellar", "The boiler man comes"} <= set(phrases)
    assert {"the old pump in the cellar", "left to her"} <= set(endings)
    assert {rehearsed.answer for rehearsed in asked_of_text()} >= {*names, *phrases, *endings} - {"The"}


def test_a_gap_filled_with_its_answer_is_a_piece_of_the_text():
    gaps = [rehearsed for rehearsed in asked_of_text() if rehearsed.question.startswith(FILL)]
    assert len({rehearsed.question for rehearsed in gaps}) > 10
    for rehearsed in gaps:
        assert rehearsed.question.removeprefix(FILL).replace(GAP, rehearsed.answer, 1) in TEXT


def test_a_sentence_is_the_answer_of_the_one_before_it_and_of_what_it_names():
    first, second, third = sentences(TEXT)
    questions = {rehearsed.question: rehearsed.answer for rehearsed in asked_of_text()}
    assert questions[AFTER + first] == second and questions[AFTER + second] == third
    assert questions[ABOUT + "Marek Nowak say?"] == second


def test_what_is_rehearsed_follows_the_text():
    changed = TEXT.replace("45", "62").replace("pump", "kettle")
    answers = {rehearsed.answer for rehearsed in asked_of_text(changed)}
    assert {"62", "the old kettle"} <= answers and not {"45", "the old pump"} & answers
    assert all(rehearsed.answer in changed for rehearsed in asked_of_text(changed))


def test_one_sentence_is_not_restated():
    assert not [
        rehearsed for rehearsed in asked_of_text("Marek Nowak pays 45 for the old pump.") if rehearsed.question.startswith((AFTER, ABOUT))
    ]
