"""How recalled traces reach the model: three ways behind one `ask`, chosen by name.

kv        keys and values of the traces before the question's, in the cache
adapter   the question alone is run, and a trained adapter lets some blocks look at the traces
text      the traces' text in the prompt, read anew each time
"""

from pathlib import Path
from typing import Literal, get_args

from hippo_core.delivery.adapter import AdapterInjection
from hippo_core.delivery.adapter_file import load_adapter
from hippo_core.delivery.kv import KVInjection, prefix_of
from hippo_core.delivery.text import TextInjection
from hippo_core.delivery.trace_kv import Precision, StoreKV, TraceKV
from hippo_core.delivery.types import Injected, Injection, Question
from hippo_core.files import unknown
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import Decoding

__all__ = ["MODES", "AdapterInjection", "Injected", "Injection", "KVInjection", "Mode", "Question", "TextInjection", "TraceKV", "injection"]

Mode = Literal["kv", "adapter", "text"]
MODES = get_args(Mode)


def injection(
    lm: LanguageModel,
    mode: Mode,
    decoding: Decoding = "short",
    store_kv: StoreKV = "memory",
    folder: Path | None = None,
    precision: Precision = "bfloat16",
) -> Injection:
    """The way of this name for a loaded model; `store_kv`, `folder` and `precision` say how traces' KV are kept (see `TraceKV`; text
    has none). LabError for an unknown name, and for adapter where the model has none."""
    if mode == "text":
        return TextInjection(lm, decoding)
    if mode == "kv":
        return KVInjection(lm, TraceKV(lm, prefix_of(lm, decoding), store_kv, folder, None, precision), decoding)
    if mode == "adapter":
        adapter = load_adapter(lm)
        known = TraceKV(lm, prefix_of(lm, decoding), store_kv, folder, adapter.settings.blocks, precision)
        return AdapterInjection(lm, adapter, known, decoding)
    raise unknown("inject", mode, MODES)
