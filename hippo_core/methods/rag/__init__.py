"""Retrieval-augmented generation: what is most like the question stands before it."""
