"""The procedures of an experiment: what is done to a model and its memory, and in which order."""
