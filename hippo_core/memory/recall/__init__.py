"""Recall: a cue to ranked traces. Sparse codes propose candidates, completion judges them, fitted weights add up what both say.

channels    what the codes of words, grams and key say of each trace
completion  what Hopfield completion or the model's own prediction says of a few
fusion      the weights
scope       the traces of one world, made ready
"""
