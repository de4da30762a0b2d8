"""Methods: what brings something for a question. Baselines, retrieval (rag), memories (episodic, relational, spatial, composite) and their
controls stand behind one small base (base.py); a preset is a method by its module path, with its settings.

Importing this brings no torch: a grid is planned from presets long before a model is loaded.
"""
