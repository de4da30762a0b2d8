"""Conversations from the command line: three phases that can each be run again alone, a judge, and how well evidence is found."""
