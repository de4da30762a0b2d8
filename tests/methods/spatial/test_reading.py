"""What sentences tell of places, and what questions ask of a map."""

import pytest

from hippo_core.methods.spatial.reading import Barrier, Link, MapQuery, PlaceRef, Route, There, VisitStatement, Walk, asked, read

TEXTS = {
    "The barn lies east of the well.": Link("well", "barn", "east"),
    "A step north of the mill is the well.": Link("mill", "well", "north"),
    "From the mill one gets north along the towpath to the barn.": Link("mill", "barn", "north", "towpath"),
    "Between the pier and the cabin one goes by the ferry.": Link("pier", "cabin", by="ferry"),
    "Nothing lies between the forge and the jetty.": Link("forge", "jetty"),
    "The lane between the forge and the jetty is closed now.": Link("forge", "jetty", closed=True),
    "A hedge blocks the way north of the mill.": Barrier("mill", "north"),
    "Lea starts at the mill.": Walk("Lea", "mill"),
    "Lea strolls north.": Walk("Lea", word="north"),
    "The milk round goes from the mill: north, east.": Route("milk round", "mill", ("north", "east")),
    "There is a lamp at the mill.": There("mill", "a lamp"),
    "Rain fell at the mill.": There("mill"),
    "The lane from the mill to the mill.": None,  # a place is not beside itself
    "Ben gave Anna a lamp.": None,
    "": None,
}


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_sentence_tells_of_places(text):
    assert read(text) == TEXTS[text]


def test_a_step_of_an_explorer_says_where_it_led_what_is_open_and_what_is_seen():
    texts = read(
        "Step 7: Going north over the footbridge, I came to the mill. The way was free to the east and south, and barred to the north and "
        "west. To the east I could see the barn."
    )
    assert texts == VisitStatement(7, "north", "footbridge", "mill", frozenset(("east", "south")), {"east": "barn"})
    first = read("Step 1: I began at an unmarked place. One could go on to the north.")
    assert first == VisitStatement(1, "", "", "", frozenset(("north",)), {})


ASKED = {
    "Which directions lead from the mill to the barn?": MapQuery("way", PlaceRef("mill"), PlaceRef("barn")),
    "List the places on the shortest way from the mill up to the barn.": MapQuery(
        "way", PlaceRef("mill"), PlaceRef("barn"), in_places=True
    ),
    "How does one get to the barn from the mill?": MapQuery("way", PlaceRef("mill"), PlaceRef("barn")),
    "By which turns does one get from the mill next to the pier to the barn?": MapQuery("way", PlaceRef("mill", "pier"), PlaceRef("barn")),
    "How many steps is it from the mill to the barn?": MapQuery("count", PlaceRef("mill"), PlaceRef("barn")),
    "By what does one get from the mill to the barn?": MapQuery("by", PlaceRef("mill"), PlaceRef("barn")),
    "Which place is north of the mill?": MapQuery("neighbor", PlaceRef("mill"), word="north"),
    "In which directions can one leave the mill?": MapQuery("exits", PlaceRef("mill")),
    "Where is Lea now, having left the mill?": MapQuery("where", PlaceRef("mill"), who="Lea"),
    "What does the mill hold?": MapQuery("there", PlaceRef("mill"), thing=True),
    "How does the milk round go from the mill?": MapQuery("route", PlaceRef("milk round")),
    "Who gave Anna the lamp in the mill?": None,
    "Who is Ben?": None,
}


@pytest.mark.parametrize("question", ASKED)
def test_what_a_question_asks_of_a_map(question):
    assert asked(question, {"Lea"}, {"milk round"}) == ASKED[question]
