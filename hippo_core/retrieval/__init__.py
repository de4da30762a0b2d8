"""What finds things: words, pieces of words, vectors, sparse codes, an index of traces and recall from it; for baselines and memories."""
