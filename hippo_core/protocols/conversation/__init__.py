"""Dialogues longer than a window, and the techniques that choose what of them a model is shown."""
