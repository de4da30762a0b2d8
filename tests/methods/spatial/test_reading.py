"""What sentences tell of places, and what questions ask of a map."""

import json
from collections import defaultdict
from pathlib import Path

import networkx as nx
import pytest
import yaml

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.reading import (
    Barrier,
    Link,
    MapQuery,
    PlaceRef,
    Route,
    There,
    VisitStatement,
    Walk,
    asked,
    mark,
    place_names,
    read,
)

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


DATA = Path(__file__).parents[3] / "data" / "ways"
NAMED = (
    "Opposite the old quay you see Saint Bride's.",
    "From Saint Bride's a tunnel leads to the barn.",
    "The door between the old quay and the barn is bricked up.",
    "Mr Finch likes the barn.",
)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_names_are_several_words_or_proper_and_no_people():
    names = place_names(NAMED)
    assert names == {"saint_brides": "Saint Bride's", "old_quay": "old quay"}
    assert mark("From Saint Bride's to the old quay", names) == "From the saint_brides to the old_quay"


def test_a_way_goes_over_such_names_and_around_a_closed_door():
    reply = MapAnswerer(NAMED).answer("Which places lie on the way from the old quay to the barn?")
    assert reply and reply.answer == "Saint Bride's, barn"


def test_a_named_route_is_no_place():
    assert place_names(["The milk round goes from the mill: north, east.", "The barn lies east of the mill."]) == {}


@pytest.mark.parametrize("folder", [DATA, DATA / "val"], ids=["test", "val"])
def test_each_question_has_one_shortest_way_over_its_gold_facts(folder):
    graphs: dict[str, nx.Graph] = defaultdict(nx.Graph)
    for fact in rows(folder / "facts.jsonl"):
        if "a" in fact["slots"]:
            graphs[fact["world"]].add_edge(fact["slots"]["a"], fact["slots"]["b"], fact=fact["id"])
    for item in rows(folder / "items.jsonl"):
        graph = graphs[item["world"]]
        ends = {fact: edge for *edge, fact in graph.edges(data="fact")}
        path = nx.Graph([ends[fact] for fact in item["gold_facts"]])
        start, goal = (label for label, degree in path.degree if degree == 1)
        assert len(list(nx.all_shortest_paths(graph, start, goal))) == 1
        assert nx.shortest_path_length(graph, start, goal) == len(item["gold_facts"]) == item["hops"]


def test_the_frames_of_the_two_splits_differ():
    test, val = (yaml.safe_load((folder / "frames.yaml").read_text(encoding="utf-8")) for folder in (DATA, DATA / "val"))
    for kind in ("places", "directions", "distractors", "closed"):
        assert not set(test[kind]) & set(val[kind])


def test_every_link_of_the_validation_worlds_is_read():
    worlds: dict[str, list[str]] = {}
    for fact in rows(DATA / "val" / "facts.jsonl"):
        worlds.setdefault(fact["world"], []).append(fact["text"])
    atlases = {world: MapAnswerer(texts) for world, texts in worlds.items()}
    for item in rows(DATA / "val" / "items.jsonl"):
        reply = atlases[item["world"]].answer(item["question"])
        assert reply and reply.answer.lower() in [answer.lower() for answer in item["answers"]], item["question"]
