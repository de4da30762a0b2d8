"""Rooms of what people wrote: a question is about the sentence that answers it, no article of another split is read, near misses differ."""

from random import Random

import pytest
import torch

from hippo_core.suites.natural import squad
from hippo_core.text_files import read_text
from recipes import natural_rooms
from recipes.key import KeyRecipe, PieceRecipe, States, fit_pieces, principal

RECIPE = KeyRecipe(facts=40, cues=12)
OTHERS = {"saw": natural_rooms.Exchanges((), ()), "founded": natural_rooms.Exchanges(("begun",), ("forgotten",))}


@pytest.fixture
def texts(made_up_texts, monkeypatch):
    monkeypatch.setattr(
        natural_rooms, "others_of", lambda plain, never: {name: exchanges for name, exchanges in OTHERS.items() if name not in never}
    )
    return natural_rooms.load_texts()


def test_a_question_is_about_a_sentence_with_its_answer(texts, monkeypatch):
    monkeypatch.setattr(natural_rooms, "PERTURBED", 0.0)
    articles = squad.parse(read_text(squad.FILE))
    answers = {question: answer for article in articles for _, asked in article.passages for question, answer in asked}
    train = {question for article in squad.of_split(articles, "train") for _, asked in article.passages for question, _ in asked}
    kinds = set()
    for number in range(20):
        batch = natural_rooms.draw_article(Random(number), RECIPE, texts)
        for (question, gold), extra_positives in zip(batch.cues, batch.extra_positives, strict=True):
            assert question in train and answers[question] in batch.facts[gold] and gold not in extra_positives
            kinds.add(bool(extra_positives))
    assert kinds == {True, False}


def test_plain_rooms_have_near_misses_and_cues_of_what_is_told(texts, monkeypatch):
    monkeypatch.setattr(natural_rooms, "NEIGHBOURS", 0.0)
    monkeypatch.setattr(natural_rooms, "perturbed", lambda random, text, texts: text)
    batch = natural_rooms.draw_plain(Random(1), RECIPE, texts)
    assert len(batch.facts) <= RECIPE.facts and len(set(batch.facts)) == len(batch.facts)
    for question, gold in batch.cues:
        assert question.endswith(batch.facts[gold])


def test_the_sentence_before_or_after_is_a_cue_and_no_other_of_its_text_is_wrong(texts, monkeypatch):
    monkeypatch.setattr(natural_rooms, "NEIGHBOURS", 1.0)
    monkeypatch.setattr(natural_rooms, "perturbed", lambda random, text, texts: text)
    batch = natural_rooms.draw_plain(Random(2), RECIPE, texts)
    near = [
        (question, gold, extra_positives)
        for (question, gold), extra_positives in zip(batch.cues, batch.extra_positives, strict=True)
        if extra_positives
    ]
    assert near
    for question, gold, extra_positives in near:
        assert batch.facts.index(question) in extra_positives and abs(batch.facts.index(question) - gold) == 1


def test_words_are_exchanged_for_such_as_are_given(texts):
    def synonyms_of(word):
        return texts.others[word].synonyms if word in texts.others else ()

    exchanged_texts = {natural_rooms.exchanged(Random(number), "It was founded in Rome.", synonyms_of, 0.5) for number in range(20)}
    assert exchanged_texts == {"It was founded in Rome.", "It was begun in Rome."}
    assert "founded" not in natural_rooms.load_texts({"founded"}).others


def test_marks_of_wikitext_are_mended():
    assert (
        natural_rooms.mended(' A role @-@ playing game ( 2011 ) , " Nameless " , of 1 @,@ 500 .')
        == 'A role-playing game (2011), "Nameless", of 1,500.'
    )


def test_rooms_of_both_kinds_are_drawn(texts):
    draw, random = natural_rooms.mixing(texts), Random(5)
    drawn = [draw(random, RECIPE).facts for _ in range(30)]
    written = {sentence for article in texts.articles for passage in article for sentence in passage.sentences} | {
        sentence for text in texts.plain for sentence in text
    }
    of_people = [any(fact in written for fact in facts) for facts in drawn]
    assert {True, False} == set(of_people)


def test_a_projection_learns_what_tells_facts_apart():
    """Facts are told apart by two of twelve directions, the others are noise of every piece."""
    made, random = torch.Generator().manual_seed(3), Random(3)

    def piece(mark):
        row = 0.5 * torch.randn(12, generator=made)
        row[:2] = torch.tensor([torch.tensor(mark).cos(), torch.tensor(mark).sin()])
        return row

    def states():
        marks = [float(number) for number in range(6)]
        facts = [torch.stack([piece(mark), piece(9.0)]) for mark in marks]
        return States(facts, [piece(mark)[None] for mark in marks], list(range(6)), ((),) * 6)

    def first(head, some):
        right = 0
        for states_of_batch in some:
            for cue, gold in zip(states_of_batch.cues, states_of_batch.gold, strict=True):
                right += int(max(range(6), key=lambda fact: float((head(cue) @ head(states_of_batch.facts[fact]).T).max())) == gold)
        return right / (6 * len(some))

    torch.manual_seed(1)
    seen, asked = [states() for _ in range(40)], [states() for _ in range(10)]
    untrained = fit_pieces(random, seen, PieceRecipe(steps=0, width=4), lambda _: None)
    trained = fit_pieces(random, seen, PieceRecipe(steps=300, width=4, rate=3e-2, dropout=0.0), lambda _: None)
    assert first(trained, asked) > first(untrained, asked) + 0.3
    assert torch.allclose(principal(seen, 4) @ principal(seen, 4).T, torch.eye(4), atol=1e-5)
