"""The bank of relations and its suite: the facts lead to the answer, and splits share neither relations nor wordings."""

import re
from collections import Counter
from typing import get_args

import pytest

from hippo_core.suites import get_suite
from hippo_core.suites.altering import with_counterfactual_answers
from hippo_core.suites.draw import worlds
from hippo_core.suites.relations import bank
from hippo_core.suites.relations.bank import FROZEN, SPLIT_PARTS, Form, digest, frames, further, relations, relations_of
from hippo_core.suites.reworded import wordings
from hippo_core.suites.semantic.conflict import Testimony, settled_by_confidence
from hippo_core.suites.splits import SPLITS, worded
from hippo_core.suites.types import Fact, Item, World
from recipes import path_lessons

FRAMES = (("testimony", ""), ("updates", "replaced"), ("updates", "ended"), ("negation", ""), ("hedges", ""))
LEADS = re.compile(r"\{\w+\}")


def drawn(profile: str, n: int = 40) -> list[World]:
    return list(worlds("relations", profile, n, 1337, "test"))


@pytest.mark.parametrize("relation", (*relations(), *further()), ids=lambda relation: relation.name)
def test_a_relation_is_worded_for_both_ends(relation):
    assert [*relation.statements] == [*get_args(Form)]
    for text in relation.statements.values():
        assert sorted(LEADS.findall(text)) == ["{h}", "{t}"], text
    for texts, end, least in ((relation.tail_phrases, "{h}", 4), (relation.head_phrases, "{t}", 4), (relation.questions, "{h}", 3)):
        assert len(set(texts)) >= least
        assert all(LEADS.findall(text) == [end] for text in texts), texts
    both, new = relation.changes
    assert {*LEADS.findall(both)} == {"{h}", "{new}", "{t}"}
    assert {*LEADS.findall(new)} == {"{h}", "{new}"}


def test_the_bank_is_the_frozen_bank(monkeypatch):
    assert digest(*SPLIT_PARTS) == FROZEN
    monkeypatch.setattr(bank, "FROZEN", "0" * 64)
    relations.cache_clear()
    with pytest.raises(Exception, match="restore the folder"):
        relations()
    relations.cache_clear()


def test_splits_share_no_relation_and_no_wording():
    names = Counter(relation.name for split in SPLITS for relation in relations_of(split))
    assert set(names.values()) == {1}
    every = (*relations(), *further())
    parts = {relation.name: split for split in SPLITS for relation in relations_of(split)}
    assert [
        (relation.name, other.name)
        for relation in every
        for other in every
        if relation.is_like(other) and parts[relation.name] != parts[other.name]
    ] == []
    assert len(names) == len(every)
    for relation in relations():
        for texts in (tuple(relation.statements.values()), relation.tail_phrases, relation.questions):
            worded_in = [worded(texts, split) for split in SPLITS]
            assert all(worded_in)
            assert sorted(sum(worded_in, ())) == sorted(texts)


@pytest.mark.parametrize("split", SPLITS)
def test_worlds_have_relations_and_names_of_their_split_alone(split):
    relations_there, kept = {relation.name for relation in relations_of(split)}, set(bank.names("town", split))
    towns = {name for other in SPLITS for name in bank.names("town", other)}
    for world in worlds("relations", "default", 40, 1337, split):
        fact_slots = [fact.slots for fact in world.facts]
        assert {slots["relation"] for slots in fact_slots} <= relations_there
        assert {slots[end] for slots in fact_slots for end in ("head", "tail")} & towns <= kept


def training_texts() -> list[str]:
    """Every statement of training, and every frame around one."""
    statements = [text for relation in relations_of("train") for text in worded([*relation.statements.values()], "train")]
    changes = [text for relation in relations_of("train") for text in relation.changes]
    of = path_lessons.further_names()
    plain = [text.replace("{noun}", noun) for text in of["statements"] for noun in of["common"]]
    return [*statements, *changes, *plain, *of["corrections"], *(text for name, kind in FRAMES for text in frames(name, kind, "train"))]


def blanked(text: str) -> str:
    """A wording without its names, case and marks."""
    return " ".join(re.findall(r"\w+", LEADS.sub(" ", text).casefold()))


def test_training_has_no_frozen_rewording_and_no_wording_of_the_test():
    training = {blanked(text) for text in training_texts()}
    frozen = [text for suite in ("semantic", "spatial") for forms in wordings(suite).values() for text in forms if isinstance(text, str)]
    tested = [text for relation in relations_of("test") for text in relation.statements.values()]
    tested += [text for name, kind in FRAMES for text in frames(name, kind, "test")]
    assert frozen
    assert not {blanked(text) for text in (*frozen, *tested)} & training


def test_names_for_training_alone_are_in_no_world():
    of = path_lessons.further_names()
    assert [sorted(set(LEADS.findall(text))) for text in of["statements"]] == [["{h}", "{noun}", "{t}"]] * len(of["statements"])
    kept = {name.casefold() for kind in path_lessons.kinds() for split in SPLITS for name in bank.names(kind, split)}
    own = [name.casefold() for kind, names in of.items() if kind not in ("statements", "questions", "corrections") for name in names]
    assert len(own) == len(set(own)) > 1150
    assert not kept & set(own)


def facts_of(world: World, item: Item) -> list[Fact]:
    known = {fact.id: fact for fact in world.facts}
    return [known[name] for name in item.gold_facts]


@pytest.mark.parametrize("profile", ["base", "default", "hard", "seen", "updates"])
def test_the_gold_facts_lead_to_the_answer(profile):
    kinds = Counter()
    for world in drawn(profile):
        for item in world.items:
            name = item.cue.get("head") or item.cue["tail"]
            assert name in item.question or name[0].upper() + name[1:] in item.question
            for fact, step in zip(facts_of(world, item), item.cue["path"].split(), strict=True):
                ends = (fact.slots["head"], fact.slots["tail"])
                start, end = ends[::-1] if step.startswith("^") else ends
                assert (fact.slots["relation"], start) == (step.removeprefix("^"), name)
                name = end
            assert name == item.answers[0]
            assert name not in item.refuted
            kinds[item.kind] += 1
    assert len(kinds) > 1


@pytest.mark.parametrize("profile", ["default", "hard", "updates"])
def test_the_truth_follows_from_the_statements(profile):
    """Of each asked edge: the last update, else the most confident of the tellers' last statements, else the plain one."""
    for world in drawn(profile):
        for item in (candidate for candidate in world.items if candidate.kind != "before"):
            for fact in facts_of(world, item):
                same = [other for other in world.facts if all(other.slots[slot] == fact.slots[slot] for slot in ("head", "relation"))]
                statements = [other for other in same if other.slots["told"] not in ("denial", "guess", "former")]
                updates = [other for other in statements if other.slots["told"] == "update"]
                if updates:
                    assert statements[-1] is updates[-1] is fact
                elif len(statements) > 1:
                    testimonies = [Testimony(other.teller, other.slots["tail"], other.confidence) for other in statements]
                    assert settled_by_confidence(testimonies) == fact.slots["tail"]
                else:
                    assert statements == [fact]


def test_teller_and_tail_are_in_the_text():
    for world in drawn("hard"):
        for fact in world.facts:
            assert fact.teller == fact.slots.get("teller", "")
            assert fact.teller in fact.text
            assert fact.slots["tail"].casefold() in fact.text.casefold()


def test_altered_worlds_have_another_answer():
    before = drawn("default", 20)
    suite = get_suite("relations")
    for was, now in zip(before, with_counterfactual_answers(suite, before), strict=True):
        answers = {item.id: item.answers[0] for item in was.items}
        assert now.items
        for item in now.items:
            assert item.answers[0] != answers[item.id]
            assert facts_of(now, item)[-1].slots["tail"] == item.answers[0] or item.cue["path"].split()[-1].startswith("^")
