"""A model of the lab's, in this process. It answers greedily, through its chat template."""

from collections.abc import Sequence
from functools import cached_property

from hippo_core.files import LabError
from hippo_core.models.generate import generate
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.prompt import fit, render, stops
from hippo_core.models.spec import load_spec
from hippo_core.providers.base import Answer, Provider
from hippo_core.providers.retry import CallFailed, RetryPolicy


class LocalProvider(Provider):
    """A model of params/models, or a folder with one. LabError for a temperature above 0."""

    instructed = may_be_empty = True

    def __init__(self, model: str, policy: RetryPolicy | None = None) -> None:
        super().__init__(policy)
        self.spec = load_spec(model)

    @cached_property
    def lm(self) -> LanguageModel:
        """The model, loaded when it is first asked."""
        return load(self.spec)

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

    def call(self, prompt: str, max_tokens: int, temperature: float) -> Answer:
        """Answer greedily. A prompt that is too long fails: nothing is cut silently."""
        if temperature:
            raise LabError(f"{self.spec.name} answers greedily; expected temperature 0, got {temperature:g}")
        text = render(self.lm, (), prompt, "short")
        length = len(self.lm.encode(text))
        if length + max_tokens > self.spec.context_limit:
            raise CallFailed(
                f"{self.spec.name}: a prompt of {length} tokens and an answer of {max_tokens}, the limit is {self.spec.context_limit}"
            )
        [made] = generate(self.lm, [text], max_tokens, stop=stops(self.lm, "short"))
        return Answer(made.text, made.prompt_tokens, made.generated_tokens, 0)
