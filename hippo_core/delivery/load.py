"""A delivery by its name, for a loaded model."""

from importlib import import_module
from pathlib import Path

from hippo_core.delivery import DELIVERIES, module_of
from hippo_core.delivery.types import Delivery
from hippo_core.files import root
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import Precision, StoreKV
from hippo_core.models.prompt import Decoding
from hippo_core.plugins import imported

ON_DISK = "data/generated/kv"  # below the lab's root; named by what they hold, so that many runs share them


def load_delivery(
    name: str,
    lm: LanguageModel,
    decoding: Decoding = "short",
    store_kv: StoreKV = "memory",
    folder: Path | None = None,
    precision: Precision = "bfloat16",
) -> Delivery:
    """The delivery of this name for a loaded model; `store_kv`, `folder` and `precision` say how passages' KV are kept (`PassageKV`; text
    has none). LabError for an unknown name, and for adapter where the model has none."""
    module = module_of(name)
    if name not in DELIVERIES:
        return imported(name, "delivery")(lm, decoding)
    if name == "text":
        return import_module(module).TextDelivery(lm, decoding)
    folder = root() / ON_DISK if store_kv == "disk" and folder is None else folder
    return import_module(module).load(lm, decoding, store_kv, folder, precision)
