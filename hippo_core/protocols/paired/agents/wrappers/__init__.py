"""Shell scripts that call real agents (tasks.py)."""
