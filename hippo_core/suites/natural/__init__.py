"""Suites of text that people wrote: Wikipedia's passages and the questions that others asked about them, read from the user's folder."""
