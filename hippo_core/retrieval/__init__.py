"""Retrieval for baselines and memories: words, character n-grams, vectors, sparse codes, an index of traces, and recall from it."""
