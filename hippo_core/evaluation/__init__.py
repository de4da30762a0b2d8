"""Evaluation: the items of a suite asked under a method, a row an item. This face imports nothing."""
