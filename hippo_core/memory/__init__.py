"""The memory: what is kept of taught facts, how it is found again, and how it reaches the model."""
