"""The worlds of data/chains: as their words make them, in no pattern's words, and each answer follows from the facts."""

import re

import pytest

from benchmarks.memory.chain_worlds import FACTS, HOPS, WORLDS, folder_of, lines, words_of
from hippo_core.methods.relational.graph import read
from hippo_core.methods.relational.mentions import COMMON
from hippo_core.methods.relational.relations import FORMS
from hippo_core.store.trace import Trace
from hippo_core.suites.folder import read_folder
from hippo_core.suites.semantic.conflict import Testimony, settled

PARTS = ("val", "test")
PLAIN = COMMON | {"t", "h", "s", "teller", "person", "place", "whom", "which"}


def content(text: str) -> set[str]:
    return {re.sub(r"(?:ing|ed|es|s)$", "", word) for word in re.findall(r"[a-z]+", text.lower()) if word not in PLAIN}


@pytest.mark.parametrize("part", PARTS)
def test_the_files_are_what_the_words_make(part):
    for name, text in lines(part).items():
        assert (folder_of(part) / name).read_text(encoding="utf-8") == text


def test_the_parts_share_no_relation_no_frame_and_no_name():
    val, test = map(words_of, PARTS)
    assert not val.relations.keys() & test.relations.keys()
    frames = [
        {frame for row in part_words.relations.values() for frame in (*row.told, *row.described, *row.asked, *row.back)}
        for part_words in (val, test)
    ]
    assert not frames[0] & frames[1]
    assert not {*val.tellers, *val.distractors} & {*test.tellers, *test.distractors}
    names = [
        {word for own in part_words.names.values() for name in own for word in name.lower().split()} - {"&"} for part_words in (val, test)
    ]
    assert not names[0] & names[1]


@pytest.mark.parametrize("part", PARTS)
def test_no_frame_is_in_a_pattern_and_no_question_repeats_a_frame(part):
    words = words_of(part)
    assert len(words.relations) >= 12
    for row in words.relations.values():
        assert len(row.told) == 3
        content_of = {frame: content(frame) for frame in row.told}
        for frame in row.told:
            h, t = (words.mention(kind, words.names[kind][-number]) for number, kind in enumerate((row.head, row.tail), 1))
            text = frame.format(h=h, t=t)
            relation = read(Trace("w", "f", f"{text[0].upper()}{text[1:]}.")).relation
            assert relation is None or relation.name.split(" <")[0] not in FORMS, text
        for question in (*row.described, *row.asked, *row.back):
            assert not [frame for frame, own in content_of.items() if own & content(question)], question


@pytest.mark.parametrize("part", PARTS)
def test_worlds_have_their_size_and_questions_their_hops(part):
    worlds = read_folder(folder_of("test"), part)
    assert len(worlds) == WORLDS
    for world in worlds:
        assert len(world.facts) == FACTS
        assert [item.hops for item in world.items] == [*HOPS]
        assert [item.kind == "contradiction" for item in world.items] == [True, False] * 2
        for item in world.items:
            assert len(item.gold_facts) == item.hops


@pytest.mark.parametrize("part", PARTS)
def test_gold_facts_lead_from_the_questions_name_to_its_answer_and_the_majority_decides(part):
    for world in read_folder(folder_of("test"), part):
        facts = {fact.id: fact for fact in world.facts}
        for item in world.items:
            [node] = item.cue.values()
            assert node in item.question
            for gold in item.gold_facts:
                slots = facts[gold].slots
                assert node in slots.values()
                node = slots["tail"] if node == slots["head"] else slots["head"]
            assert node == item.answers[0]
            assert node not in item.question
            if item.kind == "contradiction":
                check_settled(part, item, world.facts)


def check_settled(part, item, facts):
    """The contested gold fact's tail is that of most tellers' last statements of its head in that relation."""
    again = set(item.retold) | set(item.retold.values())
    if not item.retold:
        return
    [decides] = set(item.retold.values())
    [deciding] = [fact for fact in facts if fact.id == decides]
    relation = relation_in(part, deciding.text)
    statements = [fact for fact in facts if fact.slots["head"] == deciding.slots["head"] and relation_in(part, fact.text) == relation]
    tellers = [Testimony(teller_in(part, fact), fact.slots["tail"]) for fact in statements]
    assert settled(tellers) == deciding.slots["tail"]
    assert again == {fact.id for fact in statements if fact.slots["tail"] == deciding.slots["tail"]}
    assert not set(item.refuted) & set(item.answers)


def relation_in(part, text):
    """The relation whose frame a sentence has."""
    for name, row in words_of(part).relations.items():
        for frame in row.told:
            pattern = re.escape(frame).replace(r"\{h\}", ".+").replace(r"\{t\}", ".+")
            if re.search(pattern, text, re.IGNORECASE):
                return name
    return ""


def teller_in(part, fact):
    """Its teller."""
    names = [name for name in words_of(part).names["person"] if name in fact.text and name not in fact.slots.values()]
    return names[0] if names else ""
