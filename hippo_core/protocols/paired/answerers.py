"""Who answers a run: the quoting reader, a model of this lab, or a model behind a provider (hippo_core/providers)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hippo_core.protocols.paired.answering import BRIEFING_TOKENS, TOKENS, Answerer, ItemAnswer, LocalModel, Prompt, cited_in, reader
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.providers import Provider, load_provider

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


@dataclass(frozen=True)
class FromProvider:
    """A model somewhere, at temperature 0. It gets `Prompt.text`; of the passages those that its limit holds, the last told first."""

    provider: Provider

    def answer(self, prompt: Prompt) -> ItemAnswer:
        """Tokens are those that the provider states, None where it does not; a failure stands in the answer's `error`."""
        most = BRIEFING_TOKENS if prompt.briefing else TOKENS
        fitting = self.provider.fitting([passage.text for passage in prompt.passages], prompt.text_without_notes, most)
        kept = prompt.with_last(len(fitting))
        found = self.provider.answer(kept.text, max_tokens=most)
        cited = cited_in(found.text, kept.passages)
        costs = found.tokens_in, found.tokens_out, found.seconds
        return ItemAnswer(found.text.strip(), *costs, found.error or "", found.cached_tokens, cited, kept.read)


def answerer_of(settings: RunSettings, lm: "str | LanguageModel") -> Answerer:
    """The one that a run's settings name. LabError where its provider is unknown or not there."""
    if not settings.by_model:
        return reader(settings.encoder)
    if settings.provider:
        return FromProvider(load_provider(settings.provider, key_env=settings.key_env))
    if isinstance(lm, str):
        from hippo_core.models.load import load
        from hippo_core.models.spec import load_spec

        lm = load(load_spec(lm), threads=1)
    return LocalModel(lm)
