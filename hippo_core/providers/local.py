"""A model of the lab's, in this process. It answers greedily, through its chat template."""

from collections.abc import Sequence
from functools import cached_property

from hippo_core.errors import LabError
from hippo_core.models.generate import generate
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.prompt import fit, render, stops
from hippo_core.models.spec import load_spec
from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.retry import CallFailed, RetryPolicy


class LocalProvider(Provider):
    """A model of params/models, a folder with one, or one that is loaded. LabError for a temperature above 0."""

    instructed = may_be_empty = True

    def __init__(self, model: str | LanguageModel, policy: RetryPolicy | None = None) -> None:
        super().__init__(policy)
        self._loaded = None if isinstance(model, str) else model
        self.spec = load_spec(model) if isinstance(model, str) else model.spec

    @cached_property
    def lm(self) -> LanguageModel:
        """The model, loaded when it is first asked."""
        return self._loaded or load(self.spec)

    def fitting(self, lines: Sequence[str], question: str, max_tokens: int) -> Sequence[str]:
        """Of lines before a question those that the context limit holds, the last."""
        return lines[fit(self.lm, lines, question, "short", max_tokens).dropped :]

    def prepare(self) -> None:
        """Load the model."""
        assert self.lm

    @property
    def identity(self) -> str:
        """`local:MODEL`."""
        return f"local:{self.spec.name}"

    def describe(self) -> str:
        """The model and what it reads at most."""
        return f"{self.spec.name} in this process, {self.spec.context_limit} tokens at most"

    def call(self, prompt: str, max_tokens: int, temperature: float) -> Completion:
        """Answer greedily. A prompt that is too long fails: nothing is cut silently."""
        [answer] = self.answers([prompt], max_tokens=max_tokens, temperature=temperature)
        if answer.error:
            raise CallFailed(answer.error)
        return answer

    def answers(self, prompts: Sequence[str], *, max_tokens: int = 64, temperature: float = 0.0) -> list[Completion]:
        """The answers to many prompts, those of like length together; equal prompts are run once."""
        if temperature:
            raise LabError(f"{self.spec.name} answers greedily; expected temperature 0, got {temperature:g}")
        completions, fitting = dict[str, Completion](), dict[str, str]()
        for prompt in sorted(set(prompts), key=lambda prompt: (len(prompt), prompt)):
            text = render(self.lm, (), prompt, "short")
            length, limit = len(self.lm.encode(text)), self.spec.context_limit
            if length + max_tokens <= limit:
                fitting[prompt] = text
            else:
                error = f"{self.spec.name}: a prompt of {length} tokens and an answer of {max_tokens}, the limit is {limit}"
                completions[prompt] = Completion(error=error)
        made = generate(self.lm, list(fitting.values()), max_tokens, self.spec.batch_size, stops(self.lm, "short"))
        for prompt, generation in zip(fitting, made, strict=True):
            completions[prompt] = Completion(
                generation.text.strip(),
                generation.prompt_tokens,
                generation.generated_tokens,
                0,
                generation.latency_ms / 1e3,
                cut=generation.cut,
            )
        return [completions[prompt] for prompt in prompts]
