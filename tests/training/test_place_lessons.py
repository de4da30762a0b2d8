"""Lessons for the reader of place statements: the labels are those of the frame, in whichever order it names its places."""

import pytest

from hippo_core.methods.relational.encoder import Marker
from hippo_core.methods.spatial.encoder import ROLES, SAYS, TURNS
from hippo_core.models import minilm
from hippo_core.models.packages.pins import available
from recipes.place_encoder import marked, named, says_of, stands_of
from recipes.place_lessons import PlaceLessons, Text, listed, place, turn, word

needs_minilm = pytest.mark.skipif(bool(available("minilm")), reason="`make models` brings MiniLM")


def statement_text(frame, says, a="the mill", b="the barn"):
    text = Text(says={(a, b): says})
    text.add(frame, {"a": place(a), "b": place(b), "direction": turn("north", "gone")})
    return text


@pytest.mark.parametrize(
    ("frame", "says", "label"),
    [
        ("From {a} to {b}.", "forward", "forward"),
        ("{b} is reached from {a}.", "forward", "back"),
        ("{b} is reached from {a}.", "closed", "closed"),
        ("{b} is reached from {a}.", "link", "link"),
    ],
)
def test_what_leads_one_way_is_labelled_by_the_order_of_the_places(frame, says, label):
    assert says_of(statement_text(frame, says)) == [(0, 1, SAYS.index(label))]


def test_where_one_stands_is_labelled_by_the_order_of_the_places():
    for frame, first in (("{direction} of {a} is {b}.", 1.0), ("{b} is {direction} of {a}.", 0.0)):
        text = statement_text(frame, "link")
        text.stands[frozenset(("the mill", "the barn"))] = "the mill"
        assert stands_of(text) == [(0, 1, first)]


def test_places_that_a_text_does_not_join_are_labelled_as_apart():
    text = statement_text("From {a} to {b}.", "link")
    text.add(" {a} is old.", {"a": place("Kiln Lane")})
    assert [SAYS[says] for _, _, says in says_of(text)] == ["link", "none", "none"]
    assert text.text == "From the mill to the barn. Kiln Lane is old."


def test_what_is_taken_for_a_place_leads_nowhere():
    text = Text(says={("the mill", "the barn"): "link"})
    text.add("From {a} over {means} to {b}.", {"a": place("the mill"), "b": place("the barn"), "means": word("the plank")})
    assert says_of(text) == [(0, 1, SAYS.index("link"))]
    text.mistaken = True
    assert text.places == ["the mill", "the plank", "the barn"]
    assert [SAYS[says] for *_, says in says_of(text)] == ["none", "link", "none"]
    assert [name for *_, name in text.spans] == ["the mill", "the barn"]


@needs_minilm
def test_pieces_are_labelled_where_a_name_or_a_direction_stands():
    marker = Marker(minilm.copied()[0])
    text = statement_text("{direction} of {a} lies {b}.", "link", a="Saint Olave's", b="the old mill")
    text.add(" Exits: {open}.", {"open": listed(["east", "west"], "open")})
    [plain] = marker.unmarked([text.text])
    names = [text.text[at : at + 5] for at, label in zip(plain.starts, named(text, plain), strict=True) if label == 1]
    assert names == ["Saint", "old m"]
    [pieces], [turns] = marked([text], marker)
    assert [text.text[pieces.starts[at] :][:4] for at in turns] == ["Nort", "east", "west"]
    assert [TURNS[label] for _, label in text.turns] == ["gone", "open", "open"]


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_step_is_labelled_by_what_happens_on_it(split):
    lessons = PlaceLessons(split, 3)
    steps = [text for number in range(200) if (text := lessons(number)).tells == 1]
    assert steps and all({TURNS[label] for _, label in text.turns} <= {"gone", "fails", "open", "walled", "seen"} for text in steps)
    assert {ROLES[role] for text in steps for role in text.roles.values()} == {"here", "back", "seen", "stays"}
