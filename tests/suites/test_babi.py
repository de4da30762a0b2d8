"""The babi suite: answers follow from the gold facts and from no fewer; the public stories are unchanged."""

from itertools import islice

import pytest

from hippo_core.errors import LabError
from hippo_core.suites import babi, lexicon, settings_for
from hippo_core.suites.babi import public
from hippo_core.suites.babi.story import BabiQuestion
from hippo_core.suites.datasets.build import load_dataset
from hippo_core.suites.draw import worlds
from hippo_core.suites.splits import SPLITS
from tests.suites.babi_reader import read
from tests.texts import needs

TASKS = sorted(babi.TASKS)
FILES = public.files(public.TASKS)


def drawn(task, n=120, split="test", **overrides):
    return list(worlds("babi", "default", n, 7, split, overrides={"tasks": [task], **overrides}))


def texts_of(world, ids):
    """The texts of facts, in order."""
    return [fact.text for fact in world.facts if fact.id in set(ids)]


@pytest.mark.parametrize("task", TASKS)
def test_the_sentences_answer_and_so_do_the_gold_facts_each_of_which_is_needed(task):
    """By a reader of the sentences."""
    for world in drawn(task):
        for item in world.items:
            assert item.kind == f"qa{task}" and item.chance <= 0.5 and len(item.gold_facts) == item.hops
            assert task > 3 or item.hops == task
            assert read(task, texts_of(world, item.window), item.question) == item.answers[0]
            assert read(task, texts_of(world, item.gold_facts), item.question) in item.answers
            for left_out in item.gold_facts:
                rest = [fact for fact in item.gold_facts if fact != left_out]
                assert read(task, texts_of(world, rest), item.question) not in item.answers


@pytest.mark.parametrize("task", TASKS)
def test_every_answer_of_a_task_occurs_and_none_is_the_rule(task):
    answers = [item.answers[0] for world in drawn(task, 240) for item in world.items]
    assert max(answers.count(answer) for answer in set(answers)) < 0.65 * len(answers)
    closed = {7: {"none", "one", "two"}, 10: {"yes", "no", "maybe"}, **{key: {"yes", "no"} for key in (6, 9, 17, 18)}}
    assert closed.get(task, set()) <= set(answers)


def test_no_statement_and_so_no_story_is_in_two_splits():
    settings = {"tasks": TASKS, "n_items": 2}
    facts = {split: {f.text for w in worlds("babi", "default", 2000, 7, split, overrides=settings) for f in w.facts} for split in SPLITS}
    assert not facts["train"] & facts["test"]
    assert not facts["train"] & facts["val"]
    assert not facts["val"] & facts["test"]


def test_training_sees_no_held_out_name_and_a_quarter_of_the_tests_has_them():
    new = set(lexicon.names(held_out=True))
    train, test = (list(worlds("babi", "default", 200, 7, split)) for split in ("train", "test"))
    assert not any(new & set(fact.slots.values()) for world in train for fact in world.facts)
    marked = [world for world in test if world.items[0].slices == ("new_name",)]
    assert all(new & set(world.facts[0].slots.values()) for world in marked)
    assert 0.15 < len(marked) / len(test) < 0.35


def test_a_story_has_as_many_questions_as_set_and_ends_with_its_last_question():
    for world in islice(worlds("babi", "all", None, 7, "val", overrides={"n_items": 3}), 60):
        assert len(world.items) == 3
        assert max(len(item.window) for item in world.items) == len(world.facts)
        for item in world.items:
            assert item.window == item.taught == tuple(fact.id for fact in world.facts[: len(item.window)])
        asked = {fact for item in world.items for fact in item.gold_facts}
        assert {fact.id for fact in world.facts if fact.asked} == asked


def test_tasks_come_in_turn():
    assert [world.items[0].kind for world in worlds("babi", "default", 6, 1337, "test")] == ["qa1", "qa2", "qa3"] * 2


def test_several_objects_are_accepted_in_any_order():
    lists = [item for world in drawn(8) for item in world.items if ", " in item.answers[0]]
    assert lists
    for item in lists:
        assert {tuple(sorted(answer.split(", "))) for answer in item.answers} == {tuple(sorted(item.answers[0].split(", ")))}
        assert len(item.answers) == len(set(item.answers)) > 1


def test_missing_public_stories_are_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path))
    for build in (load_dataset, lambda *name: list(worlds(*name))):
        with pytest.raises(
            LabError, match=r"^babi-1-\w+ .*missing .*expected .*qa1_single-supporting-fact_\w+\.txt; set HIPPO_DATA.*$"
        ) as error:
            build("babi", "public")
        assert "\n" not in str(error.value)
    with pytest.raises(LabError, match="public stories are of tasks 1, 2 and 3"):
        settings_for("babi", "public", {"tasks": [4]})


def test_a_public_file_is_read_by_its_lines():
    hall = "1 John went to the hall.\n2 Mary took the milk there.\n3 Where is John? \thall\t1\n4 John left the milk."
    first, second = public.parse_stories(1, "test", f"{hall}\n1 Ann ran to the den.")
    assert first.statements == ("John went to the hall.", "Mary took the milk there.", "John left the milk.")
    assert first.questions == (BabiQuestion("Where is John?", "hall", 2, (0,), 6, {"who": "John"}),)
    assert (first.id, second.id, second.questions) == ("qa1-test-000", "qa1-test-001", ())


def asked(split="test", n=1000, **overrides):
    return list(worlds("babi", "public", n, 1337, split, overrides=overrides))


@needs(*FILES)
def test_a_public_window_is_all_statements_before_the_question():
    for world in asked():
        texts = {fact.id: fact.text for fact in world.facts}
        story = next(story for story in public.stories((1, 2, 3), "test") if story.id == world.id)
        for item in world.items:
            question = story.questions[int(item.id.rsplit("q", 1)[1])]
            assert tuple(texts[fact] for fact in item.window) == story.statements[: question.before]
            assert (item.question, item.answers) == (question.text, (question.answer,))
            assert set(item.gold_facts) <= set(item.window)
            assert item.taught == item.window


@needs(*FILES)
def test_public_splits_are_disjoint_stories():
    train, val, test = (public.stories((1, 2, 3), split) for split in ("train", "val", "test"))
    assert (len(train), len(val), len(test)) == (360, 240, 600)
    assert not {story.id for story in train} & {story.id for story in val}
    assert not {story.statements for story in (*train, *val)} & {story.statements for story in test}


@needs(*FILES)
@pytest.mark.parametrize(("split", "n", "most"), [("test", 200, 1), ("test", 600, 1), ("test", 1000, 2), ("val", 1000, 5)])
def test_a_public_story_is_a_world_and_is_asked_again_only_where_n_needs_it(split, n, most):
    chosen = asked(split, n)
    assert sum(len(world.items) for world in chosen) == n
    assert len({world.id for world in chosen}) == len(chosen)
    assert max(len(world.items) for world in chosen) == most


@needs(*FILES)
def test_too_many_public_questions_name_the_number_that_there_is():
    with pytest.raises(LabError, match="1200 val questions"):
        asked("val", 1201)
