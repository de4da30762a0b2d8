"""What an answer says the model read is what was run, token for token; which parts a program wrote; who composed the answer."""

from dataclasses import replace

import pytest

from hippo_core import Memory
from hippo_core.delivery import load_delivery
from hippo_core.delivery.types import Delivered, Question
from hippo_core.live.answer import Read
from hippo_core.methods.base import Retrieved
from hippo_core.methods.self_ask import composed_by, left_of, read_of
from hippo_core.models.abstention import ALWAYS, NEVER
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.store.trace import Trace
from tests.models.running import runs_of, runs_to_read

EPISODES = ("Anna left the bicycle at the station.", "Ben gave the lamp to Carl.")
CHAIN = ("Carla works for the Marlow company.", "The Marlow company is in Lima.")
MAP = ("The mill is north of the inn.", "The inn is east of the well.")
LEFT, CITY, ROUTE_QUESTION = (
    "Where did Anna leave the bicycle?",
    "In which city is the employer of Carla?",
    "Which directions lead from the mill to the well?",
)
ROUTE = (
    Read("The well walk goes from the mill: south, west.", "program"),
    Read("How does the well walk go from the mill?", "program"),
)
COPIED = "program, model copies"
CASES = {  # method, settings, what is told, the question, what the model reads, who composed the answer
    "one fact": ("memory/hei_nw", {"encoder": "own"}, EPISODES, LEFT, (Read(EPISODES[0], "teller"), Read(LEFT, "asker")), "model"),
    "a chain as told": (
        "memory/sgc_rss",
        {"encoder": "own", "relational.wording": "own"},
        CHAIN,
        CITY,
        (*(Read(text, "teller") for text in CHAIN), Read(CITY, "asker")),
        "model",
    ),
    "a chain in plainer words": (
        "memory/sgc_rss",
        {"encoder": "own", "relational.wording": "plain"},
        CHAIN,
        CITY,
        (Read(" ".join(CHAIN), "program"), Read(CITY, "asker")),
        "model",
    ),
    "a chain's end": (
        "memory/sgc_rss",
        {"encoder": "own", "relational.wording": "question"},
        CHAIN,
        CITY,
        (Read("In which city is the employer of Carla: Lima.", "program"), Read(CITY, "asker")),
        COPIED,
    ),
    "a route": ("memory/smpd", {"encoder": "own"}, MAP, ROUTE_QUESTION, ROUTE, COPIED),
    "a composite's route": ("memory/all", {}, (*EPISODES, *MAP), ROUTE_QUESTION, ROUTE, COPIED),
    "a composite's fact": ("memory/all", {}, (*EPISODES, *MAP), LEFT, (Read(EPISODES[0], "teller"), Read(LEFT, "asker")), "model"),
}


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), threads=1)


@pytest.mark.parametrize("delivery", ["text", "kv"])
@pytest.mark.parametrize("case", CASES)
def test_an_answer_shows_what_the_model_read(lm, case, delivery):
    preset, settings, sentences, question, read, by = CASES[case]
    with Memory(lm, preset, {**settings, "delivery": delivery}) as memory:
        memory.teach(sentences)
        rows = runs_of(lm, memory.method.delivery)
        answer = memory.ask(question)
    assert (answer.read, answer.composed_by) == (read, by)
    as_one_text = case == "a chain as told"  # one text, which is run as one
    assert list(map(list, rows)) == list(map(list, runs_to_read(lm, answer.read, as_one_text, delivery)))
    assert all(f'"{part.text}"{" (written by a program)" * (part.by == "program")}' in answer.why for part in answer.read)
    assert [trace.text for trace in answer.traces] == (
        list(MAP) if read is ROUTE else list(sentences) if "chain" in case else [EPISODES[0]]
    )


TRACES = (Trace("w", "1", "Ada went."), Trace("w", "2", "Ada came."))
DELIVERED = Delivered("Ada", (1,), 9, 9, 1, 1.0, -0.1, "...", 4)


def test_who_composed_an_answer_follows_from_what_the_method_brings():
    retrieved_plain = Retrieved(TRACES)
    end = replace(retrieved_plain, restated="Who came: Ada.")

    def by(retrieved, delivered=DELIVERED, masked=False):
        return composed_by(read_of("Who came?", retrieved, delivered, masked), retrieved, delivered)

    assert [by(retrieved_plain), by(end), by(replace(end, reworded=True))] == ["model", COPIED, "model"]
    assert by(replace(retrieved_plain, rephrased="Who came back?")) == "model"
    assert by(end, masked=True) == by(end, replace(DELIVERED, dropped=1)) == "model"  # the model saw nothing of it
    assert by(retrieved_plain, replace(DELIVERED, decided=True)) == by(end, replace(DELIVERED, generated_tokens=0)) == "program"


def test_what_had_no_room_was_not_read():
    retrieved, short = Retrieved(TRACES), replace(DELIVERED, dropped=1)
    assert read_of("Who?", retrieved, short, False) == (Read("Ada came.", "teller"), Read("Who?", "asker"))
    assert left_of(retrieved, short) == TRACES[1:]
    end = replace(retrieved, restated="Who came: Ada.", rephrased="Who is it?")
    assert read_of("Who?", end, short, False) == (Read("Who is it?", "program"),)
    assert left_of(end, short) == ()


@pytest.mark.parametrize("delivery", ["text", "kv"])
def test_an_unknown_that_a_method_decides_is_no_answer_of_the_model_and_never_cut(lm, delivery):
    asked = [Question("Who came?", TRACES, penalty) for penalty in (ALWAYS, NEVER)]
    decided, own = load_delivery(delivery, lm).ask(asked, 1)
    assert (decided.text, decided.decided, decided.cut) == ("unknown", True, False)
    assert (own.decided, own.cut) == (False, True)


def test_an_answer_that_the_limit_cut_says_so(lm):
    with Memory(lm, settings={"encoder": "own"}) as memory:
        memory.teach("Anna left the bicycle at the old station by the river.")
        cut, complete = memory.ask(LEFT, tokens=1), memory.ask(LEFT)
    assert cut.cut and "was cut after 1 tokens" in cut.why
    assert not complete.cut and "was cut" not in complete.why
