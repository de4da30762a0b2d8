"""Statements of places, walks and questions that no pattern reads, and what a world says as a whole."""

import numpy as np
import pytest

from hippo_core.methods.base import Query
from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.encoder import SAYS
from hippo_core.methods.spatial.learned import PlaceReading, fitted_places, layout_conflicts, likely_question, read_world
from hippo_core.methods.spatial.localise import localise
from hippo_core.methods.spatial.place_map import build_map
from hippo_core.methods.spatial.reading import Link, VisitStatement, place_nouns, read
from hippo_core.methods.spatial.spans import PlaceNames
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from tests.methods.asking import bound, needs_minilm
from tests.methods.relational.test_graph import traces


class Planted:
    """A reader that says what it is told of texts: of their first two places one of SAYS, by so many nats, and where one stands; and that
    all questions ask the same."""

    def __init__(self, asks="way", **planted):
        self.asks = asks
        self.planted = {text.replace("_", " "): value for text, value in planted.items()}

    def read(self, texts, places=None):
        return [self.reading(text) for text in texts]

    def names(self, texts):
        return PlaceNames({}, frozenset(noun for text in texts for noun, _ in place_nouns(text)))

    def reading(self, text):
        nouns = tuple(dict.fromkeys(noun for noun, _ in place_nouns(text)))
        kind, lead, stands = next((value for word, value in self.planted.items() if word in text), ("none", 5.0, 1.0))
        says = np.full((len(nouns), len(nouns), len(SAYS)), -lead - 1 - np.log(4))
        says[..., SAYS.index(kind)] = -1.0
        return PlaceReading(nouns, says, np.full((len(nouns), len(nouns)), stands), ("other",) * len(nouns), (), 0.0, {self.asks: 1.0})


def read_texts(texts, **planted):
    return read_world(texts, [read(text) for text in texts], Planted(**planted))


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        ("link", Link("fen", "inn")),
        ("forward", Link("fen", "inn", one_way=True)),
        ("back", Link("inn", "fen", one_way=True)),
        ("closed", Link("fen", "inn", closed=True)),
        ("opened", Link("fen", "inn")),
        ("doubt", Link("fen", "inn", doubt=4.0)),
    ],
)
def test_a_link_is_what_the_statement_says(kind, link):
    assert read_texts(["The fen outshines the inn."], outshines=(kind, 5.0, 1.0)) == [[link]]


def test_what_says_nothing_of_a_link_is_none_even_where_a_pattern_reads_one():
    text = "A lane goes from the fen to the inn."
    assert read_texts([text], lane=("link", 5.0, 1.0)) == [[Link("fen", "inn")]]
    assert read_texts([text], lane=("none", 0.5, 1.0)) == [[Link("fen", "inn")]]
    assert read_texts([text], lane=("none", 5.0, 1.0)) == [[]]


def test_a_link_leads_one_way_only_where_that_is_clearly_likelier():
    for lead, one_way in ((0.5, False), (5.0, True)):
        assert read_texts(["The fen outshines the inn."], outshines=("forward", lead, 1.0)) == [[Link("fen", "inn", one_way=one_way)]]


def test_a_statement_tells_all_of_its_links():
    texts = ["The fen befits the inn and the mill.", "The mill befits the fen.", "The inn is old. The mill is old."]
    links = read_texts(texts, befits=("link", 5.0, 1.0))
    ends = [[{one.origin, one.goal} for one in own] for own in links]
    assert ends == [[{"fen", "inn"}, {"fen", "mill"}, {"inn", "mill"}], [{"mill", "fen"}], []]


def test_the_nearly_likely_is_a_link_where_the_map_would_fall_apart():
    texts = ["A lane goes by the shop from the fen to the inn.", "The inn befits the mill.", "The mill befits the fen."]
    nearly = read_texts(texts, lane=("link", 5.0, 1.0), befits=("none", 1.0, 1.0))  # four kinds of a link are together one nat less likely
    assert [bool(own) for own in nearly] == [True, True, False]
    assert nearly[1][0].doubt == pytest.approx(1.17, abs=0.01)
    assert read_texts(texts[1:], befits=("none", 1.0, 1.0)) == [[], []]  # there is no map that could fall apart
    assert read_texts(texts, lane=("link", 5.0, 1.0), befits=("none", 3.0, 1.0))[1:] == [[], []]


def test_links_are_turned_until_they_fit_on_a_grid():
    true = [Link("fen", "inn", "north"), Link("inn", "mill", "east"), Link("mill", "kiln", "south"), Link("fen", "kiln", "east")]
    assert layout_conflicts(true) == 0
    texts = [f"The {one.goal} is {one.word} of the {one.origin}." for one in true]
    planted = {
        "inn is": ("link", 5.0, -9.0),
        "mill is": ("link", 5.0, 0.1),
        "kiln is south": ("link", 5.0, -9.0),
        "kiln is east": ("link", 5.0, -9.0),
    }

    class Turns(Planted):
        def reading(self, text):
            made = super().reading(text)
            word = next(word for word in ("north", "east", "south") if word in text)
            return PlaceReading(*[getattr(made, name) for name in ("nouns", "says", "stands", "roles")], ((word, "gone"),), 0.0, made.asks)

    read_links = read_world(texts, [None] * 4, Turns(**planted))
    assert [own[0] for own in read_links] == true


@pytest.mark.parametrize("one_way", [True, False])
def test_a_link_of_one_direction_is_walked_that_way_alone(one_way):
    links = [Link("fen", "inn", one_way=one_way), Link("inn", "mill"), Link("mill", "fen")]
    link_map = build_map(enumerate(links))
    assert ("fen" in link_map.steps["inn"].values()) is not one_way
    assert "inn" in link_map.steps["fen"].values()
    assert "fen" in build_map(enumerate([*links, Link("inn", "fen")])).steps["inn"].values()  # it was told later that one gets back


@pytest.mark.parametrize("sure_first", [True, False])
def test_of_two_places_told_to_one_side_the_surer_keeps_the_direction(sure_first):
    links = [Link("mill", "inn", "north"), Link("mill", "fen", "north", doubt=0.3)]
    link_map = build_map(enumerate(links if sure_first else links[::-1]))
    assert link_map.steps["mill"]["north"] == "inn"


def test_a_step_that_says_nothing_of_its_sides_closes_none():
    sides = frozenset(("north", "south"))
    walk = [
        VisitStatement(1, "", "", "fen", sides),
        VisitStatement(2, "north", "", "inn", None),
        VisitStatement(3, "south", "", "fen", sides),
    ]
    assert localise(walk).cells == ((0, 0), (-1, 0), (0, 0))


TEXTS = (
    "You come out of the kiln and the abbey is right there, no door between them.",
    "A plank lets you slip from the kiln over to the ford, either way.",
    "The ford is uglier than the abbey.",
)


@needs_minilm
def test_ways_in_words_that_no_pattern_reads():
    atlas = MapAnswerer(TEXTS, reader=fitted_places())
    reply = atlas.answer("I am at the abbey and need to be at the ford. Where do I go along?")
    assert reply and reply.answer == "kiln, ford"
    assert atlas.answer("Which is uglier, the ford or the abbey?") is None


LANES = (
    "A lane goes from the fen to the inn.",
    "A lane goes from the inn to the mill.",
    "A lane goes from the ford to the fen.",
    "The ford is barred from the fen.",
)


@pytest.mark.parametrize(
    ("asks", "question", "answer"),
    [
        ("way", "From the fen, bound for the mill?", "inn, mill"),
        ("distance", "Steps, the fen, the mill?", "two"),
        ("next", "Out of the fen, with the mill in mind?", "inn"),
        ("reach", "The fen, the mill, possible?", "yes"),
        ("reach", "The fen, the ford, possible?", "no"),
        ("nearer", "From the fen, the inn or the mill?", "inn"),
        ("nearer", "From the fen, the mill or the ford?", "mill"),
        ("none", "Is the fen older than the mill?", None),
    ],
)
def test_a_question_is_what_the_reader_says_that_it_asks(asks, question, answer):
    atlas = MapAnswerer(LANES, reader=Planted(asks, lane=("link", 5.0, 1.0), barred=("closed", 5.0, 1.0)))
    reply = atlas.answer(question)
    assert (reply.answer if reply else None) == answer


WALK = (
    "{}we set out from the kiln. Exits: north and east.",
    "{}off north it was, to the abbey. Exits: south and east; no exit: north and west.",
    "{}turning east, we reached the ford. Exits: west and south; no exit: north.",
    "{}a step south brought us to the barn. Exits: north and west.",
)


@needs_minilm
@pytest.mark.parametrize("markers", [("Move {}: ", 1), ("({}) ", 5), ("", 0), ("Entry {}. ", 10)])
def test_a_walk_is_read_whatever_numbers_its_steps(markers):
    form, first = markers
    texts = [text.format(form.format(first + number)) for number, text in enumerate(WALK)]
    atlas = MapAnswerer([text[0].upper() + text[1:] for text in texts], reader=fitted_places())
    assert [visit.place for _, visit in atlas.visits] == ["kiln", "abbey", "ford", "barn"]
    reply = atlas.answer("Which directions lead from the kiln to the barn?")
    assert reply and reply.answer == "east"


@needs_minilm
def test_a_question_asks_from_where_one_stands():
    reader = fitted_places()
    for a, b in (("fen", "inn"), ("inn", "fen")):
        reply = likely_question(f"I am at the {a}, how do I get myself over to the {b}?", {"fen", "inn"}, set(), reader)
        assert reply and reply.goal and (reply.kind, reply.start.label, reply.goal.label) == ("way", a, b)


@needs_minilm
@pytest.mark.parametrize(("reading", "answer"), [("auto", "kiln, ford"), ("patterns", "none")])
def test_the_memory_reads_by_the_fitted_reader_unless_it_is_told_not_to(reading, answer):
    texts = traces(*TEXTS)
    method = bound("memory/smpd", load(load_spec("hippo-tiny"), threads=1), **{"encoder": "minilm", "spatial.reading": reading})
    question = "Which places does one pass on the way from the abbey to the ford?"
    assert method.open(texts)(Query(question, tuple(trace.source for trace in texts))).answer == answer
