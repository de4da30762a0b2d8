"""Codes: a text as a few whole numbers in a large space, one space a channel; cue and trace go through the same encoder.

words   the words of a text, rare ones counting more
grams   character 3- and 4-grams of its words: what a misspelt word still shares with the right one
key     the model's own: what its first blocks make of each token, expanded, the strongest units winning
minilm  the vector of a published encoder, expanded at random: a channel that a preset may add
"""
