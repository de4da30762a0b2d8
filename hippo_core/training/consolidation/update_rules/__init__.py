"""The ways into a model by name; each is one file."""

from hippo_core.files import unknown
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.update_rules.base import Way
from hippo_core.training.consolidation.update_rules.gated import GatedLoRA
from hippo_core.training.consolidation.update_rules.groups import GatedGroups, GatedPrefixes
from hippo_core.training.consolidation.update_rules.lora import LoRA
from hippo_core.training.consolidation.update_rules.prefix import KVPrefix
from hippo_core.training.consolidation.update_rules.sparse import SparseRows

WAYS: dict[str, type[Way]] = {way.name: way for way in (LoRA, GatedLoRA, GatedGroups, KVPrefix, GatedPrefixes, SparseRows)}


def make_way(name: str, lm: LanguageModel, rank: int, first_block: int) -> Way:
    """A way into a model, attached to it and still without effect. LabError for an unknown name, and for what the model does not have."""
    if name not in WAYS:
        raise unknown("way", name, WAYS)
    return WAYS[name](lm, rank, first_block)
