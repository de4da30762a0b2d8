"""Dialogues of our own, and a provider that is no model: it answers with words of its prompt."""

from types import SimpleNamespace

from hippo_core.protocols.conversation import phases
from hippo_core.protocols.conversation.lines import read_lines, write_lines
from hippo_core.protocols.conversation.techniques.base import TechniqueContext
from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.retry import CallFailed, RetryPolicy

NAMES = ("Anna", "Ben", "Carl", "Dora", "Emil", "Frida", "Gerd", "Hanna", "Ivan", "Jana", "Karl", "Lea")
OBJECTS = ("lamp", "violin", "ladder", "bicycle", "kettle", "globe", "rug", "clock", "drum", "easel", "funnel", "guitar")


def values():
    return [
        {
            "id": f"talk-{number}",
            "turns": [
                {"speaker": "user", "text": f"I am {name} and I own the {object_}."},
                {"speaker": "assistant", "text": "Noted."},
                {"speaker": "user", "text": f"My {object_} is in the US, not on the bus."},
            ],
            "questions": [
                {"id": "owner", "question": f"Who owns the {object_}?", "answer": name, "entities": [name], "position": "early",
                 "salience": "high"},
                {"id": "place", "question": f"Where is the {object_}?", "answer": "US", "entities": ["US", object_], "position": "recent",
                 "salience": "low", "refuted": ["bus"]},
            ],
        }
        for number, (name, object_) in enumerate(zip(NAMES, OBJECTS, strict=True))
    ]  # fmt: skip


def execute(raw, dialogues, techniques, provider, max_tokens=64):
    setting = TechniqueContext(SimpleNamespace(encode_text=str.split))
    return phases.execute_into(raw, phases.calls_of(dialogues, techniques, ["turns"], setting, provider, max_tokens), provider)


def evaluate(raw, dialogues, out):
    write_lines(out, scored := phases.evaluate(read_lines(raw), dialogues, raw))
    return scored


class Parrot(Provider):
    """Says the name in its prompt, and "the US" where it is asked for a place; nothing where the dialogue is not shown."""

    def __init__(self, fails=(), name="parrot", says=None):
        super().__init__(RetryPolicy(attempts=1))
        self.fails, self.name, self.says, self.prompts = set(fails), name, says, []

    @property
    def identity(self):
        return self.name

    def describe(self):
        return f"the {self.name}"

    def call(self, prompt, max_tokens, temperature):
        self.prompts.append(prompt)
        if len(self.prompts) in self.fails:
            raise CallFailed("it is asleep")
        if self.says:
            return Completion(self.says(prompt))
        name = next((name for name in NAMES if f"I am {name} " in prompt), "unknown")
        text = name if "Who" in prompt else "In the US, I think" if "user:" in prompt else "On a bus"
        return Completion(text, tokens_in=len(prompt.split()), tokens_out=1)
