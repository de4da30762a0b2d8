"""HEI-NW, the episodic memory."""
