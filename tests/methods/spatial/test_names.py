"""Names of places of several words, and the suite of ways in words of no suite."""

import json
from collections import defaultdict
from pathlib import Path

import networkx as nx
import pytest
import yaml

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.reading import mark, place_names

DATA = Path(__file__).parents[3] / "data" / "ways"
TEXTS = (
    "Opposite the old quay you see Saint Bride's.",
    "From Saint Bride's a tunnel leads to the barn.",
    "The door between the old quay and the barn is bricked up.",
    "Mr Finch likes the barn.",
)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_names_are_several_words_or_proper_and_no_people():
    names = place_names(TEXTS)
    assert names == {"saint_brides": "Saint Bride's", "old_quay": "old quay"}
    assert mark("From Saint Bride's to the old quay", names) == "From the saint_brides to the old_quay"


def test_a_way_goes_over_such_names_and_around_a_closed_door():
    reply = MapAnswerer(TEXTS).answer("Which places lie on the way from the old quay to the barn?")
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
