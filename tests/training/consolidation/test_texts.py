"""What is rehearsed of a text that people wrote is made from that text alone, and follows it."""

from random import Random

from hippo_core.store.trace import Trace
from hippo_core.training.consolidation.rehearsal import rehearse
from hippo_core.training.consolidation.texts import GAP, sentences, spans

TEXT = "The boiler man comes on Tuesday. Marek Nowak pays 45 for the old pump in the cellar! The rest is left to her."
AFTER, ABOUT, FILL = "What does the text say after: ", "What does the text about ", "What belongs in the gap? "


def asked(text=TEXT, wordings=150, seed=0):
    return rehearse(Random(seed), Trace("w", "f", text, id=7), wordings)


def test_names_numbers_phrases_and_endings_are_asked_for():
    names, phrases, endings = ([span.text for span in kind] for kind in spans(TEXT))
    assert {"Tuesday", "Marek Nowak", "45"} <= set(names)
    assert {"the old pump", "the cellar", "The boiler man comes"} <= set(phrases)
    assert {"the old pump in the cellar", "left to her"} <= set(endings)
    assert {rehearsed.answer for rehearsed in asked()} >= {*names, *phrases, *endings} - {"The"}


def test_a_gap_filled_with_its_answer_is_a_piece_of_the_text():
    gaps = [rehearsed for rehearsed in asked() if rehearsed.question.startswith(FILL)]
    assert len({rehearsed.question for rehearsed in gaps}) > 10
    for rehearsed in gaps:
        assert rehearsed.question.removeprefix(FILL).replace(GAP, rehearsed.answer, 1) in TEXT


def test_a_sentence_is_the_answer_of_the_one_before_it_and_of_what_it_names():
    first, second, third = sentences(TEXT)
    questions = {rehearsed.question: rehearsed.answer for rehearsed in asked()}
    assert questions[AFTER + first] == second and questions[AFTER + second] == third
    assert questions[ABOUT + "Marek Nowak say?"] == second


def test_what_is_rehearsed_follows_the_text():
    changed = TEXT.replace("45", "62").replace("pump", "kettle")
    answers = {rehearsed.answer for rehearsed in asked(changed)}
    assert {"62", "the old kettle"} <= answers and not {"45", "the old pump"} & answers
    assert all(rehearsed.answer in changed for rehearsed in asked(changed))


def test_one_sentence_is_not_restated():
    assert not [rehearsed for rehearsed in asked("Marek Nowak pays 45 for the old pump.") if rehearsed.question.startswith((AFTER, ABOUT))]
