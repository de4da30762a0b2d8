"""Controls: they wrap any method, and they alone see the labels of an item; what stands in the place of what was retrieved."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path

import pytest

import hippo_core.methods
from hippo_core.errors import LabError
from hippo_core.evaluation.run import ask, passages_of
from hippo_core.methods import controls
from hippo_core.methods.base import Memory, MemorySettings, Observation, Query, Retrieved
from hippo_core.protocols.questions import run
from hippo_core.source_code import imports
from hippo_core.store import TraceStore
from hippo_core.store.trace import Statement, Trace
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Item
from tests.methods.asking import bound

EPISODIC = get_suite("episodic")
METHODS = ["baselines/rag_bm25", "baselines/rag_dense", "baselines/longctx", "baselines/span_short", "memory/hei_nw"]
SEARCHING = [name for name in METHODS if name not in ("baselines/longctx", "baselines/span_short")]
LABELS = {"asked", "answer", "answers", "gold", "gold_facts", "cue", "chance", "rung", "kind", "slices", "schema_fit"}


def two_gold_facts(world):
    """The world with a second gold fact for each item, so that one and several are told apart."""
    return replace(world, items=tuple(replace(item, gold_facts=(item.gold_facts[0], _other(item))) for item in world.items))


def _other(item):
    return next(source for source in item.taught[::-1] if source not in item.gold_facts)


@pytest.fixture(scope="module")
def asked(tiny, tmp_path_factory):
    """A function from a preset, with overrides, to what is asked of two worlds by it."""
    drawn = [two_gold_facts(world) for world in worlds("episodic", "default", 10, 3, "val", tiny.spec.context_limit)]
    folder = tmp_path_factory.mktemp("stores")
    memory = bound("memory/hei_nw", tiny)
    run.teach(memory, EPISODIC, drawn, [], folder, "s1")
    with TraceStore.open(folder, "s1", memory.identity(), read_only=True) as store:
        stored = {world.id: store.traces(world.id) for world in drawn}

    def asking(name, some, **overrides):
        method = bound(name, tiny, **overrides)
        passages = stored if method.steps else {world.id: passages_of(world) for world in some}
        return list(ask(EPISODIC, some, method, "delayed", passages, 32))

    of_both = cache(lambda name, **overrides: asking(name, drawn, **overrides))
    of_both.worlds, of_both.of = drawn, asking
    return of_both


def sources(outcome):
    return [trace.source for trace in outcome.retrieved.shown]


@pytest.mark.parametrize("name", METHODS)
def test_oracle_shows_exactly_the_gold_passages_in_order_of_telling(asked, name):
    for outcome in asked(name, control="oracle"):
        gold = [source for source in outcome.item.taught if source in outcome.item.gold_facts]
        assert sources(outcome) == gold and len(gold) == 2


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", SEARCHING)
def test_random_shows_k_passages_none_of_them_gold(asked, name, k):
    for outcome in asked(name, control="random", k=k):
        assert len(sources(outcome)) == len(set(sources(outcome))) == k and not set(sources(outcome)) & set(outcome.item.gold_facts)


def test_random_shows_nothing_that_tells_a_gold_fact_again(tiny):
    """Of five statements one is gold, and three tell it again: whatever k is, the one that is left is all that is wrong."""
    again = dict.fromkeys(("f1", "f2", "f3"), "f0")
    item = Item("q", "w", "Where?", ("mill",), ("f0",), "where", taught=tuple(f"f{n}" for n in range(5)), retold=again)
    traces = tuple(Trace("w", f"f{n}", f"statement {n}", time=n, id=n) for n in range(5))
    for k in (1, 3, 9):
        method = bound("baselines/rag_bm25", tiny, control="random", k=k)
        assert [trace.source for trace in controls._random(method, item, traces)] == ["f4"]


@pytest.mark.parametrize("name", METHODS)
def test_shuffled_shows_as_many_passages_of_the_other_world_and_nothing_else(asked, name):
    for usual, outcome in zip(asked(name), asked(name, control="shuffled"), strict=True):
        assert len(outcome.retrieved.shown) == len(usual.retrieved.shown)
        assert {trace.world for trace in outcome.opened} != {outcome.item.world}
        assert all(trace.world != outcome.item.world for trace in outcome.retrieved.shown)
        assert {trace.text for trace in outcome.retrieved.shown} <= {fact.text for world in asked.worlds for fact in world.facts}


@pytest.mark.parametrize("delivery", ["text", "kv"])
@pytest.mark.parametrize("name", ["baselines/rag_bm25", "baselines/longctx", "memory/hei_nw"])
def test_empty_is_no_passages_letter_for_letter_though_all_is_run(asked, name, delivery):
    empty, usual, plain = asked(name, control="empty", delivery=delivery), asked(name, delivery=delivery), asked("baselines/span_short")
    assert [sources(outcome) for outcome in empty] == [sources(outcome) for outcome in usual]
    tokens = [[outcome.answer.tokens for outcome in outcomes] for outcomes in (empty, plain, usual)]
    assert tokens[0] == tokens[1] != tokens[2]
    logprobs = [[outcome.answer.first_logprob for outcome in outcomes] for outcomes in (empty, plain)]
    assert logprobs[0] == pytest.approx(logprobs[1], abs=1e-5)
    assert all(outcome.answer.trace_tokens > 0 for outcome in empty) and not any(outcome.answer.trace_tokens for outcome in plain)


@pytest.mark.parametrize("control", ["none", "empty", "shuffled", "oracle", "random"])
@pytest.mark.parametrize("name", ["baselines/rag_bm25", "memory/hei_nw"])
def test_a_method_ranks_what_its_control_lets_it_open(asked, name, control):
    for outcome in asked(name, control=control, k=3):
        opened = {trace.source for trace in outcome.opened}
        assert {trace.source for trace in outcome.retrieved.ranking} <= opened and set(sources(outcome)) <= opened
        due = {"oracle": set(outcome.item.gold_facts), "random": set(sources(outcome))}.get(control, opened)
        assert opened == due and (control == "shuffled") == opened.isdisjoint(outcome.item.taught)


class Computing(Memory):
    """Says the last word of what it opened, in a sentence and a question of its own, or what it `knows` from elsewhere."""

    Settings = MemorySettings
    knows = ""

    def open(self, traces, questions=()):
        def retrieve(query):
            last = self.knows or max((trace.text for trace in traces if trace.source in query.taught), default="")
            own = {"restated": f"It is: {last}", "rephrased": "What is it?", "answer": last, "confidence": 1.0}
            return Retrieved(tuple(traces[:1]), tuple(traces), **own)

        return retrieve


def computed(tiny, asked, control, knows=""):
    method = Computing(tiny, MemorySettings(control=control))
    method.knows = knows
    return list(ask(EPISODIC, asked.worlds, method, "delayed", {world.id: passages_of(world) for world in asked.worlds}, 32))


@pytest.mark.parametrize("control", ["shuffled", "oracle", "random"])
def test_a_control_alters_what_is_opened_and_the_method_computes_on_that(asked, tiny, control):
    for outcome, usual in zip(computed(tiny, asked, control), computed(tiny, asked, "none"), strict=True):
        due = max(trace.text for trace in outcome.opened)
        assert (outcome.retrieved.restated, outcome.retrieved.answer, outcome.retrieved.confidence) == (f"It is: {due}", due, 1.0)
        assert outcome.read == ((f"It is: {due}", "program"), ("What is it?", "program"))
        assert control == "oracle" or due != usual.retrieved.answer or due in [trace.text for trace in usual.opened]


@pytest.mark.parametrize("control", ["shuffled", "random"])
def test_an_answer_from_elsewhere_shows_under_a_control(asked, tiny, control):
    """What a method computed is not taken away: one that has its answer from elsewhere than from what it opened still has it."""
    assert all(
        outcome.retrieved.answer == "Oslo" and "It is: Oslo" in outcome.answer.prompt for outcome in computed(tiny, asked, control, "Oslo")
    )


def test_empty_hides_what_is_computed_and_asks_as_it_was_put(asked, tiny):
    empty, plain = computed(tiny, asked, "empty"), asked("baselines/span_short")
    assert [outcome.answer.tokens for outcome in empty] == [outcome.answer.tokens for outcome in plain]
    assert all(outcome.read == ((outcome.item.question, "asker"),) for outcome in empty)


def test_contents_of_another_world_need_another_world(asked):
    with pytest.raises(LabError, match="needs a second world"):
        asked.of("baselines/rag_bm25", asked.worlds[:1], control="shuffled")


class Watching(Memory):
    """Notes all that it is given."""

    Settings = MemorySettings

    def __init__(self, tiny, settings):
        super().__init__(tiny, settings)
        self.seen = []

    def teach(self, observations, store, calibration=None):
        self.seen.append(list(observations))
        return super().teach(observations, store, calibration)

    def open(self, traces, questions=()):
        self.seen += [list(traces), list(questions)]

        def retrieve(query):
            self.seen.append(query)
            return Retrieved(tuple(traces[:1]), tuple(traces))

        return retrieve


def relabelled(world):
    """The world with other answers, gold facts, kinds and names of items, and other facts asked."""
    items = [replace(item, id=f"{item.id}x", answers=("no",), gold_facts=(_other(item),), kind="y", rung="noisy") for item in world.items]
    return replace(world, items=tuple(items), facts=tuple(replace(fact, asked=not fact.asked) for fact in world.facts))


@pytest.mark.parametrize("control", ["none", "empty", "shuffled", "oracle", "random"])
def test_labels_change_what_a_control_shows_and_nothing_that_a_method_is_given(asked, tiny, tmp_path, control):
    seen, shown = [], []
    for number, some in enumerate((asked.worlds, [*map(relabelled, asked.worlds)])):
        method = Watching(tiny, MemorySettings(control=control))
        run.teach(method, EPISODIC, some, [], tmp_path / str(number), "s1")
        with TraceStore.open(tmp_path / str(number), "s1", method.identity(), read_only=True) as store:
            stored = {world.id: store.traces(world.id) for world in some}
        outcomes = list(ask(EPISODIC, some, method, "immediate", stored, 32))
        seen.append(method.seen)
        shown.append([sources(outcome) for outcome in outcomes])
    if control in ("oracle", "random"):  # what these let it open is all that labels change
        assert shown[0] != shown[1] and len(seen[0]) == len(seen[1]) == 2 + 3 * 10
    else:
        assert seen[0] == seen[1] and shown[0] == shown[1] and len(seen[0]) == 2 * 3 + 10


def reached(value, name=""):
    """All values that can be reached from one, each with the name of the field that it stands in."""
    yield name, value
    if is_dataclass(value):
        for part in fields(value):
            yield from reached(getattr(value, part.name), part.name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from reached(part, name)


OF_STATEMENTS = {"source", "world", "text", "time", "teller", "confidence", "reward", "pin", "provenance", "context_key"}
OF_TRACES = {"salience", "pinned", "uses", "evidence", "id", "payload", "memory"}  # what a store adds, and which it is
SPIED = ["episodic", "episodic_multi", "semantic", "semantic/hard", "semantic/hedged", "spatial", "spatial/explore"]
SPIED += ["babi", "notes", "folder"]


def drawn(name, folder):
    """A suite and some of its worlds; the folder's facts have slots."""
    if name == "folder":
        slots = {"who": "Ada", "what": "key", "where": "the blue jar"}
        fact = {"id": "f1", "world": "w1", "text": "Ada keeps the key in the blue jar.", "slots": slots, "teller": "Ben", "confidence": 1}
        item = {"id": "q1", "world": "w1", "question": "Where is the key?", "answers": ["the blue jar"], "gold_facts": ["f1"]}
        (folder / "facts.jsonl").write_text(json.dumps(fact))
        (folder / "items.jsonl").write_text(json.dumps(item))
        name = f"folder:{folder}"
    suite, _, profile = name.partition("/") if not name.startswith("folder:") else (name, "", "")
    return get_suite(suite), list(worlds(suite, profile or "default", 10 if suite == "semantic" else 4, 7, "test", 512))


@pytest.mark.parametrize("name", SPIED)
def test_a_method_gets_what_was_said_and_by_whom_and_no_slots(name, tiny, tmp_path):
    """Taught, opened from a store, and opened from the passages of a world as baselines and retrieval are."""
    suite, some = drawn(name, tmp_path)
    spy = Watching(tiny, MemorySettings())
    run.teach(spy, suite, some, [], tmp_path, "s1")
    with TraceStore.open(tmp_path, "s1", spy.identity(), read_only=True) as store:
        stored = {world.id: store.traces(world.id) for world in some}
    for passages in (stored, {world.id: passages_of(world) for world in some}):
        for world in some:
            retrieve = spy.open(passages[world.id], [item.question for item in world.items])
            for item in world.items:
                retrieve(Query(item.question, item.taught))
    seen = [one for given in spy.seen for one in reached(given)]
    assert {field for field, _ in seen} <= {"", "statement", "taught", "window", "room"} | OF_STATEMENTS | OF_TRACES
    assert not [value for _, value in seen if isinstance(value, Mapping | set)]
    facts = [fact for world in some for fact in world.facts]
    words = {value for fact in facts for value in fact.slots.values()}
    occasions = {value for field, value in seen if field in ("provenance", "context_key")}
    assert not occasions & words and not any("rumor" in value for value in occasions)
    tellers, known = {value for field, value in seen if field == "teller"}, {fact.teller for fact in facts}
    assert tellers == known and not tellers & {value for fact in facts for role, value in fact.slots.items() if role != "teller"}
    expected = {(fact.id, fact.confidence, fact.teller) for fact in facts}
    traces = [one for given in spy.seen for one in (given if isinstance(given, list) else []) if isinstance(one, Trace | Observation)]
    assert {
        (one.statement.source if isinstance(one, Observation) else one.source, one.confidence, one.teller) for one in traces
    } == expected
    assert len(traces) == 3 * len(facts)


def test_what_a_method_is_given_has_no_place_for_a_label():
    assert [one.name for one in fields(Query)] == ["text", "taught", "window", "room"]
    assert {one.name for form in (Statement, Observation) for one in fields(form)} == {"statement", *OF_STATEMENTS}
    assert {one.name for one in fields(Trace)} == OF_STATEMENTS - {"reward", "pin"} | OF_TRACES
    for form in (Trace, Statement, Observation):
        assert LABELS.isdisjoint(one.name for one in fields(form))


def test_of_all_methods_only_controls_know_what_an_item_is():
    [folder] = map(Path, hippo_core.methods.__path__)
    names = {path: "hippo_core.methods." + ".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
    knowing = {path.stem for path, name in names.items() if any(one.startswith("hippo_core.suites") for one in imports(name, path))}
    assert knowing == {"controls"}
