"""A rag or a long context with a memory's help: the helper reads the retrieved facts, and nothing else."""

import pytest

from hippo_core.errors import LabError
from hippo_core.methods.base import Memory, Query, Retrieved
from hippo_core.methods.presets import load_preset
from hippo_core.store.trace import Trace

JOINED = "In which city does Lea work?"
WORK, TOWN, NOISE = "Lea works for the Marlow company.", "The Marlow company is in Oslo.", "In which shop does Lea buy a city map?"
ROUTE = "Which directions lead from the mill to the inn?"
LINKS = ("The pond is north of the mill.", "The inn is east of the pond.")
WORDS = {"retriever": "baselines/rag_bm25", "encoder": "own"}


def stored(*texts):
    return [Trace("w", f"f{number}", text, time=number, id=number) for number, text in enumerate(texts, start=1)]


def ask(name, traces, question, **settings):
    preset = load_preset(name, settings)
    return preset.method(None, preset.settings).open(traces)(Query(question, tuple(trace.source for trace in traces)))


class Spy(Memory):
    """A helper that says which traces it was opened on, and is as sure as `sure`."""

    says_confidence = True
    opened, asked, sure = [], [], 1.0

    def open(self, traces, questions=()):
        self.opened.append([trace.text for trace in traces])
        self.asked.clear()

        def retrieve(query):
            self.asked.append(query)
            return Retrieved(tuple(traces[:1]), confidence=self.sure, recall_ms=2.0, computed_tokens=5.0)

        return retrieve


@pytest.fixture
def spied(monkeypatch):
    """The preset `helped/rag_paths` with a spy in the place of its helper."""
    monkeypatch.setattr(Spy, "opened", [])

    def bring(traces, question, sure=1.0, **settings):
        monkeypatch.setattr(Spy, "sure", sure)
        preset = load_preset("helped/rag_paths", WORDS | settings)
        method = preset.method(None, preset.settings)
        method._helper = Spy(None, Spy.Settings())
        return method.open(traces)(Query(question, tuple(trace.source for trace in traces)))

    return bring


@pytest.mark.parametrize(
    ("name", "texts", "question", "said"),
    [("paths", (NOISE, WORK, TOWN), JOINED, "Oslo"), ("planner", LINKS, ROUTE, "north, east")],
)
@pytest.mark.parametrize("first", ["rag", "longctx"])
def test_the_helper_brings_what_it_makes_of_the_retrieved_facts(first, name, texts, question, said):
    more = WORDS if first == "rag" else {"encoder": "own"}
    retrieved = ask(f"helped/{first}_{name}", stored(*texts), question, **more)
    assert (retrieved.answer, retrieved.columns["helped"]) == (said, 1.0)
    assert retrieved.recall_ms > 0 and all(trace.payload is None for trace in retrieved.shown)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_helper_is_opened_on_the_retrieved_facts_alone(spied, k):
    facts = stored(WORK, NOISE, TOWN)
    plain = ask("baselines/rag_bm25", facts, JOINED, k=k)
    retrieved = spied(facts, JOINED, k=k)
    assert Spy.opened == [[trace.text for trace in plain.shown]] and len(plain.shown) == k
    assert [query.taught for query in Spy.asked] == [tuple(trace.source for trace in plain.shown)]
    assert retrieved.ranking == plain.ranking


@pytest.mark.parametrize(
    ("name", "question", "texts", "altered", "said"),
    [
        ("paths", JOINED, (WORK, TOWN), (WORK, TOWN.replace("Oslo", "Rome")), "Rome"),
        ("planner", ROUTE, LINKS, (LINKS[0], LINKS[1].replace("east", "west")), "north, west"),
    ],
)
def test_the_answer_follows_the_retrieved_text(name, question, texts, altered, said):
    retrieved = ask(f"helped/rag_{name}", stored(*altered), question, **WORDS)
    assert retrieved.answer == said != ask(f"helped/rag_{name}", stored(*texts), question, **WORDS).answer


def test_questions_about_one_world_do_not_leak_into_each_other():
    """What the helper read for an earlier question is not there for the next."""
    facts = stored(WORK, NOISE, TOWN)
    preset = load_preset("helped/rag_paths", WORDS | {"k": 2})
    retrieve = preset.method(None, preset.settings).open(facts)
    sources = tuple(trace.source for trace in facts)
    alone = retrieve(Query(JOINED, sources))
    retrieve(Query("Which city is the Marlow company in?", sources))
    again = retrieve(Query(JOINED, sources))
    assert (again.answer, again.shown) == (alone.answer, alone.shown)


def test_where_the_helper_finds_nothing_the_facts_are_shown_as_the_rag_shows_them(spied):
    facts = stored(WORK, NOISE, TOWN)
    plain = ask("baselines/rag_bm25", facts, JOINED, k=2)
    unsure, sure = spied(facts, JOINED, 0.4, k=2), spied(facts, JOINED, 0.6, k=2)
    assert (unsure.shown, unsure.confidence, unsure.columns["helped"]) == (plain.shown, None, 0.0)
    assert (sure.shown, sure.confidence, sure.columns["helped"]) == (plain.shown[:1], 0.6, 1.0)
    nothing = ask("helped/rag_planner", facts, JOINED, **WORDS, k=2)
    assert (nothing.shown, nothing.restated, nothing.columns["helped"]) == (plain.shown, "", 0.0)


def test_both_are_paid_for(spied):
    retrieved = spied(stored(WORK, TOWN), JOINED)
    assert retrieved.computed_tokens == 5.0 and retrieved.recall_ms > 2.0


def test_nothing_taught_is_nothing_to_read(spied):
    assert spied([], JOINED).shown == () and Spy.opened == []


def test_what_it_needs_is_what_both_need():
    helped, alone = load_preset("helped/rag_all", {"encoder": "minilm"}), load_preset("memory/all")
    assert set(helped.settings.requires) >= {"minilm", *alone.settings.requires}
    assert helped.method.weights == alone.method.weights and helped.method.says_confidence
    assert helped.method.columns["test"] == ("helped", *alone.method.columns["test"]) and not helped.method.steps
    assert set(alone.modules) | {"hippo_core.methods.rag.helped", "hippo_core.methods.rag.rankers"} == set(helped.modules)
    assert "hippo_core.methods.relational" in helped.modules


def test_its_records_rest_on_the_settings_of_both():
    preset = load_preset("helped/longctx_planner", {"encoder": "own"})
    parts = {name: settings for name, _, settings in preset.of_step("test")["parts"]}
    assert (parts["retriever"]["k"], parts["helper"]["encoder"], parts["helper"]["delivery"]) == (None, "own", "text")
    names = {name: part["name"] for name, part in preset.described()["parts"].items()}
    assert names == {"retriever": "baselines/longctx", "helper": "memory/smpd"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"retriever": "memory/sgc_rss"}, "retriever: .*preset memory/sgc_rss is no search for k facts; expected .*baselines/rag_sum"),
        ({"retriever": "baselines/core"}, "preset baselines/core is no search for k facts"),
        ({"helper": "baselines/rag_bm25"}, "helper: .*preset baselines/rag_bm25 is no memory; expected a helper such as memory/sgc_rss"),
        ({"helper": "memory/none"}, "unknown preset 'memory/none'"),
        ({"k": None}, "preset baselines/rag_sum: k: "),
    ],
)
def test_what_cannot_help_is_refused(settings, why):
    with pytest.raises(LabError, match=why):
        load_preset("helped/rag_paths", settings)
