"""Questions asked under a method: protocol 1, the memories and their baselines."""
