"""Data sets on disk: built, described, checked, read back."""
