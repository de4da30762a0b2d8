"""Recipes: how the weights that ship were made. They import hippo_core; nothing imports them but notebook 00 and tests."""
