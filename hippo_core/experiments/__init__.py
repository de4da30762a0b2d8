"""Protocols: each experiment is one folder with its descriptor, parameters, run, report and criteria."""
