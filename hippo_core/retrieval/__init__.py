"""What finds things: words, pieces of words, vectors, sparse codes, an index of traces; for baselines and memories both."""
