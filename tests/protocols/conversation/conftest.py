"""A small dialogue by hand, a room for it, and a language model that counts words; dialogues in a file, and a provider that is no model."""

import json
from types import SimpleNamespace

import pytest

from hippo_core.protocols.conversation.budget import ContextBudget, budget_name
from hippo_core.protocols.conversation.dialogue import Dialogue, read
from hippo_core.protocols.conversation.techniques.base import TechniqueContext
from tests.protocols.conversation.parrot import Parrot, values

TURNS = (
    ("user", "Lea lives in Rome."),
    ("assistant", "I see."),
    ("user", "Omar plays the harp."),
    ("assistant", "Go on, please."),
    ("user", "Actually, Lea lives in Oslo."),
    ("assistant", "How nice."),
    ("user", "Ivo eats soup for lunch."),
    ("assistant", "Is there anything else?"),
)


def count(line: str) -> int:
    return len(line.split())


@pytest.fixture
def dialogue() -> Dialogue:
    lives = {"question": "In which city does Lea live?", "answer": "Oslo", "entities": ["Oslo"], "evidence": ["4"], "refuted": ["Rome"]}
    plays = {"question": "Which instrument does Omar play?", "answer": "harp", "entities": ["harp"], "evidence": ["2"]}
    turns = [{"role": speaker, "content": text} for speaker, text in TURNS]
    return Dialogue.model_validate({"id": "d", "turns": turns, "questions": [lives, plays]})


@pytest.fixture
def context_budget(dialogue):
    def of(budget: str | int) -> ContextBudget:
        return ContextBudget.of(budget_name(budget), dialogue, [count(turn.line) for turn in dialogue.turns], count)

    return of


@pytest.fixture
def setting() -> TechniqueContext:
    return TechniqueContext(SimpleNamespace(encode_text=str.split))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps(values()))
    return path


@pytest.fixture
def dialogues(file):
    return read(file)


@pytest.fixture
def parrot():
    return Parrot()
