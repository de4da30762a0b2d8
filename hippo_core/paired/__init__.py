"""Paired evaluation of memories."""
