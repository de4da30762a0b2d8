"""Drawn dialogues: the balance of salience and position, verbatim answers, corrections, no two answers to a question."""

from collections import Counter

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import KEY_TYPES, POSITIONS, SALIENCES, check, contains_words, reworded
from hippo_core.protocols.conversation.generator import CATEGORIES, KINDS, LENGTHS, STRESS, generate


@pytest.fixture(scope="module")
def dialogues():
    return generate(63)


def test_salience_and_position_are_crossed_in_balance(dialogues):
    cells = Counter((question.salience, question.position) for dialogue in dialogues for question in dialogue.questions)
    assert cells == {(salience, position): 35 for salience in SALIENCES for position in POSITIONS}


@pytest.mark.parametrize("column", ["kind", "category"])
def test_each_cell_has_each_kind_and_category_equally_often(dialogues, column):
    dialogues = dialogues[:54]
    counts = Counter(
        (question.salience, question.position, question.kind if column == "kind" else dialogue.category)
        for dialogue in dialogues
        for question in dialogue.questions
    )
    assert len(counts) == 27 and max(counts.values()) - min(counts.values()) <= 1


def test_answers_are_verbatim_where_position_and_stress_say(dialogues):
    assert reworded(dialogues) == ""
    keys = Counter(dialogue.turns[int(question.evidence[0])].key for dialogue in dialogues for question in dialogue.questions)
    assert keys.keys() == set(KEY_TYPES) and min(keys.values()) > 20
    for dialogue in dialogues:
        check(dialogue)
        for question in dialogue.questions:
            [index] = dialogue.indices(question.evidence)
            turn = dialogue.turns[index]
            assert contains_words(turn.text, question.answer) and turn.key in KEY_TYPES
            assert POSITIONS[3 * index // len(dialogue.turns)] == question.position
            assert turn.text.startswith(STRESS[question.salience].partition("{")[0])


def test_a_correction_comes_after_what_it_corrects(dialogues):
    corrections = [(dialogue, question) for dialogue in dialogues for question in dialogue.questions if question.kind == "correction"]
    assert len(corrections) == 99
    for dialogue, question in corrections:
        [index] = dialogue.indices(question.evidence)
        [before] = dialogue.indices(dialogue.turns[index].corrects)
        [refuted] = question.refuted
        assert before < index and contains_words(dialogue.turns[before].text, refuted) and refuted != question.answer


def test_only_the_evidence_and_what_it_corrects_state_a_person_and_a_relation(dialogues):
    for dialogue in dialogues:
        texts = Counter(turn.text for turn in dialogue.turns if turn.key)
        assert max(texts.values()) == 1


def test_lengths_categories_and_seeds(dialogues):
    assert Counter(len(dialogue.turns) for dialogue in dialogues) == dict.fromkeys(LENGTHS, 9)
    assert Counter(dialogue.category for dialogue in dialogues) == dict.fromkeys(CATEGORIES, 21)
    assert {question.kind for dialogue in dialogues for question in dialogue.questions} == set(KINDS)
    assert generate(2) == dialogues[:2] and generate(2, seed=1) != dialogues[:2]
    drawn = {split: generate(6, split=split) for split in ("test", "val")}
    test, val = ({turn.text for dialogue in drawn[split] for turn in dialogue.turns if turn.key == "fact"} for split in drawn)
    assert not test & val


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 1, "lengths": [8]}, {"n": 1, "lengths": []}])
def test_what_cannot_be_drawn_is_reported(wrong):
    with pytest.raises(LabError, match="16 turns"):
        generate(**wrong)
