"""No defence: the damaged cache is read as it is."""

from hippo_core.cache.defences.base import Defence


class Nothing(Defence):
    """Repairs nothing."""
