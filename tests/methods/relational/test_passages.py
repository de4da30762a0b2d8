"""Passages with titles: whom a text names, and what that is worth for a question, in the relational memory and in its rival."""

from dataclasses import replace

import networkx
import numpy as np
import pytest

from hippo_core.methods.base import Query
from hippo_core.methods.rag.graph import pagerank, walk
from hippo_core.methods.relational.passages import PassageGraph, are_passages, title_of
from hippo_core.store.trace import Trace
from tests.methods.asking import bound

TEXTS = (
    ("Silent Orchard", "Silent Orchard is a film of 1931. It was directed by Berta Olm."),
    ("Kiln", "Kiln is a village with a mill and a chapel."),
    ("Berta Olm (director)", "Berta Olm (director) was born at Kiln, the youngest of nine."),
    ("Berta", "Berta is a given name that is found in many lands."),
    ("Harbor Song", "Harbor Song is a film of 1944. Its director was never named."),
    ("Tomas Reed", "Tomas Reed was born in a town by the sea, and painted it."),
)
QUESTION = "Which film of 1931, Silent Orchard or another, had somebody of a large family to make it?"

WEIGHTS = {"named": 6, "linked": 8, "naming": 0, "words": 0, "seeds": 5}  # of a few passages; what a test is about, it sets


def passages(texts=TEXTS):
    return [Trace("w", f"p{n}", text, context_key=title, time=n, id=n + 1) for n, (title, text) in enumerate(texts)]


def retrieve(tiny, texts=TEXTS, question=QUESTION, name="memory/sgc_rss", taught=None, weights=None, **overrides):
    """What is retrieved, and the ranking by titles."""
    weights = WEIGHTS | (weights or {}) if name == "memory/sgc_rss" else {}
    overrides |= {"encoder": "own"} | {f"relational.passages.{key}": value for key, value in weights.items()}
    given = passages(texts)
    sources = tuple(trace.source for trace in given if taught is None or trace.context_key in taught)
    retrieved = bound(name, tiny, **overrides).open(given)(Query(question, sources))
    return retrieved, [trace.context_key for trace in retrieved.ranking or ()]


def without(number, words):
    return [(title, text.replace(words, "somebody") if index == number else text) for index, (title, text) in enumerate(TEXTS)]


def test_a_text_names_the_longest_title_as_whole_words_without_its_brackets():
    graph = PassageGraph.of(passages())
    assert graph.links(0) == {2}  # not "Berta", which begins at the same word
    assert graph.links(2) == {1}  # not itself
    assert graph.named("Berta saw kiln, Kilns and the Silent, Orchard; Berta Olm-") == {0, 2, 3}
    assert graph.named("") == set()


def test_titles_are_those_that_a_text_opens_with():
    assert [title_of(trace) for trace in passages()][2] == "Berta Olm"
    statements = [replace(trace, context_key="session 1") for trace in passages()]
    assert are_passages(passages()[:3] + statements[:2])
    assert not are_passages(statements)
    assert not are_passages([])


def test_a_linked_passage_stands_beside_its_seed_as_long_as_it_is_named(tiny):
    retrieved, ranking = retrieve(tiny, k=2, weights={"seeds": 1})
    assert ranking[:2] == ["Silent Orchard", "Berta Olm (director)"]
    assert [trace.context_key for trace in retrieved.shown] == ranking[:2]
    assert (retrieved.together, retrieved.confidence) == (True, None)
    assert retrieve(tiny, without(0, "Berta Olm"), weights={"seeds": 1})[1][1] != "Berta Olm (director)"
    assert retrieve(tiny, weights={"seeds": 1, "linked": 0})[1][1] != "Berta Olm (director)"


def test_a_title_in_the_question_lifts_its_passage_and_makes_it_a_seed(tiny):
    question = "Is Tomas Reed or the youngest of nine older?"
    assert retrieve(tiny, question=question)[1][0] == "Tomas Reed"
    assert retrieve(tiny, question=question, weights={"named": 0, "linked": 0})[1][0] == "Berta Olm (director)"
    orchard = retrieve(tiny, question="Silent Orchard: where does it come from?", weights={"seeds": 0})[1]
    assert orchard[:2] == ["Silent Orchard", "Berta Olm (director)"]


def test_a_passage_that_names_a_seed_stands_beside_it(tiny):
    question = "Tomas Reed: which film of 1944 has a director?"
    texts = [*TEXTS, ("Hollow", "Hollow holds what Tomas Reed left.")]
    weights = {"linked": 0, "named": 12, "seeds": 0}
    without, by = (retrieve(tiny, texts, question, weights=weights | {"naming": naming})[1] for naming in (0, 9))
    assert (without[:2], by[:2]) == (["Tomas Reed", "Harbor Song"], ["Tomas Reed", "Hollow"])
    cut = [(title, text.replace("what Tomas Reed left", "what he left")) for title, text in texts]
    assert retrieve(tiny, cut, question, weights=weights | {"naming": 9})[1][:2] == without[:2]


def test_words_of_the_question_count_beside_the_likeness(tiny):
    texts = [("Ash", "Ash is a hilltop, a hillock and hilly."), ("Bell", "Bell has one hill."), ("Cole", "Cole has none.")]
    weights = {"named": 0, "linked": 0, "seeds": 0}
    for words, best in ((0, "Ash"), (9, "Bell")):
        assert retrieve(tiny, texts, "hillocks, hilltops: one", weights=weights | {"words": words})[1][0] == best


def test_what_stands_before_a_comma_is_a_title_unless_another_passage_has_it():
    graph = PassageGraph.of(passages([("Kiln, Kent", "Kiln, Kent is a village."), ("Mill", "Mill is by Kiln.")]))
    assert graph.links(1) == {0}
    assert graph.naming(0) == {1}
    assert graph.named("Kiln, Kent") == graph.named("Kiln") == {0}
    graph.add(2, "Kiln", "Kiln is hot.")
    assert graph.links(1) == {2}
    assert (graph.naming(0), graph.naming(2)) == (set(), {0, 1} - {0})
    graph.remove(2)
    assert graph.naming(0) == {1}


def test_a_link_of_a_hub_counts_less(tiny):
    texts = [*TEXTS, ("Almanac", "Almanac lists Tomas Reed, Harbor Song, Kiln and Berta.")]
    question = "Silent Orchard and Almanac: who is known for a film of 1944?"
    ranking = {hub: retrieve(tiny, texts, question, weights={"named": 12, "seeds": 0, "fade": 0, "hub": hub})[1] for hub in (0, 2)}
    assert set(ranking[0][:2]) == set(ranking[2][:2]) == {"Silent Orchard", "Almanac"}
    assert ranking[0][2] == "Harbor Song"  # likest of all that are named
    assert ranking[2][2] == "Berta Olm (director)"  # which is all that the film names


def test_a_link_of_a_later_seed_counts_less(tiny):
    texts = [*TEXTS, ("Almanac", "Almanac lists Harbor Song.")]
    question = "Silent Orchard is a film of 1931: is there one of 1944 in the Almanac?"
    ranking = {fade: retrieve(tiny, texts, question, weights={"named": 12, "seeds": 0, "fade": fade})[1] for fade in (0, 4)}
    assert ranking[0][:3] == ["Silent Orchard", "Almanac", "Harbor Song"]
    assert ranking[4][:3] == ["Silent Orchard", "Almanac", "Berta Olm (director)"]


def test_only_what_was_taught_for_a_question_is_ranked(tiny):
    taught = {"Kiln", "Berta Olm (director)", "Tomas Reed"}
    assert set(retrieve(tiny, taught=taught)[1]) == taught
    assert retrieve(tiny, taught=set())[0].shown == ()


def test_passages_put_in_and_taken_out_leave_what_a_fresh_graph_has():
    random, texts = np.random.default_rng(3), passages([*TEXTS, ("Kiln (oven)", "Kiln (oven) is a hot place.")])  # one title twice
    graph = PassageGraph()
    for number in random.integers(0, len(texts), 60):
        if number in graph.texts and random.random() < 0.6:
            graph.remove(number)
            graph.remove(number)
        else:
            graph.add(number, title_of(texts[number]), texts[number].text)
    graph.add(0, "Nobody", "Nobody is named by Berta Olm.")
    graph.add(0, title_of(texts[0]), texts[0].text)
    fresh = PassageGraph()
    for number in sorted(graph.texts):
        fresh.add(number, title_of(texts[number]), texts[number].text)
    assert {n: graph.links(n) for n in sorted(graph.texts)} == {n: fresh.links(n) for n in sorted(fresh.texts)}
    assert {n: graph.naming(n) for n in sorted(graph.texts)} == {
        n: {other for other in graph.texts if n in graph.links(other)} for n in sorted(graph.texts)
    }
    everything = " ".join(text for _, text in TEXTS) + " Nobody"
    assert graph.named(everything) == fresh.named(everything)
    for number in [*graph.texts]:
        graph.remove(number)
    assert graph.named(everything) == set()


def test_a_walk_is_networkx_own():
    graph = PassageGraph.of(passages())
    links = [(number, link) for number in graph.texts for link in graph.links(number)]
    start = np.array([0.7, 0, 0, 0, 0.3, 0])
    ours = pagerank(walk({tuple(sorted(link)) for link in links}, graph.size), start, 0.5)
    other = networkx.Graph(links)
    other.add_nodes_from(range(len(start)))
    theirs = networkx.pagerank(other, alpha=0.5, personalization=dict(enumerate(start)), tol=1e-12)
    assert ours / ours.sum() == pytest.approx([theirs[number] for number in range(len(start))], abs=1e-9)


def test_the_rival_walks_over_titles_too(tiny):
    texts = [(title.replace("Berta Olm", "berta and the olm"), text.replace("Berta Olm", "berta and the olm")) for title, text in TEXTS]
    rank = {title: place for place, title in enumerate(retrieve(tiny, texts, name="baselines/rag_graph", seeds=1)[1])}
    cut = [(title, text.replace("by berta and the olm", "by somebody")) for title, text in texts]
    alone = {title: place for place, title in enumerate(retrieve(tiny, cut, name="baselines/rag_graph", seeds=1)[1])}
    assert rank["berta and the olm (director)"] == 1
    assert alone["berta and the olm (director)"] > 1


def test_several_words_are_one_title_in_other_capitals_and_accents_but_not_without_a_capital():
    graph = PassageGraph.of(passages([("Zoë of the Hill", "Zoë of the Hill."), ("Kiln", "Kiln.")]))
    assert graph.named("Who knows Zoe Of The Hill?") == {0}
    assert graph.named("who knows zoe of the hill, kiln or KILN?") == set()


def test_a_title_that_is_a_common_word_is_not_what_sentences_begin_with():
    graph = PassageGraph.of(passages([("It", "It is a film."), ("Kiln", "Kiln is old. It stands.")]))
    assert graph.links(1) == set()
    assert graph.named("Who made It?") == {0}
    assert graph.named("Kiln stands.") == {1}
