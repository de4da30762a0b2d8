"""Methods: what brings something for a question. Baselines, retrieval and memories stand behind one small base (base.py).

baselines   nothing, the window, everything
rag         what is most like the question
episodic    HEI-NW: traces, a write gate, recall by sparse codes, completion, replay
controls    wrappers over any of them: empty, shuffled, oracle, random; and teaching altered answers
presets     a method by its module path, with its settings

Importing this brings no torch: a grid is planned from presets long before a model is loaded.
"""
