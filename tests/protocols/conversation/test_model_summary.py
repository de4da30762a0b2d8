"""The model's own summary: rolling, kept by the turns it is of, within its room."""

from itertools import product
from types import SimpleNamespace

import pytest

from hippo_core.protocols.conversation.budget import ContextBudget, budget_name
from hippo_core.protocols.conversation.phases import calls_of
from hippo_core.protocols.conversation.techniques import load_technique, model_summary
from hippo_core.protocols.conversation.techniques.base import TechniqueContext, TurnQuery
from hippo_core.protocols.conversation.techniques.model_summary import asking
from tests.protocols.conversation.conftest import count
from tests.protocols.conversation.parrot import Parrot

LONG = 25  # turns: two steps of ten and one of five


@pytest.fixture
def talk(dialogue):
    turns = [dialogue.turns[index % 8].model_copy(update={"id": str(index)}) for index in range(LONG)]
    return dialogue.model_copy(update={"turns": tuple(turns)})


@pytest.fixture
def asked(monkeypatch):
    """What was asked of a model that writes how many lines it read, again and again."""
    calls = []

    def write(lm, lines, tokens):
        calls.append((list(lines), tokens))
        return " ".join([f"{len(lines)}-lines"] * 200) if len(lines) <= lm.spec.context_limit // 20 else None

    monkeypatch.setattr(model_summary, "write", write)
    return calls


def load_for(name, limit=1000):
    return load_technique(
        name, TechniqueContext(SimpleNamespace(encode=str.split, encode_text=str.split, spec=SimpleNamespace(context_limit=limit)))
    )


def choose(name, dialogue, budget, limit=1000, questions=("Who?",)):
    context_budget = ContextBudget.of(budget_name(budget), dialogue, [count(turn.line) for turn in dialogue.turns], count)
    choice = load_for(name, limit).open(dialogue)
    return [choice(TurnQuery(question), context_budget) for question in questions][-1]


def test_each_step_reads_the_last_summary_and_ten_turns_and_is_asked_once_a_dialogue(talk, asked):
    choose("model_summary", talk, 40, questions=("Who?", "Where?", "When?"))
    assert [len(lines) for lines, _ in asked] == [10, 11, 6]
    assert asked[1][0][0].startswith("Summary: 10-lines") and asked[1][0][1:] == [turn.line for turn in talk.turns[10:20]]


@pytest.mark.parametrize(
    ("name", "budget"), [*product(("model_summary", "model_window_summary"), ("turns", 6, 12, 40)), ("model_summary", "full")]
)
def test_it_is_cut_to_the_budget(name, budget, talk, asked):
    chosen = choose(name, talk, budget, limit=400)
    tokens = sum(map(count, chosen.lines))
    assert chosen.lines[0].startswith("Summary: ") and chosen.indices == tuple(range(LONG - len(chosen.indices), LONG))
    assert list(chosen.lines[1:]) == [talk.turns[index].line for index in chosen.indices]
    assert tokens <= budget if isinstance(budget, int) else count(chosen.lines[0]) <= 100
    if budget == "turns":
        assert len(chosen.indices) == (6 if name == "model_window_summary" else 0)


def test_what_the_model_cannot_read_at_once_is_read_in_halves(talk, asked):
    choose("model_summary", talk, 40, limit=120)  # six lines
    assert {len(lines) for lines, _ in asked} == {10, 5, 11, 6}


def asked_of(dialogue, name, says):
    """The rows of a technique that lets a provider write, and the provider."""
    parrot = Parrot(says=says)
    context = TechniqueContext(SimpleNamespace(encode_text=str.split), ask=asking(parrot))
    return [row for row, _ in calls_of([dialogue], [name], ["turns"], context, parrot, 8)], parrot


def test_the_model_that_answers_summarises_and_ranks_whoever_it_is(talk, dialogue):
    rows, parrot = asked_of(talk, "model_summary[every=5]", lambda prompt: "Lea: Oslo")
    assert [row["lines"] for row in rows] == [["Summary: Lea: Oslo"]] * 2 and len(parrot.prompts) == 5
    harp_first = lambda prompt: next((line[1] for line in prompt.splitlines() if "harp" in line), "1, 99")  # noqa: E731
    rows, parrot = asked_of(dialogue, "model_rank[window=4;top_k=1]", harp_first)
    assert [row["places"] for row in rows] == [[2], [2]] and len(parrot.prompts) == 6  # it moves up by half a window, twice


def test_a_model_that_names_no_passage_is_an_error_of_its_own(dialogue):
    rows, _ = asked_of(dialogue, "model_rank", lambda prompt: "unknown")
    assert {row["error"] for row in rows} == {"the model was asked for the numbers of passages and wrote 'unknown'"}
