"""Every drill gives true lessons: an answer is what its facts say, and "unknown" just where they say nothing."""

import os
import subprocess
import sys
from random import Random

import pytest

from hippo_core.files import root
from hippo_core.suites import lexicon, wording
from hippo_core.suites.relations import make_world
from hippo_core.training import lessons, mixture, tasks
from hippo_core.training import related as related_lessons
from hippo_core.training.lessons import UNKNOWN

pytestmark = pytest.mark.usefixtures("made_up_texts")
CURRICULUM = mixture.Curriculum(((0.5, 4), (1.0, 12)), 0.1, 20, mixture.SHARES)


@pytest.mark.parametrize("name", tasks.DRILLS)
def test_a_drill_repeats_itself_and_its_questions_have_answers(name):
    drill = tasks.DRILLS[name]
    for split in ("train", "val"):
        for number in range(8):
            lesson = drill(Random(number), number + 1, split)
            assert lesson == drill(Random(number), number + 1, split)
            for branch in lesson.branches:
                assert branch.answer
                assert all(0 <= index < len(lesson.facts) for index in branch.gold)


READERS = ["wide_slots", "wide_other_words", "plainly_unsaid"]  # drills of a reader alone


@pytest.mark.parametrize("name", ["slots", "journeys", "last_mention", "tuples", "plans", "dialogue", "needle", "movements", *READERS])
def test_the_answer_stands_in_the_last_gold_fact(name):
    for number in range(12):
        lesson = getattr(tasks, name)(Random(number), 8, "train")
        for branch in lesson.branches:
            if branch.question and branch.gold and branch.answer not in ("yes", "no"):
                assert branch.answer in lesson.facts[branch.gold[-1]][0]


@pytest.mark.parametrize(
    "name", ["slots", "journeys", "nothing_said", "last_mention", "chains", "tuples", "plans", "dialogue", "movements", *READERS]
)
def test_a_lesson_for_training_has_no_name_form_or_synonym_that_is_held_out(name):
    names, synonyms = set(lexicon.names(held_out=True)), lexicon.HELD_OUT
    for number in range(40):
        lesson = getattr(tasks, name)(Random(number), 8, "train")
        for branch in lesson.branches:
            assert not branch.question.startswith(("Tell me", "Do you recall", "Can one say"))
        for _, words in lesson.facts:
            assert not set(words) & (names | synonyms if name in ("slots", "journeys", "nothing_said") else names)


def test_yes_and_no_are_true_of_the_facts():
    random, seen = Random(4), set()
    for _ in range(60):
        settings = tasks.episodic.EpisodicSettings(n_facts=8, n_competitors=0)
        events = tasks.episodic.make_events(random, settings, tasks.WorldSpec("train", 0, 0), False)
        words = [wording.choose_words(random, event, usual=True) for event in events]
        branch = tasks.yes_or_no(random, events, words, random.randrange(8), True)
        named = [
            event for event in events if event.who in branch.question and event.what and lexicon.article(event.what[0]) in branch.question
        ]
        if branch.answer == "yes":
            assert named
        seen.add(branch.answer)
    assert seen == {"yes", "no"}


def test_what_is_forgotten_is_unknown_and_the_rest_stands():
    lesson = tasks.slots(Random(1), 6, "train")
    removed = {lesson.branches[0].gold[0]}
    left = lessons.forget(lesson, removed)
    assert len(left.facts) == len(lesson.facts) - 1
    assert [branch.answer for branch in left.branches if branch.question == lesson.branches[0].question] == [UNKNOWN]
    for branch in left.branches:
        assert branch.answer == UNKNOWN or branch.gold


def test_a_trimmed_lesson_keeps_the_gold_facts():
    for number in range(40):
        random = Random(number)
        lesson = mixture.draw_lesson(random, CURRICULUM, number / 40)
        trimmed = lessons.trim(random, lesson, 3)
        assert trimmed.branches
        for branch in trimmed.branches:
            matching = [old for old in lesson.branches if (old.question, old.answer) == (branch.question, branch.answer)]
            texts = [trimmed.facts[index] for index in branch.gold]
            assert any(texts == [lesson.facts[index] for index in old.gold] for old in matching)


def test_half_of_the_lessons_come_as_blocks_and_none_whose_order_matters():
    drawn = [mixture.draw_lesson(Random(number), CURRICULUM, 1.0) for number in range(400)]
    assert 0.42 < sum(lesson.blocks for lesson in drawn) / len(drawn) < 0.58
    assert not any(lesson.blocks and lesson.ordered for lesson in drawn)


def test_in_a_lesson_of_blocks_nothing_is_corrected_twice():
    for number in range(40):
        lesson = tasks.corrected_once(Random(number), 12, "train")
        subjects = [words[:2] for _, words in lesson.facts]
        assert max(map(subjects.count, subjects)) <= 2


def words_of(pools: lexicon.Pools) -> list[str]:
    """Every word of every group once for each time that it stands there; of a verb its past."""
    return [
        verb.past for group in (*pools.actions, *pools.motions) for verb in group
    ] + [word for group in (*pools.objects, *pools.places) for word in group]  # fmt: skip


def test_wide_words_have_one_meaning_and_are_none_of_the_suites():
    wide = words_of(tasks.wide())
    assert len(wide) == len(set(wide))
    assert not set(wide) & (set(words_of(lexicon.POOLS)) | lexicon.HELD_OUT)
    assert all(len(group) > 1 for pool in tasks.wide() for group in pool)


def test_only_plain_questions_are_left_without_an_answer():
    for number in range(20):
        lesson = tasks.plainly_unsaid(Random(number), 8, "train")
        unsaid = [branch for branch in lesson.branches if branch.answer == UNKNOWN]
        assert unsaid
        assert any(branch.gold for branch in lesson.branches)
        assert all(branch.question.startswith(("Who", "What", "Where", "When")) for branch in unsaid)


DRAW_SCRIPT = """
import sys, types
from importlib import import_module
from random import Random
package = types.ModuleType("hippo_core.training")  # without its __init__, which brings torch
package.__path__ = [sys.argv[1]]
sys.modules[package.__name__] = package
tasks = import_module("hippo_core.training.tasks")
names = [name for name in tasks.DRILLS if name not in tasks.FILES] + ["wide_slots", "wide_other_words", "plainly_unsaid"]
print([(name, number, getattr(tasks, name)(Random(number), 8, "train")) for name in names for number in range(4)])
"""


def test_a_drill_hangs_on_its_seed_and_not_on_how_python_hashes_words():
    folder = str(root() / "hippo_core/training")
    environments = [{**os.environ, "PYTHONHASHSEED": str(number)} for number in (1, 2)]
    running = [
        subprocess.Popen([sys.executable, "-c", DRAW_SCRIPT, folder], env=environment, stdout=subprocess.PIPE, text=True)
        for environment in environments
    ]
    first, second = (process.communicate()[0] for process in running)
    assert "yes or no" in first and all(process.returncode == 0 for process in running)
    assert first == second


def related(count, split="train", n_facts=8):
    return [tasks.bank_of_relations(Random(number), n_facts, split) for number in range(count)]


def test_a_chain_leads_from_fact_to_fact_to_its_answer():
    for lesson in related(40):
        for branch in lesson.branches:
            if branch.skill in ("hops_2", "hops_3"):
                fact_words = [set(lesson.facts[index][1]) for index in branch.gold]
                assert branch.answer in fact_words[-1]
                assert all(any(words & others for others in fact_words if others is not words) for words in fact_words)


@pytest.mark.parametrize(("missing", "least", "most"), [(0.0, 0, 0), (1.0, 40, 80)])
def test_a_question_has_no_answer_just_where_a_link_is_missing(monkeypatch, missing, least, most):
    monkeypatch.setattr(related_lessons, "MISSING", missing)
    lessons = related(60)
    assert least <= sum(any(branch.answer == UNKNOWN for branch in lesson.branches) for lesson in lessons) <= most


def test_what_was_so_before_is_asked_beside_what_is_so_now():
    asked = [(lesson, branch) for lesson in related(60) for branch in lesson.branches if branch.skill == "before"]
    assert len(asked) >= 10
    for lesson, branch in asked:
        tails = {lesson.facts[index][1][1] for index in branch.gold}
        assert lesson.ordered and branch.answer in tails and len(tails) > 1


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_lesson_is_of_a_world_of_its_split(monkeypatch, split):
    drawn = []
    monkeypatch.setattr(related_lessons, "make_world", lambda r, s, spec: drawn.append(spec) or make_world(r, s, spec))
    related(5, split)
    assert {spec.split for spec in drawn} == {split}
