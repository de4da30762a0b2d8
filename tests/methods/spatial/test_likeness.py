"""What is read by likeness: of two places, where no pattern reads it."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.memory.likeness import Frame, fit, frames
from hippo_core.files import LabError
from hippo_core.methods.base import Query
from hippo_core.methods.spatial import likeness as likeness_module
from hippo_core.methods.spatial.answers import Atlas
from hippo_core.methods.spatial.likely import likely, likely_way, misfits, turned
from hippo_core.methods.spatial.likeness import Blanked, Likeness, fitted
from hippo_core.methods.spatial.place_map import ToldMap
from hippo_core.methods.spatial.reading import Link, read
from hippo_core.models.load import load
from hippo_core.models.packages.pins import available
from hippo_core.models.spec import load_spec
from tests.methods.asking import bound
from tests.methods.relational.test_graph import traces

ROOT = Path(__file__).parents[3]
needs_minilm = pytest.mark.skipif(bool(available("minilm")), reason="`make models` brings MiniLM")


def of_words(texts):
    """An encoder for tests: which words a text has, hashed."""
    found = np.zeros((len(texts), 384), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            found[row, sum(map(ord, word)) % 384] += 1
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def frame(kind, text, a="mill", b="barn"):
    first = text.index(a) < text.index(b)
    return Frame(kind, text, text, Blanked(text, (a, b) if first else (b, a)), first)


TOLD = [
    frame("link", "The mill nestles north to the barn."),
    frame("link", "North of the mill cowers the barn."),
    frame("link", "The barn cowers north of the mill."),
    frame("closed", "The barn has been severed, like the mill."),
    frame("none", "The barn outshines the mill."),
    frame("none", "The mill outshines the barn."),
    frame("none", "The barn outshines the mill by far."),
    frame("none", "By far the barn outshines the mill."),
    frame("way", "How from the mill does a bee find the barn?"),
    frame("way", "How does a bee find the barn from the mill?"),
    frame("other", "Whether the mill outshines the barn?"),
]
SMALL = Likeness(fit(TOLD, of_words), of_words)


def one(text, likeness=SMALL):
    return likely([text], [read(text)], likeness)[0]


def test_the_order_follows_the_names():
    told = "The {} cowers north of the {}."
    assert one(told.format("fen", "inn")) == Link("inn", "fen", "north")
    assert one(told.format("inn", "fen")) == Link("fen", "inn", "north")
    asked = "How from the {} does a bee find the {}?"
    ways = [likely_way(asked.format(*names), {"fen", "inn"}, SMALL) for names in (("fen", "inn"), ("inn", "fen"))]
    assert [(way.start.label, way.goal.label) for way in ways if way] == [("fen", "inn"), ("inn", "fen")]


def test_what_is_like_no_link_is_none():
    assert one("The fen outshines the inn.") is None
    assert likely_way("Whether the fen outshines the inn?", {"fen", "inn"}, SMALL) is None


def test_with_the_labels_of_frames_changed_the_links_go(monkeypatch):
    monkeypatch.setattr("hippo_core.methods.spatial.likely.LEAN", 0.0)  # these few frames are not sure enough to outweigh it
    other = {"link": "none", "none": "link"}
    changed = [Frame(other.get(told.kind, told.kind), told.verb, told.frame, told.sentence, told.first) for told in TOLD]
    wrong = Likeness(fit(changed, of_words), of_words)
    assert one("The fen nestles north to the inn.") == Link("fen", "inn", "north")
    assert one("The fen nestles north to the inn.", wrong) is None
    assert isinstance(one("The fen outshines the inn.", wrong), Link)


def test_between_places_of_a_compass_what_names_no_direction_is_no_link():
    texts = ["The fen cowers north of the inn.", "The fen nestles to the inn."]
    assert likely(texts, [None, None], SMALL)[1] is None
    assert isinstance(one(texts[1]), Link)


def test_the_nearly_likely_is_a_link_where_the_map_would_fall_apart():
    unsure = Likeness({"told": np.zeros((4481, 3)), "asked": np.zeros((4481, 1)), "begins": np.zeros((4481, 1))}, of_words)
    texts = ["A lane goes by the shop from the fen to the inn.", "The inn befits the mill.", "The mill befits the fen."]
    found = [read(text) for text in texts]
    unsure.weights["told"][-1] = (-0.6, -0.9, 0.1)  # none, by a little
    assert [isinstance(told, Link) for told in likely(texts, found, unsure)] == [True, True, False]
    assert likely(texts[1:], [None, None], unsure) == [None, None]  # there is no map that could fall apart
    unsure.weights["told"][-1] = (-1.2, -0.9, 0.5)
    assert likely(texts, found, unsure)[1:] == [None, None]


def test_links_are_turned_until_they_fit_on_a_grid():
    true = [Link("fen", "inn", "north"), Link("inn", "mill", "east"), Link("mill", "kiln", "south"), Link("fen", "kiln", "east")]
    told = [true[0], Link("mill", "inn", "east"), *true[2:]]
    assert (misfits(true), misfits(told) > 0) == (0, True)
    turned(told, {0: 0.9, 1: 0.1, 2: 0.9, 3: 0.9})
    assert told == true


def test_without_likeness_patterns_alone_read():
    texts = ["The fen cowers close to the inn.", "The inn cowers close to the ford."]
    assert Atlas(texts).map.links == {}


@needs_minilm
def test_ways_in_words_that_no_pattern_reads():
    texts = ["The kiln snuggles up to the abbey.", "The ford cowers beside the kiln.", "The ford is uglier than the abbey."]
    atlas = Atlas(texts, likeness=fitted())
    said = atlas.say("Bound for the ford, what does a snail at the abbey crawl past?")
    assert said and said.answer == "kiln, ford"
    assert atlas.say("Which is uglier, the ford or the abbey?") is None


@needs_minilm
@pytest.mark.parametrize(("read_so", "answer"), [(True, "kiln, ford"), (False, "")])
def test_the_memory_reads_by_likeness_unless_it_is_told_not_to(read_so, answer):
    told = traces("The kiln snuggles up to the abbey.", "The ford cowers beside the kiln.")
    method = bound("memory/smpd", load(load_spec("hippo-tiny"), threads=1), **{"encoder": "minilm", "spatial.likeness": read_so})
    question = "Which places does one pass on the way from the abbey to the ford?"
    assert method.open(told)(Query(question, tuple(trace.source for trace in told))).answer == answer


@pytest.mark.long
@needs_minilm
def test_the_weights_in_the_tree_are_those_of_the_frames():
    told = fit(frames())
    for name, weight in fitted().weights.items():
        assert np.allclose(weight, told[name], atol=2e-2), f"{name}: run `python benchmarks/memory/likeness.py fit`"


def test_what_is_a_little_liker_to_no_link_is_one():
    """Worlds tell more links than anything else."""
    even = Likeness({"told": np.zeros((4481, 3)), "asked": np.zeros((4481, 1)), "begins": np.zeros((4481, 1))}, of_words)
    even.weights["told"][-1] = (0.0, -1.0, 0.3)
    assert isinstance(one("The fen outshines the inn.", even), Link)
    even.weights["told"][-1] = (0.0, -1.0, 0.5)
    assert one("The fen outshines the inn.", even) is None


@pytest.mark.parametrize("first", [True, False])
def test_of_two_ways_as_long_the_one_without_a_doubtful_link_is_planned(first):
    even = Likeness({"told": np.zeros((4481, 3)), "asked": np.zeros((4481, 1)), "begins": np.zeros((4481, 1))}, of_words)
    even.weights["told"][-1] = (0.0, -1.0, 0.3)  # a link, by a little
    lane = "A lane goes by the shop from the {} to the {}.".format
    told = [lane("mill", "inn"), lane("fen", "kiln"), lane("kiln", "inn")]
    told.insert(0 if first else 3, "The fen outshines the mill.")
    atlas = Atlas(told, likeness=even)
    way = atlas.planner.way("fen", "inn")
    assert way and way.places == ("fen", "kiln", "inn")
    assert "mill" in atlas.map.steps["fen"]


def test_no_weights_is_an_error_that_says_what_makes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(likeness_module, "root", lambda: tmp_path)
    fitted.cache_clear()
    with pytest.raises(LabError, match=r"benchmarks/memory/likeness.py fit"):
        fitted()
    fitted.cache_clear()


def plain(text):
    """A frame's words, whichever its names and directions are."""
    return " ".join(re.findall(r"\w+", re.sub(r"\{[do]\}", "direction", re.sub(r"\{[abp]\}", "name", text)).lower()))


def strings(found):
    """All texts of what a YAML file holds, at any depth."""
    if isinstance(found, str):
        return [found]
    return [
        text for one in (found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()) for text in strings(one)
    ]


@pytest.mark.parametrize("folder", ["data/ways", "data/ways/val", "data/ways_second", "data/ways_third"])
def test_no_frame_is_one_of_a_suite_of_ways(folder):
    own = {plain(told.frame) for told in frames()}
    suite = yaml.safe_load((ROOT / folder / "frames.yaml").read_text(encoding="utf-8"))
    shared = sum(plain(text) in own for text in strings(suite) if len(text.split()) > 3)
    assert shared == 0, f"{shared} frames of {folder} are fitted to"  # which ones, is not to be seen


@pytest.mark.parametrize("sure_first", [True, False])
def test_of_two_places_told_to_one_side_the_surer_keeps_the_direction(sure_first):
    links = [Link("mill", "inn", "north"), Link("mill", "fen", "north", doubt=0.3)]
    told = ToldMap()
    for number, link in enumerate(links if sure_first else links[::-1]):
        told.hear(number, link)
    assert told.steps["mill"]["north"] == "inn"
