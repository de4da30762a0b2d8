"""Lessons of passages: answers stand in what is shown, what is not shown is unknown, and no article of another split is ever seen."""

from random import Random

import pytest

from hippo_core.results.scores import normalise
from hippo_core.suites.natural import squad
from hippo_core.text_files import read_text, why_missing
from hippo_core.training import readings
from hippo_core.training.lessons import UNKNOWN

SPLITS = ("train", "val", "test")


@pytest.fixture(autouse=True)
def fresh():
    """Passages are kept for each split; a test may have other ones."""
    readings.passages.cache_clear()
    yield
    readings.passages.cache_clear()


def lessons_of(split, count=150):
    return [readings.readings(Random(number), 8, split) for number in range(count)]


def test_answers_stand_in_their_passage_and_unknown_ones_in_none(made_up_texts):
    lessons = lessons_of("train")
    right = {question: answer for passage in readings.passages("train") for question, answer in passage.questions}
    for lesson in lessons:
        told = f" {normalise(' '.join(text for text, _ in lesson.facts))} "
        for branch in lesson.branches:
            if branch.answer == UNKNOWN:
                assert f" {normalise(right[branch.question])} " not in told and not branch.gold and not branch.guided
            else:
                assert branch.answer == right[branch.question] and branch.answer in lesson.facts[branch.gold[0]][0]
    share = sum(any(branch.answer == UNKNOWN for branch in lesson.branches) for lesson in lessons) / len(lessons)
    assert 0.25 < share < 0.45
    assert {len(lesson.facts) for lesson in lessons} == {1, 2, 3, 4, 5}


def test_a_long_passage_is_cut_between_sentences_and_keeps_the_answer(made_up_texts):
    long = [passage for passage in readings.passages("train") if len(passage.text.encode()) > readings.MOST_BYTES]
    assert long
    kept = set()
    for number in range(40):
        passage = Random(number).choice(long)
        part = readings.excerpt(Random(number), passage)
        assert part.text in passage.text and part.text.endswith(".") and part.text[0].isupper()
        assert len(part.text.encode()) <= readings.MOST_BYTES and part.questions
        assert all(answer in part.text for _, answer in part.questions)
        kept.add(len(part.questions))
    assert kept == {1, 2}  # what the cut took away is not asked


def test_a_lesson_hangs_on_its_seed(made_up_texts):
    assert lessons_of("train", 5) == lessons_of("train", 5)


@pytest.mark.parametrize("texts", ["made up", "people's"])
def test_no_article_is_in_two_splits_and_none_of_validation_or_test_in_a_lesson_for_training(texts, request):
    if texts == "made up":
        request.getfixturevalue("made_up_texts")
    elif reason := why_missing([squad.FILE]):
        pytest.skip(reason)
    everything = squad.parse(read_text(squad.FILE))
    articles = {split: {article.title for article in squad.of_split(everything, split)} for split in SPLITS}
    assert not articles["train"] & (articles["val"] | articles["test"]) and not articles["val"] & articles["test"]
    told = {title: " ".join(" ".join(text for text, _ in article.passages).split()) for article in everything for title in [article.title]}
    asked = {article.title: {question for _, some in article.passages for question, _ in some} for article in everything}
    for split in ("train", "val"):
        known = "\n".join(told[title] for title in articles[split])
        questions = set().union(*(asked[title] for title in articles[split]))
        for lesson in lessons_of(split, 100):
            assert all(text in known for text, _ in lesson.facts)
            assert {branch.question for branch in lesson.branches} <= questions
