"""How what a method brings reaches the model: one `ask` (types.py) with three deliveries by name, or anybody's own by module path.

text      the passages' text in the prompt, read anew each time
kv        keys and values of the passages before the question's, in the cache
adapter   the question alone is run, and a trained adapter lets some blocks look at the passages

Importing this brings no torch.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hippo_core.errors import LabError, unknown
from hippo_core.files import home
from hippo_core.models.kv_storage import KVStorage
from hippo_core.plugins import imported, is_path, located

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivery
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.models.prompt import Decoding

DELIVERIES = ("text", "kv", "adapter")
BESIDE_PROMPT = ("kv", "adapter")  # of these, deliveries whose passages are no part of an item's prompt
ON_DISK = "data/generated/kv"  # below the lab's home; named by what they hold, so that many runs share them
DEFAULT = KVStorage()


def module_of(name: str) -> str:
    """The module of a delivery: one of ours by name, or that of `package.module:Class`. LabError for an unknown name, and for
    a module that is not there."""
    if name in DELIVERIES:
        return f"hippo_core.delivery.{name}"
    if not is_path(name):
        raise unknown("delivery", name, (*DELIVERIES, "package.module:Class"))
    return located(name, "delivery")


def load_delivery(
    name: str,
    lm: "LanguageModel",
    decoding: "Decoding" = "short",
    storage: KVStorage = DEFAULT,
    folder: Path | None = None,
) -> "Delivery":
    """The delivery of this name for a loaded model; `storage` and `folder` say how and where passages' KV are kept (`PassageKV`). LabError
    for an unknown name, and for adapter where the model has none."""
    module = module_of(name)
    if name not in DELIVERIES:
        factory = imported(name, "delivery")
        if not (isinstance(factory, type) and callable(getattr(factory, "ask", None))):
            raise LabError(f"delivery {name}: expected a class with ask(questions, max_new_tokens), got {type(factory).__name__}")
        return factory(lm, decoding)
    if name == "text":
        return import_module(module).TextDelivery(lm, decoding)
    return import_module(module).load(lm, decoding, storage, folder or folder_of(storage))


def folder_of(storage: KVStorage) -> Path | None:
    """Where KV on disk are usually kept; None where nothing is."""
    return home() / ON_DISK if storage.store == "disk" else None
