"""The ladders: no words of the lab, one right fact a question among near competitors, and each rung by its rule."""

import ast
import re
from collections import Counter

import pytest

from benchmarks.memory.ladders import NAMES, QUESTIONS, ladder, named, sentence, tokens, words_of
from hippo_core.files import read_yaml, root
from hippo_core.suites import lexicon
from hippo_core.suites.types import RUNGS
from tests.texts import texts_of


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


# Words that do not show what a sentence is about: articles, pronouns, prepositions, conjunctions, auxiliaries, question words,
# numbers and units, and the commonest verbs.
FUNCTION_WORDS = words(
    """a an the this that they them their it itself us i who whom whose which what when where why how whatever whenever whether while
    about according across after again against all along as at away back be before behind being below between by because can close could
    every down far for from had has have high if in into is are was were do did does less like many more much must near not now of off often
    on once one onto or and out over owing part per so some something s should than thanks things through till to too under until up upon
    will with without would first second third fourth fifth sixth seventh eighth
    ninth tenth seventeen half quarter past two three four five six seven eight nine ten eleven twelve
    twenty thirty forty fifty sixty seventy eighty ninety st nd rd th c time date day kind pounds
    ask asks came come bring gave give go went gone get gets got leave left let made make pay put run sent says take took use used want
    wants"""
)


def bare(form: str) -> str:
    return re.sub(r"\{\w+\}", " ", form)


def lab_words() -> set[str]:
    """All words in the strings of the suites' and the lessons' modules (not in docstrings), in the notes, and all names."""
    collected = {name.lower() for name in (*lexicon.given_names(), *lexicon.SURNAMES)}
    for package in ("suites", "training"):
        for path in (root() / "hippo_core" / package).rglob("*.py"):
            if path.name == "reader.py" or {"cache", "forgetting", "relations"} & {*path.parts}:  # names of models and forms, and no lesson
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
            for node in strings:
                if id(node) not in documents:
                    collected |= words(node.value)
    for path in (root() / "hippo_core").glob("[st]*/**/*.yaml"):
        collected |= words(" ".join(texts_of(read_yaml(path))))
    for path in (*(root() / "data" / "notes").glob("*.yaml"), *(root() / "data" / "lessons").glob("*.yaml")):
        collected |= words(path.read_text(encoding="utf-8"))
    return collected


@pytest.fixture(scope="module")
def lab() -> set[str]:
    return lab_words()


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def world(name):
    return ladder(name)


def frame_of(name, fact):
    """The number of a fact's frame."""
    frames = enumerate(words_of(name).frames)
    [number] = [n for n, frame in frames if set(frame.slots) == set(fact.slots) and sentence(frame.fact.format(**fact.slots)) == fact.text]
    return number


def test_no_content_word_is_a_word_of_the_lab(name, lab):
    assert {"guitar", "hamster", "skylight", "rented"} <= lab
    made = words_of(name)
    texts = [bare(form) for frame in made.frames for form in (frame.fact, *frame.questions.values())]
    texts += [text for values in made.slots.values() for pair in values.items() for text in pair]
    assert words(" ".join(texts)) & lab <= FUNCTION_WORDS


def test_the_ladders_share_no_sentence_and_hardly_a_word():
    first, second = (words(" ".join(bare(frame.fact) for frame in words_of(name).frames)) - FUNCTION_WORDS for name in NAMES)
    assert len(first & second) <= 5 and len(first) > 60 and len(second) > 60


def test_frames_have_their_slots(name):
    made = words_of(name)
    assert len(made.frames) >= 40 and len({frame.fact for frame in made.frames}) == len(made.frames)
    for frame in made.frames:
        cue = set(frame.slots) - {frame.answer}
        assert 3 <= len(frame.slots) <= 5 and len(set(frame.slots)) == len(frame.slots), frame
        assert set(named(frame.questions["exact"])) == set(named(frame.questions["paraphrase"])) == cue, frame
        assert len(named(frame.questions["partial"])) >= 2 and set(named(frame.questions["partial"])) <= cue, frame
    assert any(set(named(frame.questions["partial"])) < set(named(frame.questions["exact"])) for frame in made.frames)


def test_a_paraphrase_has_no_content_word_of_the_fact(name):
    made = words_of(name)
    for frame in made.frames:
        assert words(bare(frame.fact)) & words(bare(frame.questions["paraphrase"])) <= FUNCTION_WORDS, frame
    for values in made.slots.values():
        for value, other in values.items():
            assert other == value or words(value) & words(other) <= FUNCTION_WORDS, value
            assert other == value or not {word[:5] for word in words(value) if len(word) > 4} & {word[:5] for word in words(other)}, value


def test_a_ladder_hangs_on_its_seed_alone(name, world):
    assert ladder(name) == world
    assert {fact.text for fact in ladder(name, 7).facts} != {fact.text for fact in world.facts}


def test_a_ladder_is_a_world_of_a_thousand_facts(world):
    assert len(world.facts) == len({fact.text for fact in world.facts}) == 1000
    assert [fact.time for fact in world.facts] == list(range(1000))
    assert Counter(item.rung for item in world.items) == dict.fromkeys(RUNGS, QUESTIONS)
    assert all(item.taught == tuple(fact.id for fact in world.facts) for item in world.items)
    for fact in world.facts:
        assert all(value.lower() in fact.text.lower() for value in fact.slots.values())
        assert "{" not in fact.text and not re.search(r"\ba [aeiou]", fact.text)


def test_a_single_fact_fits_a_question_and_without_any_slot_several_do(world):
    for item in world.items:
        fitting = [fact.id for fact in world.facts if item.cue.items() <= fact.slots.items()]
        assert tuple(fitting) == item.gold_facts, item
        for slot in item.cue:
            rest = {other: value for other, value in item.cue.items() if other != slot}
            assert rest and sum(rest.items() <= fact.slots.items() for fact in world.facts) > 1, item


def test_no_question_contains_its_answer(world):
    facts = {fact.id: fact for fact in world.facts}
    for item in world.items:
        [answer], fact = item.answers, facts[item.gold_facts[0]]
        assert fact.slots[item.kind] == answer and item.kind not in item.cue
        assert not tokens(answer) & tokens(item.question), item


def test_questions_of_a_rung_follow_its_rule(name, world):
    facts, made = {fact.id: fact for fact in world.facts}, words_of(name)
    for item in world.items:
        fact = facts[item.gold_facts[0]]
        cue_slots = set(fact.slots) - {item.kind}
        in_fact = [value in item.question or value.capitalize() in item.question for value in item.cue.values()]
        plain = sentence(made.frames[frame_of(name, fact)].questions["exact"].format(**fact.slots))
        differ = sum((Counter(plain.split()) - Counter(item.question.split())).values())
        other = [made.slots[slot][value] for slot, value in item.cue.items()]
        if item.rung == "exact":
            assert item.question == plain and set(item.cue) == cue_slots and all(in_fact), item
        elif item.rung == "partial":
            assert set(item.cue) <= cue_slots and all(in_fact), item
        elif item.rung == "paraphrase":
            assert set(item.cue) == cue_slots and all(word.lower() in item.question.lower() for word in other), item
        else:
            assert set(item.cue) <= cue_slots and item.question != plain and differ >= 2, item
    shorter = [len(item.cue) < len(facts[item.gold_facts[0]].slots) - 1 for item in world.items if item.rung == "partial"]
    assert sum(shorter) > 0.8 * QUESTIONS
