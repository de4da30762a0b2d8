"""No defence: the damaged cache is read as it is."""

from hippo_core.protocols.cache.defences.base import Defence


class NoDefence(Defence):
    """Repairs nothing."""

    name = "none"
