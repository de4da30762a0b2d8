"""Paired evaluation of a memory: suites as folders, conditions side by side, runs that are compared item by item."""
