"""The bAbI suite tells the public stories as they are: windows, supporting facts, splits, and as many questions as n asks for."""

import pytest

from hippo_core.files import LabError, root, sha256
from hippo_core.suites.babi import FILES, ROOMS, stories
from hippo_core.suites.datasets.build import worlds


def asked(split="test", n=1000, **overrides):
    return list(worlds("babi", "default", n, 1337, split, overrides=overrides))


def test_the_files_are_those_of_the_provenance():
    folder = root() / "data/samples/babi"
    text = (folder / "PROVENANCE.md").read_text(encoding="utf-8")
    for name in [f"{stem}_{part}.txt" for stem in FILES.values() for part in ("train", "test")] + ["LICENSE.txt"]:
        assert f"`{sha256(folder / name)}`" in text


def test_a_known_story():
    story = stories((1,), "test")[0]
    assert story.statements[:2] == ("John travelled to the hallway.", "Mary journeyed to the bathroom.")
    first = story.questions[0]
    assert (first.text, first.answer, first.before, first.support) == ("Where is John?", "hallway", 2, (0,))


def test_a_window_is_all_that_was_told_before_the_question():
    for world in asked():
        texts = {fact.id: fact.text for fact in world.facts}
        story = next(story for story in stories((1, 2, 3), "test") if story.id == world.id)
        for item in world.items:
            told = tuple(texts[fact] for fact in item.window)
            number = int(item.id.rsplit("q", 1)[1])
            question = story.questions[number]
            assert told == story.statements[: question.before]
            assert (item.question, item.answers) == (question.text, (question.answer,))
            assert set(item.gold_facts) <= set(item.window)
            assert item.taught == item.window


@pytest.mark.parametrize(("task", "hops"), [(1, 1), (2, 2), (3, 3)])
def test_a_task_has_as_many_supporting_facts_as_its_number(task, hops):
    for world in asked(n=200, tasks=[task]):
        assert all(item.kind == f"qa{task}" and len(item.gold_facts) == item.hops == hops for item in world.items)


def test_splits_are_disjoint_stories():
    train, val, test = (stories((1, 2, 3), split) for split in ("train", "val", "test"))
    assert (len(train), len(val), len(test)) == (360, 240, 600)
    assert not {story.id for story in train} & {story.id for story in val}
    assert not {story.statements for story in (*train, *val)} & {story.statements for story in test}


@pytest.mark.parametrize(("split", "n", "most"), [("test", 200, 1), ("test", 600, 1), ("test", 1000, 2), ("val", 1000, 5)])
def test_a_story_is_a_world_and_is_asked_again_only_where_n_needs_it(split, n, most):
    chosen = asked(split, n)
    assert sum(len(world.items) for world in chosen) == n
    assert len({world.id for world in chosen}) == len(chosen)
    assert max(len(world.items) for world in chosen) == most


def test_tasks_are_mixed_from_the_start():
    assert {item.kind for world in asked(n=50) for item in world.items} == {"qa1", "qa2", "qa3"}


def test_seeds_give_other_orders_and_the_same_seed_the_same():
    one, again = ([world.id for world in worlds("babi", "default", 50, 1337, "test")] for _ in range(2))
    other = [world.id for world in worlds("babi", "default", 50, 2025, "test")]
    assert one == again != other


def test_too_many_questions_say_how_many_there_are():
    with pytest.raises(LabError, match="1200 val questions"):
        asked("val", 1201)


def test_a_guess_among_the_rooms_is_right_as_often_as_stated():
    answers = {item.answers[0] for world in asked() for item in world.items}
    assert len(answers) == ROOMS
    for world in asked(n=300):
        for item in world.items:
            open_rooms = answers - {item.cue.get("where")}
            assert item.chance == 1 / len(open_rooms)
            assert item.answers[0] in open_rooms
