"""The update rules by name; each is one file."""

from hippo_core.discovery import member
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.update_rules.base import UpdateRule


def make_update_rule(name: str, lm: LanguageModel, rank: int, first_block: int) -> UpdateRule:
    """An update rule, attached to a model and still without effect. LabError for an unknown name, and for what the model does not have."""
    return member(__name__, name, "way")(lm, rank, first_block)
