"""The relational memory with its fitted reader: words that nothing was written for, and what changes the answer."""

from itertools import pairwise, product

import pytest

from hippo_core.methods import versions
from hippo_core.methods.relational.edge import Attestation
from hippo_core.methods.relational.encoder import HOPS, Marked, cuts
from hippo_core.methods.relational.graph import ConflictClaim, Graph
from hippo_core.methods.relational.learned import EitherSearch, LearnedSearch
from hippo_core.methods.relational.name_finder import TaggedNames, key_of, tagged_spans
from hippo_core.methods.relational.path_search import PathSearch, claim_in_force
from hippo_core.methods.relational.paths import Search
from hippo_core.methods.relational.statement_reader import fitted_reader
from tests.methods.asking import needs_minilm
from tests.methods.relational.test_graph import traces
from tests.methods.relational.test_method import retrieve


@pytest.fixture(scope="module")
def search():
    return lambda *texts: PathSearch(fitted_reader(), texts)


HOUSE = (
    "Vera Holt has run the Copper Kettle since spring.",
    "The Copper Kettle gets its bread from Dunmore Bakery.",
    "Igor Pell is the one who keeps the books at Dunmore Bakery.",
    "Igor Pell went to school in Larkhill.",
    "The roof of the Copper Kettle was mended by Bram Ulster.",
)


def answer(search, question, *texts):
    paths = search(*texts).best(question)
    return paths[0] and search(*texts).names[paths[0].end] if paths else None


@needs_minilm
def test_the_answer_follows_what_was_told(search):
    other = [text.replace("Igor Pell", "Mona Reed") for text in HOUSE]
    assert answer(search, "Who is the bookkeeper of the bakery that supplies the Copper Kettle?", *other) == "Mona Reed"


@needs_minilm
def test_what_is_told_later_replaces_what_was_so(search):
    texts = ("Nils Farrow lives in Brent.", "Ada Moor lives in Brent.", "Nils Farrow has moved to Skelby.")
    assert answer(search, "Where does Nils Farrow live now?", *texts) == "Skelby"
    assert answer(search, "Where does Ada Moor live?", *texts) == "Brent"


WORLD = (
    "Dr. Aoife O'Neill runs the mill.",
    "O'Neill's mill stands on Harbour Street, says Dr. O'Neill.",
    "Иван Петрович lives in 東京.",
    "Minster of St. Ebba was built by Vell & Sons.",
    "The Moth Watchers meet at the law firm on the square.",
    "Nobody rents the old dairy now but Ann Bell.",
)


@needs_minilm
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Is O'Neill there?", ["dr aoife o'neill"]),
        pytest.param("Who owns the mill?", ["mill"], marks=pytest.mark.xfail(strict=True, reason="a single noun is often missed")),
        ("Where does Иван Петрович live, in 東京?", ["иван петрович", "東京"]),
        ("Is Minster of St. Ebba old?", ["minster of st ebba"]),
        ("What did Vell & Sons build?", ["vell & sons"]),
        ("When did the Moth Watchers meet?", ["moth watchers"]),
        ("Who rents the old dairy?", ["old dairy"]),
    ],
)
def test_names_of_many_kinds_are_known_again(search, text, names):
    assert [span.key for span in search(*WORLD).named(text)] == names


def test_two_names_that_are_taken_for_one_are_two():
    texts = ["It is Rashid Moss Linnea Young copies from.", "Rashid Moss sings.", "Linnea Young and Rashid Moss met.", "Linnea Young left."]
    spans = [[(6, 30)], [(0, 11)], [(0, 12), (17, 28)], [(0, 12)]]
    assert [span.key for span in TaggedNames.of(texts, spans).find(texts[0])] == ["rashid moss", "linnea young"]


def test_a_common_word_is_no_name():
    names = TaggedNames.of(["Ann or Bo left."], [[(0, 3), (4, 6), (7, 9)]])
    assert [span.key for span in names.find("Ann or Bo?")] == ["ann", "bo"]


@needs_minilm
def test_a_noun_of_a_question_that_nobody_told_of_is_a_word_of_it(search, monkeypatch):
    world_search = search(*WORLD)
    monkeypatch.setattr(world_search.reader, "names", lambda texts: [[(10, 13), (18, 24)]])
    assert world_search.named("Which old sea has Kraken?") == [(18, 24, "kraken")]


def test_what_a_name_is_called_does_not_depend_on_how_it_is_written():
    assert {key_of(name) for name in ("The Old Mill", "old mill", "the old mill's")} == {"old mill"}


def test_a_name_is_known_again_by_a_part_of_it_and_behind_the():
    texts = ["Dr. Aoife O'Neill rents the mill.", "O'Neill lives here.", "A mill burnt.", "The mill is old."]
    spans = [[(0, 17), (28, 32)], [(0, 7)], [], [(4, 8)]]
    names = TaggedNames.of(texts, spans)
    keys = [[span.key for span in names.find(text, own)] for text, own in zip(texts, spans, strict=True)]
    assert keys == [["dr aoife o'neill", "mill"], ["dr aoife o'neill"], [], ["mill"]]


def test_what_the_tagger_takes_for_a_name_in_few_of_its_places_is_none():
    texts = ["The shore is near.", "We saw the shore.", "Nobody left the shore."]
    assert TaggedNames.of(texts, [[(4, 9)], [], []]).find(texts[1]) == []


@pytest.mark.parametrize(
    ("text", "labels", "names"),
    [
        ("Vera Holt ran.", {0: 1, 5: 2}, ["Vera Holt"]),
        ("Vera, Holt ran.", {0: 1, 6: 2}, ["Vera, Holt"]),
        ("Vera, Holt ran.", {0: 1, 6: 1}, ["Vera", "Holt"]),
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
    logits[range(8), wanted] = 4.0
    [(best, tags), *others] = cuts(logits, marked, doubt=100.0, most=1000)
    assert tags == wanted
    assert all(best >= likely for likely, _ in others)
    assert all(one >= other - 1e-9 for (one, _), (other, _) in pairwise(others))
    assert len({tags for _, tags in others}) == len(others)
    assert {len(marked.hops(tags)) for _, tags in others} == set(range(1, HOPS + 1))
    assert all(tags[4] == 1 for _, tags in others)


def test_the_cuts_that_are_found_are_the_likeliest_of_all():
    """Against all ways to nest intervals around the name."""
    import torch

    torch.manual_seed(3)
    marked = Marked(tuple(range(6)), (0, 0, 0, 1, 0, 0), tuple(range(6)))
    logits = torch.randn(6, HOPS + 1)
    likely, name = logits.double().log_softmax(-1), 3
    worth = {}
    for inner_tags in product(range(HOPS + 1), repeat=4):
        tags = (0, *inner_tags, 0)
        around = [
            [position for position in range(1, 5) if position == name or 0 < tags[position] <= hop] for hop in range(1, max(tags) + 1)
        ]
        nested = all(of == [*range(of[0], of[-1] + 1)] and len(of) > size for of, size in zip(around, [1, *map(len, around)], strict=False))
        if tags[name] == 1 and nested:
            worth[tags] = float(sum(likely[position, tags[position]] for position in range(1, 5) if position != name))
    likeliest = cuts(logits, marked, doubt=100.0, most=1000)
    assert {tags for _, tags in likeliest} == worth.keys()
    assert [likely - likeliest[0][0] for likely, _ in likeliest] == pytest.approx(
        [worth[tags] - worth[likeliest[0][1]] for _, tags in likeliest]
    )


@needs_minilm
def test_the_surer_of_both_readings_answers():
    """Each reading answers what it alone can read, and is unsure of the other."""
    graph = Graph.of(traces("Omar bought a lamp from the Marlow shop.", "The Marlow shop is in Oslo.", *HOUSE))
    search = EitherSearch(Search(graph, encoder="minilm"), LearnedSearch(fitted_reader(), graph))
    asked = {"In which city did Omar buy a lamp?": "Oslo", "Who supplies the Copper Kettle with bread?": "Dunmore Bakery"}
    for question, answer in asked.items():
        best, confidences = (
            search.best(question)[0],
            [one.confidence(question, one.best(question)[0]) for one in (search.patterns, search.learned)],
        )
        assert search.names[best.end] == answer
        assert search.of(best).confidence(question, best) == max(confidences) > min(confidences)
    assert search.best("Who?") == []


@needs_minilm
def test_the_memory_reads_by_both_and_shows_the_likest_statements_where_neither_has_a_path(tiny, monkeypatch):
    _, retrieved = retrieve(tiny, HOUSE, "Who is the bookkeeper of the bakery that supplies the Copper Kettle?", encoder="minilm")
    assert [trace.text for trace in retrieved.shown] == [HOUSE[1], HOUSE[2]]
    assert retrieved.answer == "Igor Pell"
    _, retrieved = retrieve(tiny, HOUSE, "who bakes?", encoder="minilm")
    assert retrieved.shown
    assert retrieved.answer == retrieved.restated == ""
    texts = ("Kim drinks coffee in the morning.", "Actually, Kim drinks tea in the morning.", "Kim drinks milk at night.")
    alone = {texts[0]: ("coffee", -5.0), texts[1]: ("tea", -5.0), texts[2]: ("unknown", 5.0)}
    monkeypatch.setattr(versions, "_read_alone", lambda lm, query, of, decoding: (*zip(*(alone[text] for text in of), strict=True), 9.0))
    _, retrieved = retrieve(tiny, texts, "what is drunk in the morning?", encoder="minilm", k=1)
    assert retrieved.computed_tokens == 9.0 and [trace.text for trace in retrieved.replaced] == [texts[0]]
    assert (retrieved.ranking[0].text, [trace.text for trace in retrieved.shown]) == (texts[0], [texts[1]])


def claims(*rows):
    """(tail, how surely, whether it replaces, teller)."""
    return [
        ConflictClaim(number, tail, Attestation(teller, number, confidence, replaces))
        for number, (tail, confidence, replaces, teller) in enumerate(rows)
    ]


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
    assert claim_in_force(claims(*said)).tail == now
    former = claim_in_force(claims(*said), before=True)
    assert (former and former.tail) == before
