"""Memories: traces of what was told, a gate that writes them, a store that keeps them, recall, replay, and how they reach the model.

codes, writing, gate   a statement becomes a sparse key, is weighed, and is written
store                  traces on disk
recall                 a cue to ranked traces: sparse candidates, completion, fusion
replay                 what is rehearsed between teaching and asking
inject                 traces before a question: keys and values, adapter, or text
episodic               all of it for one model and one preset (HEI-NW)
"""
