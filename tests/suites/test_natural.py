"""Text that people wrote: each gold passage contains the answer, no article is in two splits, nothing is left out."""

import json
import math
from hashlib import sha256

import pytest

from hippo_core.errors import LabError
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.datasets.validate import rules
from hippo_core.suites.draw import worlds
from hippo_core.suites.natural import factconsolidation, hotpotqa, squad, twowiki
from hippo_core.suites.natural.passages import chunks, holding
from hippo_core.suites.types import Fact
from hippo_core.text_files import why_missing

NAMES = ("squad", "hotpotqa", "twowiki", "factconsolidation")
NEEDED = [file for name in NAMES for file in get_suite(name).files(settings_for(name, "default", {}))]
PUBLIC = pytest.mark.skipif(why_missing(NEEDED) is not None, reason=str(why_missing(NEEDED)))
ARTICLES = [
    {"title": f"Article {number}", "context": f"Part {part} of {number} tells of the thing {number}x{part}. It goes on.",
     "questions": [{"question": f"Which thing is in {number} {part}?", "answer": f"thing {number}x{part}"}] * 2}
    for number in range(48) for part in range(2)
]  # fmt: skip


@pytest.fixture
def written(monkeypatch):
    """Files as the public ones are, with a text of our own."""
    paragraphs = "Ann Bee. Ann Bee was a potter in Ghent.\n\nGhent. Ghent is a city."
    questions = [
        {"id": 0, "question": "Where did the potter live?", "answers": ["Ghent"], "document": paragraphs},
        {"id": 1, "question": "Is Ghent a city?", "answers": ["yes"], "document": paragraphs},
    ]
    texts = {
        "squad": ARTICLES,
        "hotpotqa": questions,
        "twowiki-passages": [{"title": "Ann Bee", "text": "A potter."}, {"title": "Ghent", "text": "A city."}],
        "twowiki-questions": [{"question": "In what city?", "answer": "", "ground_truth": ["Ghent", "Ann Bee"]}],
    }
    for module in (squad, hotpotqa, twowiki):
        monkeypatch.setattr(module, "read_text", lambda name: json.dumps(texts[name]))
    texts |= {
        "factconsolidation-facts": "Facts:\n\n0. Ann Bee plays rugby.\n1. Bo lives in Ghent.\n2. Ann Bee plays chess.\n3. Cy hates chess.",
        "factconsolidation-single": '{"question": "What does Ann Bee play?", "answers": ["chess"]}\n',
        "factconsolidation-multi": '{"question": "Where is what Ann Bee plays from?", "answers": ["India"]}\n',
    }
    monkeypatch.setattr(factconsolidation, "read_text", texts.__getitem__)
    return texts


def test_factconsolidation_has_facts_in_order_without_their_numbers(written):
    [world] = worlds("factconsolidation", "default", None, 1337, "test")
    assert [fact.text for fact in world.facts] == ["Ann Bee plays rugby.", "Bo lives in Ghent.", "Ann Bee plays chess.", "Cy hates chess."]
    assert [fact.time for fact in world.facts] == [0, 1, 2, 3]
    assert [(item.kind, item.gold_facts) for item in world.items] == [("single_hop", ("factconsolidation.f2",)), ("multi_hop", ())]
    assert list(worlds("factconsolidation", "default", None, 1337, "val")) == []
    written["factconsolidation-facts"] = written["factconsolidation-facts"].replace("2. ", "4. ")
    with pytest.raises(LabError, match="numbered from 0 on"):
        list(worlds("factconsolidation", "default", None, 1337, "test"))


def test_articles_are_split_by_the_hash_of_their_titles(written):
    titles = sorted((article["title"] for article in ARTICLES[::2]), key=lambda title: sha256(title.encode()).hexdigest())
    due = {"train": set(titles[:30]), "val": set(titles[30:36]), "test": set(titles[36:])}
    for split, wanted in due.items():
        drawn = list(worlds("squad", "default", None, 1337, split))
        assert {fact.context_key for world in drawn for fact in world.facts} == wanted
        assert {item.world for world in drawn for item in world.items} == {world.id for world in drawn}


def test_pooled_all_passages_are_taught_and_the_splits_questions_asked(written):
    [pooled] = worlds("squad", "pooled", None, 1337, "test")
    [every] = worlds("squad", "every", None, 1337, "test")
    assert len(pooled.facts) == len(every.facts) == 96
    assert (len(pooled.items), len(every.items)) == (12 * 4, 48 * 4)
    assert {item.gold_facts for item in pooled.items} <= {item.gold_facts for item in every.items}


def test_a_single_passage_is_a_world_with_its_own_questions_and_articles_take_turns(written):
    drawn = list(worlds("squad", "passages", None, 1337, "test"))
    assert len(drawn) == 24 and len({world.id.rpartition(".")[0] for world in drawn[:12]}) == 12
    for world in drawn:
        [fact] = world.facts
        assert len(world.items) == 2 and all(item.answers[0] in fact.text for item in world.items)
        assert {(item.world, item.gold_facts, item.taught) for item in world.items} == {(world.id, (fact.id,), (fact.id,))}
    assert len({item.id for world in drawn for item in world.items}) == 48
    assert list(worlds("squad", "passages", 6, 1337, "test")) == drawn[:3] != list(worlds("squad", "passages", 6, 1338, "test"))
    with pytest.raises(LabError, match="squad has 48 questions about single passages"):
        list(worlds("squad", "passages", 49, 1337, "test"))


@pytest.mark.parametrize("n", [1, 12, 30])
def test_questions_are_spread_over_the_worlds(written, n):
    counts = [len(world.items) for world in worlds("squad", "default", n, 1337, "test")]
    assert sum(counts) == n and max(counts) - min(counts) <= 1
    with pytest.raises(LabError, match="squad has 48 test questions; 49 were asked for"):
        list(worlds("squad", "default", 49, 1337, "test"))


def test_of_more_questions_than_are_asked_the_seed_draws(written):
    first, again, other = (
        {item.id for world in worlds("squad", "default", 24, seed, "test") for item in world.items} for seed in (1, 1, 2)
    )
    assert len(first) == 24 and first == again != other


def test_a_chunk_is_gold_where_it_contains_the_answer(written):
    [world] = worlds("squad", "chunks", None, 1337, "test", overrides={"chunk_words": 10})
    text = {fact.id: fact.text for fact in world.facts}
    assert all(item.answers[0] in text[item.gold_facts[0]] for item in world.items)
    assert len(world.facts) > 96 and max(len(words.split()) for words in text.values()) <= 10


def test_chunks_lose_no_word_and_end_with_sentences():
    text = "One two three. Four five six seven. Eight nine ten eleven twelve."
    assert chunks(text, 0) == [text]
    assert chunks(text, 7) == ["One two three. Four five six seven.", "Eight nine ten eleven twelve."]
    assert " ".join(chunks(text, 2)) == text and all(len(part.split()) <= 2 for part in chunks(text, 2))


def test_an_answer_is_matched_word_for_word():
    facts = [Fact(name, "w", text, {}, 0) for name, text in (("a", "The art of war."), ("b", "A start."), ("c", "ART, they say"))]
    assert holding("art", facts) == ("a", "c")


def test_twowiki_names_gold_passages_and_scores_no_answer(written):
    [world] = worlds("twowiki", "default", None, 1337, "test")
    assert [item.gold_facts for item in world.items] == [("twowiki.p1", "twowiki.p0")]
    assert math.isnan(get_suite("twowiki").measures["answered"](world, world.items[0], "Ghent"))
    written["twowiki-questions"][0]["ground_truth"] = ["Bruges"]
    with pytest.raises(LabError, match="needs the passage 'Bruges'"):
        list(worlds("twowiki", "default", None, 1337, "test"))


@pytest.mark.parametrize(
    ("paragraph", "title"),
    [
        ("Ann Bee. Ann Bee was a potter. She sang.", "Ann Bee"),
        ("C. Ann Bee. Charlotte Ann Bee was a potter.", "C. Ann Bee"),
        ("Vitamin C. Vitamin C is in fruit.", "Vitamin C"),
        ("Ms. Ghent. Ms. Ghent is a prize. It is old.", "Ms. Ghent"),
        ("A life (U.S. film). A life is a film.", "A life (U.S. film)"),
        ("And then... (song). A song.", "And then... (song)"),
        ("X", "X"),
        ("X. ", "X"),
    ],
)
def test_a_full_stop_that_shortens_a_word_is_a_part_of_a_title(paragraph, title):
    assert hotpotqa.title_of(paragraph) == title


def test_hotpotqa_has_no_gold_in_another_question_s_paragraphs(written):
    """A paragraph may contain the answer by chance: only of a question's own ten paragraphs two support it."""
    others = {"id": 2, "question": "Who was a potter?", "answers": ["Ann Bee"], "document": "Bruges. Bruges is near Ghent.\n\nCups. A cup."}
    written["hotpotqa"].append(others)
    [world] = worlds("hotpotqa", "default", None, 1337, "test")
    texts = {fact.id: fact.text for fact in world.facts}
    assert len(texts) == 4  # two questions share their paragraphs
    assert [fact for fact, text in texts.items() if "Ghent" in text] == ["hotpotqa.p0", "hotpotqa.p1", "hotpotqa.p2"]
    assert list(worlds("hotpotqa", "default", None, 1337, "val")) == []
    assert [item.gold_facts for item in world.items] == [("hotpotqa.p0", "hotpotqa.p1"), (), ()]
    assert [item.slices for item in world.items] == [(), ("no_gold",), ("no_gold",)]


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_asked_among_all_passages_of_its_world(written, name):
    """And not among its own few, of which the right one is easily found."""
    other = {"id": 2, "question": "What is a cup?", "answers": ["thing"], "document": "Cups. A cup is a thing."}
    written["hotpotqa"].append(other)
    written["twowiki-passages"].append({"title": "Cups", "text": "A thing."})
    for world in worlds(name, "default", None, 1337, "test"):
        assert len(world.facts) > 1
        assert {item.taught for item in world.items} == {tuple(fact.id for fact in world.facts)}


def test_passages_are_as_the_files_have_them(written):
    """Of 2WikiMultiHopQA behind their titles, without which many have no subject."""
    [world] = worlds("twowiki", "default", None, 1337, "test")
    assert [fact.text for fact in world.facts] == ["Ann Bee. A potter.", "Ghent. A city."]
    [world] = worlds("hotpotqa", "default", None, 1337, "test")
    assert [fact.text for fact in world.facts] == written["hotpotqa"][0]["document"].split("\n\n")
    texts = [fact.text for world in worlds("squad", "every", None, 1337, "test") for fact in world.facts]
    assert texts == [article["context"] for article in ARTICLES]


@PUBLIC
@pytest.mark.parametrize(
    ("suite", "facts", "items"),
    [("squad", 2067, 10570), ("hotpotqa", 2972, 300), ("twowiki", 6119, 101), ("factconsolidation", 455, 200)],
)
def test_the_public_files_are_read_completely(suite, facts, items):
    [world] = worlds(suite, "every" if suite == "squad" else "default", None, 1337, "test")
    assert (len(world.facts), len(world.items)) == (facts, items)
    assert len({fact.id for fact in world.facts}) == facts and len({item.id for item in world.items}) == items
    some = world.items[:: max(1, items // 100)]
    findings = rules([type(world)(world.id, world.facts, tuple(some))], get_suite(suite), 0)
    assert {finding.rule for finding in findings} <= {"answer hidden", "answer stated", "answer told", "one gold"}, findings[:3]
