"""delivery: adapter: the question is run without the traces, and a trained adapter lets some blocks look at them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hippo_core.delivery.kv import KVDelivery, Row
from hippo_core.delivery.trace_adapter import TraceAdapter, lay_traces, load_adapter
from hippo_core.models.ask import Ask, ask
from hippo_core.models.generate import Generation
from hippo_core.models.kv import tokens_of
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import Decoding, prefix_of, stops


class AdapterDelivery(KVDelivery):
    """Answers questions through a trace adapter; `passage_kv` keeps the KV of the adapter's blocks only."""

    def __init__(self, lm: LanguageModel, adapter: TraceAdapter, passage_kv: PassageKV, decoding: Decoding = "short") -> None:
        super().__init__(lm, passage_kv, decoding, adapter.settings.blocks)
        self.adapter = adapter

    def _run(self, rows: Sequence[Row], max_new_tokens: int, batch_size: int, masked: bool) -> list[Generation]:
        """`prompt_tokens` count the traces' tokens, which the adapter sees."""
        prefix = self.passage_kv.prefix
        like = prefix[list(self.adapter.settings.blocks)]

        def batch_context(batch: list[int]):
            return self.adapter.attached(self.lm, lay_traces([rows[row].traces for row in batch], like, masked))

        asks = [Ask(row.tail, (prefix,), tokens_of(prefix), penalty=row.penalty) for row in rows]
        answers = ask(self.lm, asks, max_new_tokens, stops(self.lm, self.decoding), batch_size, batch_context)
        visible = [0 if masked else sum(map(tokens_of, row.traces)) for row in rows]
        return [replace(answer, prompt_tokens=answer.prompt_tokens + tokens) for answer, tokens in zip(answers, visible, strict=True)]


def load(lm: LanguageModel, decoding: Decoding, storage: KVStorage, folder: Path | None) -> AdapterDelivery:
    """The delivery through the adapter that was fitted for a model; LabError where it has none."""
    adapter = load_adapter(lm)
    passage_kv = PassageKV(lm, prefix_of(lm, decoding), storage, folder, adapter.settings.blocks)
    return AdapterDelivery(lm, adapter, passage_kv, decoding)
