"""A composite: what its parts bring is put together by rules, and what they declare holds for the whole."""

import math
import sys
from dataclasses import replace
from itertools import permutations

import pytest

from hippo_core.errors import LabError
from hippo_core.methods import composite
from hippo_core.methods.base import Query, Retrieved
from hippo_core.methods.composite import merge_rankings, most_confident_answer
from hippo_core.methods.presets import load_preset, settings_of
from hippo_core.methods.self_ask import StepAnswer
from hippo_core.store.trace import Trace

OWN = """
from dataclasses import replace
from typing import ClassVar
from hippo_core.methods.base import Memory, MemorySettings, Retrieved

class Sleeper(Memory):
    steps = ("teach", "replay")
    weights = ("{model}/key.*",)
    columns = {"teach": ("told",), "test": ("held",)}
    replay_cycles = 2

    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[:1]), tuple(traces), columns={"held": len(traces)})

    def index_tokens(self, traces):
        return 10.0 * len(traces)

class Windowed(Memory):
    says_confidence = True
    ignores_window = False

    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[:1]), tuple(traces), confidence=.9)

class Settled(MemorySettings):
    requires: ClassVar = ("minilm",)
    calibrates: ClassVar = True

class Needy(Sleeper):
    Settings = Settled
"""
COMPOSITE = "method: hippo_core.methods.composite:Composite"


def traces(memory, *sources):
    return tuple(Trace("w", source, f"{source} of {memory}", time=time, id=time, memory=memory) for time, source in enumerate(sources, 1))


def retrieved(memory, *sources, shown=1, **more):
    ranking = traces(memory, *sources)
    return Retrieved(tuple(sorted(ranking[:shown], key=lambda one: one.source)), ranking, **more)


def names(some):
    return [f"{trace.memory}.{trace.source}" for trace in some]


A, B = retrieved("a", "f1", "f2", "f3"), retrieved("b", "f4", "f2", "f5", "f6")


def test_rankings_are_interleaved_in_the_order_of_the_parts():
    assert names(merge_rankings([A, B], 3).ranking) == ["a.f1", "b.f4", "a.f2", "a.f3", "b.f5", "b.f6"]
    assert names(merge_rankings([B, A], 3).ranking) == ["b.f4", "a.f1", "b.f2", "b.f5", "a.f3", "b.f6"]


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_at_most_k_are_shown_in_order_of_telling(k):
    both = merge_rankings([A, B], k)
    assert set(names(both.shown)) == set(names(both.ranking[:k])) and len(both.shown) == min(k, 6)
    assert list(both.shown) == sorted(both.shown, key=lambda trace: (trace.time, trace.id))


def test_a_fact_of_two_parts_counts_once():
    same = merge_rankings([retrieved("a", "f1", "f2"), retrieved("b", "f1", "f2")], 2)
    assert names(same.ranking) == ["a.f1", "a.f2"] == names(same.shown)


def test_what_a_sure_part_shows_comes_first_the_surest_before_and_the_rest_is_filled_up():
    doubtful, confident = retrieved("a", "f1", "f2", confidence=0.49), retrieved("b", "f9", "f8", "f7", shown=2, confidence=0.5)
    both = merge_rankings([doubtful, confident], 3)
    assert names(both.ranking) == ["b.f9", "b.f8", "a.f1", "a.f2", "b.f7"]
    assert set(names(both.shown)) == {"b.f9", "b.f8", "a.f1"} and both.confidence == 0.5
    surer = retrieved("c", "f5", "f9", confidence=0.8)
    assert names(merge_rankings([doubtful, confident, surer], 3).ranking)[:3] == ["c.f5", "b.f9", "b.f8"]
    assert len(merge_rankings([doubtful, confident, surer], 9).shown) == 6


def test_a_path_or_a_way_of_the_surest_part_is_shown_whole_and_alone():
    surer = retrieved("a", "f1", "f2", confidence=0.5)
    path = Retrieved(traces("b", "f7", "f8"), traces("b", "f7", "f8"), confidence=0.6, together=True)
    both = merge_rankings([surer, path], 1)
    assert (names(both.shown), both.together) == (["b.f7", "b.f8"], True)
    route = replace(path, together=False, restated="The barn walk goes from the mill: north.", rephrased="How does the barn walk go?")
    said = merge_rankings([surer, route], 1)
    assert [trace.text for trace in said.delivered] == [route.restated] and said.rephrased == route.rephrased
    for less in (merge_rankings([replace(surer, confidence=0.9), path], 1), merge_rankings([surer, replace(path, confidence=0.4)], 1)):
        assert (names(less.shown), less.together) == (["a.f1"], False)
    alone = merge_rankings([replace(surer, confidence=0.2), replace(path, confidence=0.3)], 1)  # nobody is sure: the surest all the same
    assert (names(alone.shown), alone.together) == (["b.f7", "b.f8"], True)
    single = replace(path, shown=path.shown[:1])  # one statement is no more than a trace
    assert names(merge_rankings([replace(surer, confidence=0.9), single], 1).shown) == ["a.f1"]


def test_what_is_shown_without_a_rank_is_not_lost():
    chain = Retrieved(traces("b", "f7", "f8"), traces("b", "f7"), confidence=0.9)
    assert names(merge_rankings([A, chain], 2).shown) == ["b.f7", "b.f8"]
    assert names(merge_rankings([Retrieved(traces("b", "f7"))], 1).shown) == ["b.f7"]


def test_costs_add_up_and_no_confidence_is_none():
    both = merge_rankings([retrieved("a", recall_ms=1.0, completion_ms=2.0, encode_ms=3.0, computed_tokens=4.0, once_tokens=5.0)] * 2, 1)
    assert [both.recall_ms, both.completion_ms, both.encode_ms, both.computed_tokens, both.once_tokens] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert (both.confidence, both.shown, both.scores) == (None, (), ())
    assert merge_rankings([A, retrieved("b", recall_ms=3.0)], 1).recall_ms == 3.0
    path = Retrieved(traces("b", "f7", "f8"), traces("b", "f7", "f8"), confidence=0.6, together=True, recall_ms=3.0)
    full = merge_rankings([retrieved("a", recall_ms=1.0, computed_tokens=5.0), path], 1)
    assert (full.together, full.recall_ms, full.computed_tokens) == (True, 4.0, 5.0)
    assert math.isnan(merge_rankings([A, B], 1).recall_ms)
    assert merge_rankings([A, retrieved("b", confidence=0.2)], 1).confidence == 0.2


@pytest.fixture
def presets(presets, tmp_path, monkeypatch):
    """A folder of presets with memories of its own, and a way to write one more."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "own_parts.py").write_text(OWN)
    for name, method in (("one", "Sleeper"), ("two", "Windowed"), ("needy", "Needy")):
        presets(name, f"method: own_parts:{method}")
    presets("three", "extends: one\nk: 2")
    presets("rag", "method: hippo_core.methods.rag.rankers:BM25")
    presets("shuffled", "extends: one\ncontrol: shuffled")
    presets("plain", "extends: one\ndecoding: plain")
    presets("altered", "extends: one\nmemory: {runtime: {alter_answers: true}}")
    presets("both", f"{COMPOSITE}\nparts: {{first: one, second: two}}\nk: 2")
    yield presets
    sys.modules.pop("own_parts", None)


def test_what_the_parts_declare_holds_for_the_whole(presets):
    both, alone = load_preset("both"), load_preset("both", {"parts.second": "three"})
    assert (both.taught, both.method.steps, both.method.weights) == (True, ("teach", "replay"), ("{model}/key.*",))
    assert both.method.columns == {"test": ("inner_questions", "first_held")}
    assert alone.method.columns == {"test": ("inner_questions", "first_held", "second_held")}
    assert (both.method.ignores_window, both.method.says_confidence) == (False, True)
    assert (alone.method.ignores_window, alone.method.says_confidence) == (True, False)
    assert load_preset("both", {"abstention": "method"}).settings.abstention == "method"
    with pytest.raises(LabError, match="abstention=method needs a method that says how sure it is"):
        load_preset("both", {"abstention": "method", "parts": {"second": "three"}})
    needy = load_preset("both", {"parts.second": "needy"}).settings
    assert (needy.calibrates, needy.requires) == (True, ("minilm",)) and not both.settings.calibrates and not both.settings.requires
    assert settings_of("both") >= {"parts", "parts.first", "parts.second", "k"}


def test_each_part_gets_the_traces_of_its_own_store_and_its_columns_are_told_apart(presets):
    preset = load_preset("both", {"parts.second": "three"})
    method = preset.method(None, preset.settings)
    stored = [*traces("first", "f1", "f2", "f3"), *traces("second", "f1", "f4")]
    result = method.open(stored)(Query("?", ("f1",)))
    assert result.columns == {"inner_questions": 0, "first_held": 3, "second_held": 2}
    assert names(result.ranking) == ["first.f1", "first.f2", "second.f4", "first.f3"]
    assert (method.index_tokens(stored), method.replay_cycles) == (50.0, 4)
    with pytest.raises(LabError, match="has no store of its own; teach and open its parts: one, three"):
        method.identity()


def test_keys_and_values_are_kept_as_by_the_part_that_keeps_them_longest(presets):
    presets("lasting", "method: hippo_core.methods.episodic:HeiNW\nepisodic: {store: {kv: disk, kv_memory_mb: 64}}")
    presets("m", f"{COMPOSITE}\nparts: {{first: lasting, second: one}}")
    storage = load_preset("m").settings.kv_storage
    assert (storage.store, storage.memory_mb) == ("disk", 64)


def test_a_test_rests_on_the_settings_and_the_order_of_its_parts(presets):
    usual = load_preset("both").of_step("test")
    assert usual == load_preset("both").of_step("test")
    presets("turned", f"{COMPOSITE}\nparts: {{second: two, first: one}}\nk: 2")
    assert list(load_preset("turned").of_step("test")["parts"]) == usual["parts"][::-1]
    presets("one", "method: own_parts:Sleeper\nk: 4")
    assert load_preset("both").of_step("test")["parts"] != usual["parts"]
    assert load_preset("both").described()["parts"]["first"]["k"] == 4


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ("{}", "preset m: parts: .*at least 1 item"),
        ("{first: one, second: nowhere}", "preset m: parts: .*second: unknown preset 'nowhere'; legal: .*both"),
        ("{first: rag}", "first: preset rag is no memory; expected a preset of one memory, such as memory/hei_nw"),
        ("{first: one, second: both}", "second: preset both is a composite; expected a preset of one memory"),
        ("{first: m}", "first: preset m is a composite"),
        ("{first: one, second: one}", "two parts are the same preset"),
        ("{First-1: one}", "parts.First-1.*should match pattern"),
        ("{first: one, second: shuffled}", "part second has control=shuffled, which is for all that is shown"),
        ("{first: one, second: plain}", "part second has decoding=plain; one prompt needs one, here short"),
        ("{first: one, second: altered}", "some parts are told other answers and some are not"),
    ],
)
def test_what_is_wrong_is_named(presets, parts, says):
    presets("m", f"{COMPOSITE}\nparts: {parts}")
    with pytest.raises(LabError, match=says) as error:
        load_preset("m")
    assert "\n" not in str(error.value)


QUESTION = "Which directions lead from the mill to the {goal}?"


@pytest.fixture
def asked(presets, monkeypatch):
    """What a composite shows to a question, where its first part knows these questions alone; the model reads "Ann" everywhere."""

    def asking(question, known, others=None, **settings):
        preset = load_preset("both", settings)
        method = preset.method(None, preset.settings)
        nothing = Retrieved((), (), confidence=0.1)
        for name, part in method.parts.items():
            answers = known if name == "first" else others or {}
            part.open = lambda traces, questions=(), answers=answers: lambda query: answers.get(query.text, nothing)
        monkeypatch.setattr(composite, "read", lambda delivery, question, results: StepAnswer("Ann" if results.shown else "", results))
        return method.open([])(Query(question, ("f1",)))

    return asking


KNOWN = {
    "Who sold a lamp?": retrieved("first", "f1", confidence=0.9),
    "What is the employer of Ann?": retrieved("first", "f2", confidence=0.2, answer="the Marlow company"),
    QUESTION.format(goal="Marlow company"): retrieved(
        "first", "f3", confidence=0.9, restated="It goes north.", rephrased="How does the walk go?"
    ),
}


def test_a_question_in_a_question_is_asked_first_and_its_answer_stands_in_its_place(asked):
    full = QUESTION.format(goal="employer of the one who sold a lamp")
    shown = asked(full, KNOWN)
    assert (names(shown.shown), shown.rephrased, shown.columns["inner_questions"]) == (["first.f3"], "How does the walk go?", 2)
    path = {QUESTION.format(goal="employer of Ann"): retrieved("first", "f4", confidence=0.8)}
    shown = asked(full, {name: KNOWN[name] for name in list(KNOWN)[:2]} | path)
    asked_last = QUESTION.format(goal="employer of Ann")
    assert (names(shown.shown), shown.rephrased, shown.columns["inner_questions"]) == (["first.f4"], asked_last, 1)


def test_every_step_and_every_inner_question_is_paid_for(asked):
    cost = {"recall_ms": 1.0, "computed_tokens": 10.0}
    full = QUESTION.format(goal="employer of the one who sold a lamp")
    once = asked("Who sold a lamp?", {"Who sold a lamp?": replace(KNOWN["Who sold a lamp?"], **cost)})
    thrice = asked(full, {name: replace(one, **cost) for name, one in KNOWN.items()})
    assert (once.recall_ms, once.computed_tokens) == (1.0, 10.0)
    assert (thrice.recall_ms, thrice.computed_tokens) == (3.0, 30.0)  # both inner questions and the last step; the others found nothing


def test_a_question_stays_as_it_was_put_where_nobody_is_sure_of_a_step(asked):
    full = QUESTION.format(goal="employer of the one who sold a lamp")
    shown = asked(full, {name: KNOWN[name] for name in list(KNOWN)[:2]} | {full: retrieved("first", "f4", confidence=0.3)})
    assert (names(shown.shown), shown.rephrased, shown.columns["inner_questions"]) == (["first.f4"], "", 0)


def test_a_part_is_believed_as_far_as_it_was_right(asked):
    confident = {"What?": retrieved("first", "f1", confidence=0.9)}
    assert asked("What?", confident).confidence == 0.9
    calibrated = asked("What?", confident, trust={"first": {"bias": -2.0, "confidence": 1.0}})
    assert calibrated.confidence == pytest.approx(1 / (1 + math.exp(1.1)))


def test_what_several_parts_show_is_believed_sooner(asked):
    trust = {"first": {"bias": -2.0, "confidence": 1.0, "agreed": 4.0, "joined": 4.0}}
    confident = {"What?": retrieved("first", "f1", confidence=0.9)}
    for source, due in (("f2", 0.25), ("f1", 0.95)):
        other = {"What?": retrieved("second", source, confidence=0.1)}
        assert asked("What?", confident, other, trust=trust).confidence == pytest.approx(due, abs=0.01)
    silent = {"What?": retrieved("second", "f1")}  # it does not say how sure it is
    assert asked("What?", confident, silent, trust=trust).confidence == pytest.approx(0.25, abs=0.01)
    path = replace(retrieved("first", "f1", "f3", shown=2, confidence=0.9), together=True)
    assert asked("What?", {"What?": path}, trust=trust).confidence == pytest.approx(0.95, abs=0.01)


def test_of_several_answers_the_surest_counts():
    doubtful, confident, silent = (retrieved(name, confidence=confidence, answer=answer) for name, confidence, answer in (
        ("a", 0.2, "Rome"), ("b", 0.4, "Oslo"), ("c", 0.9, "")
    ))  # fmt: skip
    assert {most_confident_answer(order) for order in permutations((doubtful, confident, silent))} == {"Oslo"}
    assert most_confident_answer([retrieved("a", answer="Rome"), confident]) == "Oslo"  # who says nothing of it is not sure
    assert most_confident_answer([silent]) == ""


def test_the_traces_of_one_part_or_none(presets):
    one, off = load_preset("both", {"traces": "second"}), load_preset("both", {"traces": False})
    assert list(one.settings.memories) == ["second"] and list(off.settings.memories) == ["first", "second"]
    method = off.method(None, off.settings)
    assert method.open(list(traces("first", "f1")))(Query("?", ("f1",))) == Retrieved((), ())
    with pytest.raises(LabError, match="traces is 'third'; expected all, off, first, second"):
        load_preset("both", {"traces": "third"})
    with pytest.raises(LabError, match="trust names 'third'; expected first, second"):
        load_preset("both", {"trust": {"third": {"bias": 0.0, "confidence": 1.0}}})
