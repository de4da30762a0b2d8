"""The relational memory with its fitted reader: words that nothing was written for, and what changes the answer."""

import pytest

from hippo_core.methods.relational.encoder import HOPS, Marked, partings
from hippo_core.methods.relational.name_finder import TaggedNames, tagged_spans
from hippo_core.methods.relational.path_search import Claim, Step, decided
from hippo_core.models.packages.pins import available

needs_reader = pytest.mark.skipif(bool(available("minilm")), reason="MiniLM is not on the disk: `make models`")


@pytest.fixture(scope="module")
def search():
    from hippo_core.methods.relational.path_search import PathSearch
    from hippo_core.methods.relational.statement_reader import fitted_reader

    return lambda *told: PathSearch(fitted_reader(), told)


HOUSE = (
    "Vera Holt has run the Copper Kettle since spring.",
    "The Copper Kettle gets its bread from Dunmore Bakery.",
    "Igor Pell is the one who keeps the books at Dunmore Bakery.",
    "Igor Pell went to school in Larkhill.",
    "The roof of the Copper Kettle was mended by Bram Ulster.",
)


def answer(search, question, *told):
    paths = search(*told).best(question)
    return paths[0] and search(*told).names[paths[0].end] if paths else None


@needs_reader
def test_facts_are_joined_in_words_that_nothing_was_written_for(search):
    assert answer(search, "Who supplies the Copper Kettle with bread?", *HOUSE) == "Dunmore Bakery"
    assert answer(search, "Who is the bookkeeper of the bakery that supplies the Copper Kettle?", *HOUSE) == "Igor Pell"


@needs_reader
def test_the_answer_follows_what_was_told(search):
    other = [text.replace("Igor Pell", "Mona Reed") for text in HOUSE]
    assert answer(search, "Who is the bookkeeper of the bakery that supplies the Copper Kettle?", *other) == "Mona Reed"


@needs_reader
def test_what_is_told_later_replaces_what_was_so(search):
    told = ("Nils Farrow lives in Brent.", "Ada Moor lives in Brent.", "Nils Farrow has moved to Skelby.")
    assert answer(search, "Where does Nils Farrow live now?", *told) == "Skelby"
    assert answer(search, "Where does Ada Moor live?", *told) == "Brent"


def names_in(text, tagged):
    spans = [(text.index(name), text.index(name) + len(name)) for name in tagged]
    return [text[span.start : span.end] for span in TaggedNames.of([text], [spans]).find(text, spans)]


def test_a_name_is_known_again_by_a_part_of_it_and_behind_the():
    told = ["Dr. Aoife O'Neill rents the mill.", "O'Neill lives here.", "A mill burnt.", "The mill is old."]
    spans = [[(0, 17), (28, 32)], [(0, 7)], [], [(4, 8)]]
    names = TaggedNames.of(told, spans)
    assert [[span.key for span in names.find(text, own)] for text, own in zip(told, spans, strict=True)] == [
        ["dr aoife o'neill", "mill"],
        ["dr aoife o'neill"],
        [],
        ["mill"],
    ]


def test_what_the_tagger_takes_for_a_name_in_few_of_its_places_is_none():
    told = ["The shore is near.", "We saw the shore.", "Nobody left the shore."]
    assert TaggedNames.of(told, [[(4, 9)], [], []]).find(told[1]) == []


@pytest.mark.parametrize(
    ("text", "labels", "names"),
    [
        ("Vera Holt ran.", {0: 1, 5: 2}, ["Vera Holt"]),
        ("Vera, Holt ran.", {0: 1, 6: 2}, ["Vera", "Holt"]),
        ("My Uncle's Bees is out.", {0: 1, 3: 2, 11: 2}, ["My Uncle's Bees"]),
        ("Dr. Holt ran.", {0: 1, 4: 2}, ["Dr. Holt"]),
        ("We saw the mill.", {7: 1, 11: 2}, ["mill"]),
        ("We met 東京 there.", {}, ["東京"]),
    ],
)
def test_pieces_that_a_tagger_marks_are_whole_words_in_a_row(text, labels, names):
    assert [text[start:end] for start, end in tagged_spans(text, [*labels], [*labels.values()])] == names


def test_a_question_is_cut_into_hops_around_its_name():
    import torch

    marked = Marked(tuple(range(8)), (0, 0, 0, 0, 1, 0, 0, 0), tuple(range(8)))
    wanted = (0, 2, 2, 1, 1, 1, 2, 0)
    logits = torch.full((8, HOPS + 1), -4.0)
    for place, hop in enumerate(wanted):
        logits[place, hop] = 4.0
    found = partings(logits, marked)
    assert len(found) == HOPS
    assert max(found)[1] == wanted
    assert [len(marked.hops(tags)) for _, tags in found] == [1, 2, 3]
    assert all(tags[4] == 1 for _, tags in found)


def claims(*said):
    """(tail, how surely, whether it replaces, teller)."""
    return [Claim(Step(number, "a", tail), sure, replaces, teller) for number, (tail, sure, replaces, teller) in enumerate(said)]


@pytest.mark.parametrize(
    ("said", "now", "before"),
    [
        ([("x", 0.9, False, "")], "x", None),
        ([("x", 0.9, False, ""), ("y", 0.9, False, "")], "y", "x"),
        ([("x", 0.9, False, "ann"), ("x", 0.9, False, "ben"), ("y", 0.9, False, "cy")], "x", None),
        ([("x", 0.6, False, "ann"), ("y", 0.9, False, "ben"), ("x", 0.6, False, "cy")], "y", "x"),
        ([("x", 0.9, False, "ann"), ("y", 0.9, True, ""), ("x", 0.1, False, "ben")], "y", "x"),
        ([("x", 0.9, False, "ann"), ("y", 0.9, False, "ann")], "y", "x"),
        ([("x", 0.9, False, "ann"), ("x", 0.9, False, "ben"), ("y", 0.9, True, "")], "y", "x"),
    ],
)
def test_what_holds_of_what_was_told(said, now, before):
    assert decided(claims(*said)).step.end == now
    former = decided(claims(*said), before=True)
    assert (former and former.step.end) == before
