"""Models that a package index carries."""
