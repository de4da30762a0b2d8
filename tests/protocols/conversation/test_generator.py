"""Drawn dialogues: the balance of salience and position, verbatim answers, corrections, no two answers to a question."""

from collections import Counter

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import KEY_TYPES, POSITIONS, SALIENCES, check
from hippo_core.protocols.conversation.generator import CATEGORIES, KINDS, LENGTHS, STRESS, generate
from hippo_core.protocols.conversation.words import holds


@pytest.fixture(scope="module")
def dialogues():
    return generate(63)


def test_salience_and_position_are_crossed_in_balance(dialogues):
    cells = Counter((question.salience, question.position) for one in dialogues for question in one.questions)
    assert cells == {(salience, position): 35 for salience in SALIENCES for position in POSITIONS}


@pytest.mark.parametrize("column", ["kind", "category"])
def test_each_cell_has_each_kind_and_category_alike(dialogues, column):
    dialogues = dialogues[:54]
    counts = Counter(
        (question.salience, question.position, question.kind if column == "kind" else one.category)
        for one in dialogues
        for question in one.questions
    )
    assert len(counts) == 27 and max(counts.values()) - min(counts.values()) <= 1


def test_answers_are_verbatim_where_position_and_stress_say(dialogues):
    for one in dialogues:
        check(one)
        for question in one.questions:
            [place] = one.places(question.evidence)
            turn = one.turns[place]
            assert holds(turn.text, question.answer) and turn.key in KEY_TYPES
            assert POSITIONS[3 * place // len(one.turns)] == question.position
            assert turn.text.startswith(STRESS[question.salience].partition("{")[0])


def test_a_correction_comes_after_what_it_corrects(dialogues):
    corrections = [(one, question) for one in dialogues for question in one.questions if question.kind == "correction"]
    assert len(corrections) == 99
    for one, question in corrections:
        [place] = one.places(question.evidence)
        [before] = one.places(one.turns[place].corrects)
        assert before < place and holds(one.turns[before].text, question.refuted[0]) and question.refuted[0] != question.answer


def test_only_the_evidence_and_what_it_corrects_tell_of_a_person_and_a_relation(dialogues):
    for one in dialogues:
        texts = Counter(turn.text for turn in one.turns if turn.key)
        assert max(texts.values()) == 1


def test_lengths_categories_and_seeds(dialogues):
    assert Counter(len(one.turns) for one in dialogues) == dict.fromkeys(LENGTHS, 9)
    assert Counter(one.category for one in dialogues) == dict.fromkeys(CATEGORIES, 21)
    assert {question.kind for one in dialogues for question in one.questions} == set(KINDS)
    assert generate(2) == dialogues[:2] and generate(2, seed=1) != dialogues[:2]
    test, val = ({turn.text for one in generate(6, split=split) for turn in one.turns if turn.key == "fact"} for split in ("test", "val"))
    assert not test & val


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 1, "lengths": [8]}, {"n": 1, "lengths": []}])
def test_what_cannot_be_drawn_is_said(wrong):
    with pytest.raises(LabError, match="16 turns"):
        generate(**wrong)
