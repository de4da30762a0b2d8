"""Who answers a prompt: a model of the lab, or anything else that takes a text and gives one back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

INSTRUCTION = "You are a helpful assistant. Answer based on the conversation history provided."
ANSWER_TOKENS = 8


@dataclass(frozen=True)
class Answer:
    """What came back. `tokens_in`, `tokens_out`: None where nobody counted; `error`: why there is no answer, "" where there is one."""

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    error: str = ""


class Executor(Protocol):
    """Something that answers a prompt; it never raises for what a retry or another prompt would mend, but says so in `error`."""

    def answer(self, prompt: str) -> Answer:
        """The answer to one prompt."""
        ...


def plain_prompt(lines: Sequence[str], question: str) -> str:
    """The specification's prompt: the instruction, the history, the question, with blank lines between."""
    return "\n\n".join([INSTRUCTION, *lines, f"User: {question}"])


@dataclass(frozen=True)
class LocalModel:
    """A loaded model, greedily, in the prompts of the lab: its template, the lines, the question. Of lines that its limit does not hold the
    first go. `tokens`: of an answer at most."""

    lm: Any
    tokens: int = ANSWER_TOKENS
    batch_size: int = 32

    def prompt(self, lines: Sequence[str], question: str) -> tuple[str, int]:
        """The prompt, and how many of the first lines had no room."""
        from hippo_core.models.prompt import fit

        fitted = fit(self.lm, lines, question, "short", self.tokens)
        return fitted.prompt, fitted.dropped

    def answer(self, prompt: str) -> Answer:
        """See `Executor`."""
        return self.answers([prompt])[0]

    def answers(self, prompts: Sequence[str]) -> list[Answer]:
        """The answers to many prompts, those of like length together; equal prompts are run once."""
        from hippo_core.models.generate import generate
        from hippo_core.models.prompt import stops

        each = sorted(dict.fromkeys(prompts), key=lambda prompt: (len(prompt), prompt))
        made = generate(self.lm, each, self.tokens, self.batch_size, stops(self.lm, "short"))
        answered = {
            prompt: Answer(one.text.strip(), one.prompt_tokens, one.generated_tokens, one.latency_ms / 1e3)
            for prompt, one in zip(each, made, strict=True)
        }
        return [answered[prompt] for prompt in prompts]
