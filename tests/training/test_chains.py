"""Chains: what a lesson answers follows from its facts, and frames, relations and names of other splits never come in training."""

from dataclasses import replace
from random import Random

import pytest

from hippo_core.suites import lexicon
from hippo_core.training import chains
from hippo_core.training.lessons import UNKNOWN
from hippo_core.training.relations import RELATIONS


def frames_of(relations, part):
    return {frame for relation in relations for use in range(4) for frame in part(relation, use)}


def solve(links, start, steps):
    """All ends of a walk, by looking at every fact at every step."""
    ends = {start}
    for relation, back in steps:
        told = [(link.tail, link.head) if back else (link.head, link.tail) for link in links if link.relation == relation]
        ends = {end for begin, end in told if begin in ends}
    return ends


def test_the_table_has_five_statements_and_three_of_all_else_and_holds_a_quarter_out():
    assert len(RELATIONS) >= 20 and sum(relation.held_out for relation in RELATIONS) == len(RELATIONS) / 4
    assert len({relation.name for relation in RELATIONS}) == len(RELATIONS)
    for relation in RELATIONS:
        assert [len(set(group)) for group in relation.frames] == [5, 3, 3, 3]
        statements, questions, tails, heads = relation.frames
        assert all("{h}" in frame and "{t}" in frame for frame in statements)
        assert all("{h}" in frame and "{t}" not in frame for frame in questions + tails)
        assert all("{t}" in frame and "{h}" not in frame for frame in heads)
    kept = [relation for relation in RELATIONS if not relation.held_out]
    held_out = sum(len(relation.unseen(use)) for relation in kept for use in range(4))
    assert 0.2 < held_out / (14 * len(kept)) < 0.3


@pytest.mark.parametrize("split", ["train", "val"])
def test_answers_follow_from_the_facts_and_change_with_them(split):
    hops = set()
    for number in range(40):
        random = Random(number)
        links = chains.draw_links(random, 5 + number % 12, split)
        for walk in random.sample(found := chains.walks(links), min(10, len(found))):
            assert solve(links, walk.start, walk.steps) == {walk.answer}
            assert walk.start in chains.ask(Random(1), walk, split)
            hops.add(len(walk.steps))
            last, step = links[walk.facts[-1]], walk.steps[-1]
            changed = replace(last, **{"head" if step.back else "tail": "Somebody Else"})
            altered = [changed if link == last else link for link in links]
            assert solve(altered, walk.start, walk.steps) == {"Somebody Else"}
            [again] = [one for one in chains.walks(altered) if (one.start, one.steps) == (walk.start, walk.steps)]
            assert again.answer == "Somebody Else"
            for index in walk.facts:
                assert not solve(links[:index] + links[index + 1 :], walk.start, walk.steps)
    assert hops == {1, 2, 3}


def test_a_lesson_asks_one_to_three_hops_and_says_unknown_where_a_link_is_missing():
    missing, skills = 0, set()
    for number in range(200):
        lesson = chains.joined_facts(Random(number), 4 + number % 14, "train")
        told = [words for _, words in lesson.facts]
        assert all(word in text for text, words in lesson.facts for word in words)
        for branch in lesson.branches:
            skills.add(branch.skill)
            if branch.gold:
                assert branch.answer in told[branch.gold[-1]] and branch.skill[0] == str(len(branch.gold))
                middle = [set(told[a]) & set(told[b]) for a, b in zip(branch.gold, branch.gold[1:], strict=False)]
                assert all(middle) and not any(name in branch.question.split() for names in middle for name in names)
            else:
                assert (branch.answer, branch.guided) == (UNKNOWN, False)
        missing += any(branch.answer == UNKNOWN for branch in lesson.branches)
    assert skills == {"1 hop", "2 hops", "3 hops", UNKNOWN}
    assert 50 < missing < 90


def test_what_is_asked_has_near_competitors():
    links = [chains.draw_links(Random(number), 10, "train") for number in range(40)]
    share = [sum(link.relation == other.relation for other in some) for some in links for link in some]
    assert sum(number > 1 for number in share) / len(share) > 0.8


def test_frames_and_relations_that_are_held_out_never_come_in_training(monkeypatch):
    used = {"train": set(), "val": set()}
    original = chains.frames

    def spy(relation, use, split):
        chosen = original(relation, use, split)
        used[split] |= set(chosen)
        assert chosen and not (split == "train" and relation.held_out)
        return chosen

    monkeypatch.setattr(chains, "frames", spy)
    forms = {split: set() for split in used}
    for split in used:
        for number in range(250):
            lesson = chains.joined_facts(Random(number), 10, split)
            forms[split] |= {branch.question.startswith("Can you name") for branch in lesson.branches}
    kept = frames_of([relation for relation in RELATIONS if not relation.held_out], lambda relation, use: relation.frames[use][:-1])
    assert used["train"] == kept
    assert not used["val"] & kept and used["val"] == frames_of(RELATIONS, lambda relation, use: relation.frames[use]) - kept
    assert forms == {"train": {False}, "val": {True, False}}


def test_names_are_of_one_split_alone():
    names = {}
    for split in ("train", "val", "test"):
        lessons = [chains.joined_facts(Random(f"{split}/{number}"), 12, split) for number in range(100)]
        names[split] = {word for lesson in lessons for _, words in lesson.facts for word in words}
        assert len(names[split]) > 300
    assert not names["train"] & names["val"] and not names["train"] & names["test"] and not names["val"] & names["test"]
    assert not names["train"] & set(lexicon.names(held_out=True))


def test_facts_alone_are_few_and_still_joined():
    random = Random("alone")
    lessons = [chains.joined_facts_alone(random, 16, "train") for _ in range(200)]
    assert {len(lesson.facts) for lesson in lessons} == {1, 2, 3, 4}
    asked = [branch for lesson in lessons for branch in lesson.branches]
    assert {branch.skill for branch in asked} == {"1 hop", "2 hops", "3 hops", "unknown"}
    assert all(
        branch.answer in " ".join(text for text, _ in lesson.facts) for lesson in lessons for branch in lesson.branches if branch.gold
    )
