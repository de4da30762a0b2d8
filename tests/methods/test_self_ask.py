"""A rag that asks step by step: which questions it asks, what it shows, and what that costs."""

from dataclasses import replace

import pytest

from hippo_core.delivery.types import Delivered
from hippo_core.errors import LabError
from hippo_core.evaluation.run import ask, passages_of
from hippo_core.live.memory import OpenWorld
from hippo_core.methods.base import Query, Retrieved
from hippo_core.methods.presets import load_preset
from hippo_core.methods.rag import steps
from hippo_core.methods.self_ask import StepAnswer, by_steps
from hippo_core.store.trace import Trace
from hippo_core.suites import get_suite
from hippo_core.suites.types import Fact, Item, World
from hippo_core.text import OWN_ANSWER_TOKENS

QUESTION = "Which city is home to the employer of the one who sold a lamp?"
INNER = ("Who sold a lamp?", "What is the employer of Ann?")
LAST = "Which city is home to Marlow?"
ANSWERS = dict(zip(INNER, ("Ann", "Marlow"), strict=True))


def search(query):
    return Retrieved((Trace("w", query.text, query.text, time=1),), None, recall_ms=1.0, computed_tokens=10.0)


def stepped(text, answers):
    asked = []

    def answered(query, from_text):
        asked.append((query.text, from_text))
        return StepAnswer(answers.get(query.text, ""), search(query))

    return by_steps(Query(text, ("f",)), search, answered), asked


def test_the_answer_to_the_inner_question_stands_in_its_place():
    steps_taken, asked = stepped(QUESTION, ANSWERS)
    assert asked == [(INNER[0], True), (INNER[1], False)]
    assert [step.rephrased for step in steps_taken.retrieved] == ["", "Which city is home to the employer of Ann?", LAST]
    assert [step.shown[0].text for step in steps_taken.retrieved] == [QUESTION, "Which city is home to the employer of Ann?", LAST]


def test_all_that_was_asked_is_paid_for():
    steps_taken, _ = stepped(QUESTION, ANSWERS)
    assert (steps_taken.at(-1).rephrased, steps_taken.at(-1).recall_ms, steps_taken.at(-1).computed_tokens) == (LAST, 5.0, 50.0)
    steps_taken, asked = stepped(QUESTION, {})
    assert [name for name, _ in asked] == [INNER[0]]  # nobody is found, so nobody's employer is asked for
    assert (len(steps_taken.retrieved), steps_taken.at(-1).recall_ms, steps_taken.at(-1).rephrased) == (1, 2.0, "")


@pytest.mark.parametrize("text", ["Who sold a lamp?", INNER[1]])
def test_a_question_without_another_is_asked_once(text):
    steps_taken, asked = stepped(text, ANSWERS)
    assert (len(steps_taken.retrieved), asked) == (1, [])


def test_the_rag_shows_what_it_found_for_the_last_step(monkeypatch):
    monkeypatch.setattr(steps, "read", lambda delivery, query, steps_taken: StepAnswer(ANSWERS[query.text], steps_taken))
    preset = load_preset("baselines/rag_self_ask", {"rag": "baselines/rag_bm25", "k": 1})
    texts = ["Ann sold a lamp.", "Ann works for Marlow, an employer.", "Marlow is in the city of Rome.", "Ben sold a city lamp to the one."]
    traces = [Trace("w", f"f{number}", text, time=number, id=number) for number, text in enumerate(texts)]
    shown = preset.method(None, preset.settings).open(traces)(Query(QUESTION, tuple(trace.source for trace in traces)))
    assert (shown.shown, shown.rephrased) == ((traces[2],), LAST)
    plain = load_preset("baselines/rag_bm25", {"k": 1})
    assert plain.method(None, plain.settings).open(traces)(Query(QUESTION, tuple(trace.source for trace in traces))).shown != (traces[2],)


class Delivery:
    """Answers "Ann" to everything, and keeps the room that it was given."""

    def __init__(self):
        self.rooms = []

    def ask(self, questions, max_new_tokens, batch_size=32, *, masked=False):
        self.rooms.append(max_new_tokens)
        return [Delivered("Ann", (1,), 5, 5, 1, 1.0, 0.0, prompt="", trace_tokens=0) for _ in questions]

    def forget(self):
        pass


@pytest.mark.parametrize("asker", ["a run", "a live memory", "a live memory as it comes"])
def test_an_inner_answer_has_as_much_room_as_the_last(asker):
    preset = load_preset("baselines/rag_self_ask", {"rag": "baselines/rag_bm25", "k": 1})
    method = preset.method(None, preset.settings)
    method.delivery = delivery = Delivery()
    facts = (Fact("f1", "w", "Ann sold a lamp.", {}, 1),)
    if asker == "a run":
        suite = replace(get_suite("episodic"), answer_budget=19)
        world = World(
            "w", facts, (Item("i", "w", "Which city is home to the one who sold a lamp?", ("Rome",), ("f1",), "k", taught=("f1",)),)
        )
        list(ask(suite, [world], method, "delayed", {"w": passages_of(world)}, 2))
    else:
        world = OpenWorld(method, [Trace("w", "f1", "Ann sold a lamp.", time=1, id=1)])
        world.ask("Which city is home to the one who sold a lamp?", **({"tokens": 19} if asker == "a live memory" else {}))
    assert len(delivery.rooms) == 2
    assert set(delivery.rooms) == {OWN_ANSWER_TOKENS if asker.endswith("comes") else 19}


def test_what_it_needs_is_what_its_rag_needs():
    assert load_preset("baselines/rag_self_ask").settings.requires == ("minilm",)
    assert load_preset("baselines/rag_self_ask", {"rag": "baselines/rag_bm25"}).settings.requires == ()
    assert load_preset("baselines/rag_self_ask", {"rag": "baselines/rag_fitted"}).method.weights == ("{model}/key.*", "{model}/recall.*")
    with pytest.raises(LabError, match=r"preset memory/hei_nw is no rag; expected one such as baselines/rag_sum"):
        load_preset("baselines/rag_self_ask", {"rag": "memory/hei_nw"})


def test_its_records_rest_on_the_settings_of_its_rag():
    preset = load_preset("baselines/rag_self_ask", {"rag": "baselines/rag_bm25", "k": 2})
    [[name, path, settings]] = preset.of_step("test")["parts"]
    assert (name, path, settings["k"]) == ("rag", "hippo_core.methods.rag.rankers:BM25", 2)
    assert preset.described()["parts"]["rag"]["name"] == "baselines/rag_bm25"
