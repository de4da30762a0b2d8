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
    """What a provider answered. Numbers are None where it does not say."""

    text: str = ""  # "" where there is no answer
    tokens_in: int | None = None  # all tokens of the prompt as the provider counts them, those from its cache among them
    tokens_out: int | None = None  # those of reasoning among them
    cached_tokens: int | None = None  # the part of `tokens_in` from the provider's cache
    seconds: float = 0.0  # from the first attempt to the end of the last one, with pauses
    error: str | None = None  # why there is no answer, in one line; None where there is one
    attempts: int = 1  # how often it was called
    cut: bool = False  # whether the limit of new tokens ended it; False where the provider does not say


class Provider(ABC):
    """A model somewhere. Subclasses define `call`, `describe` and `identity`."""

    takes_temperature: bool = True  # where it is not told one, a record says null
    instructed: bool = False  # it brings an instruction of its own, so that a prompt needs none
    may_be_empty: bool = False  # an empty answer is one; elsewhere it is a failure

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
            completion = self.call(prompt, max_tokens, temperature)
            try:
                completion = replace(completion, text=normal(completion.text, "the answer"))
            except LabError as error:
                raise CallFailed(f"{self.describe()}: {error}", retry=True) from None
            if not (self.may_be_empty or completion.text.strip()):
                raise CallFailed(f"{self.describe()}: the answer is empty", retry=True)
            return completion

        try:
            completion = retrying(attempt, self.policy)
        except LabError:
            raise
        except Exception as error:  # whatever one call runs into must not end the others
            completion = Completion(error=in_a_line(error))
        return replace(completion, seconds=time.perf_counter() - begin, attempts=attempts)

    def answers(self, prompts: Sequence[str], *, max_tokens: int = 64, temperature: float = 0.0) -> list[Completion]:
        """The answers to many prompts, in their order."""
        return [self.answer(prompt, max_tokens=max_tokens, temperature=temperature) for prompt in prompts]
