"""The interface of all providers: a prompt in, a `Completion` out. A failure is one with an `error`, so that no other answer is lost."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.providers.retry import CallFailed, RetryPolicy, retrying
from hippo_core.text import normal


@dataclass(frozen=True, slots=True)
class Completion:
    """What a provider answered.

    Args:
        text: the answer; "" where there is none.
        tokens_in: all tokens of the prompt as the provider counts them, those read from its cache among them; None where it does not say.
        tokens_out: tokens produced, those of reasoning among them; None where it does not say.
        cached_tokens: the part of `tokens_in` that came from the provider's cache; None where it does not say.
        seconds: from the first attempt to the end of the last one, pauses between them included.
        error: why there is no answer, in one line; None where there is one.
        attempts: how often it was called.
        cut: whether the limit of new tokens ended it, and not the model; False where the provider does not say.
    """

    text: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached_tokens: int | None = None
    seconds: float = 0.0
    error: str | None = None
    attempts: int = 1
    cut: bool = False


class Provider(ABC):
    """A model somewhere. Subclasses define `call`, `describe` and `identity`.

    Class attributes:
        takes_temperature: whether the model is told a temperature; where it is not, a record says null.
        instructed: whether it brings an instruction of its own, so that a prompt needs none.
        may_be_empty: whether an empty answer is one; elsewhere it is a failure.
    """

    takes_temperature: bool = True
    instructed: bool = False
    may_be_empty: bool = False

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = policy or RetryPolicy()

    @abstractmethod
    def call(self, prompt: str, max_tokens: int, temperature: float) -> Completion:
        """One attempt. Raises CallFailed where it brings no answer."""

    def fitting(self, lines: Sequence[str], question: str, max_tokens: int) -> Sequence[str]:
        """Of lines before a question those that the model's limit holds, the last; all, where nobody knows the limit."""
        return lines

    def prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """Do once, untimed, what the first answer would wait for."""

    @abstractmethod
    def describe(self) -> str:
        """What is called, in one line, without any secret."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """The name under which records are kept: equal names give answers of the same model and settings."""

    def answer(self, prompt: str, *, max_tokens: int = 64, temperature: float = 0.0) -> Completion:
        """The answer to a prompt, with retries where they can help. Only a mistake of the user's (LabError) is raised."""
        self.prepare()
        begin, attempts = time.perf_counter(), 0

        def attempt() -> Completion:
            nonlocal attempts
            attempts += 1
            found = self.call(prompt, max_tokens, temperature)
            try:
                found = replace(found, text=normal(found.text, "the answer"))
            except LabError as error:
                raise CallFailed(f"{self.describe()}: {error}", retry=True) from None
            if not (self.may_be_empty or found.text.strip()):
                raise CallFailed(f"{self.describe()}: the answer is empty", retry=True)
            return found

        try:
            found = retrying(attempt, self.policy)
        except LabError:
            raise
        except Exception as error:  # whatever one call runs into must not end the others
            found = Completion(error=in_a_line(error))
        return replace(found, seconds=time.perf_counter() - begin, attempts=attempts)

    def answers(self, prompts: Sequence[str], *, max_tokens: int = 64, temperature: float = 0.0) -> list[Completion]:
        """The answers to many prompts, in their order."""
        return [self.answer(prompt, max_tokens=max_tokens, temperature=temperature) for prompt in prompts]
