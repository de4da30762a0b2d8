"""inject=adapter: the question is run without the traces, and a trained adapter lets some blocks look at them."""

from collections.abc import Sequence
from dataclasses import replace

from hippo_core.delivery.kv import check_known, prepare
from hippo_core.delivery.trace_adapter import TraceAdapter
from hippo_core.delivery.trace_batch import lay_traces
from hippo_core.delivery.trace_kv import TraceKV
from hippo_core.delivery.types import Injected, Question
from hippo_core.models.ask import Ask, ask
from hippo_core.models.kv import tokens_of
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import Decoding, stops


class AdapterInjection:
    """Questions answered through a trace adapter; `known` keeps the KV of the adapter's blocks and no other."""

    mode = "adapter"

    def __init__(self, lm: LanguageModel, adapter: TraceAdapter, known: TraceKV, decoding: Decoding = "short") -> None:
        check_known(lm, known, decoding, adapter.settings.blocks)
        self.lm, self.adapter, self.known = lm, adapter, known
        self.decoding: Decoding = decoding

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Injected]:
        """See `Injection`. `prompt_tokens` count the traces' tokens, which the adapter sees. LabError for a question or trace that
        is too long."""
        ready = prepare(self.known, questions, self.decoding, max_new_tokens)
        prefix = self.known.prefix
        like = prefix[list(self.adapter.settings.blocks)]

        def beside(batch: list[int]):
            return self.adapter.attached(self.lm, lay_traces([ready.traces[row] for row in batch], like, masked))

        asks = [Ask(tail, (prefix,), tokens_of(prefix)) for tail in ready.tails]
        answers = ask(self.lm, asks, max_new_tokens, stops(self.lm, self.decoding), batch_size, beside)
        found = ready.injected(answers)
        return found if masked else [replace(one, prompt_tokens=one.prompt_tokens + one.trace_tokens) for one in found]
