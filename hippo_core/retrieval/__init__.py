"""Retrieval for baselines and memories: words, pieces of words, vectors, sparse codes, an index of traces, and recall from it."""
