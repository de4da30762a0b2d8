"""How what a method brings reaches the model: one `ask` (types.py) behind which stand three ways by name, or anybody's own by module path.

text      the passages' text in the prompt, read anew each time
kv        keys and values of the passages before the question's, in the cache
adapter   the question alone is run, and a trained adapter lets some blocks look at the passages

Importing this brings no torch.
"""

from hippo_core.files import unknown
from hippo_core.plugins import is_path, located

DELIVERIES = ("text", "kv", "adapter")
BESIDE_PROMPT = ("kv", "adapter")  # of these, deliveries whose passages are no part of an item's prompt


def module_of(name: str) -> str:
    """The module of a delivery: one of ours by name, or that of `package.module:Class`. LabError for an unknown name, and for
    a module that is not there."""
    if name in DELIVERIES:
        return f"hippo_core.delivery.{name}"
    if not is_path(name):
        raise unknown("delivery", name, (*DELIVERIES, "package.module:Class"))
    return located(name, "delivery")
