"""Consolidation: what a store holds is rehearsed into the model itself, which answers with its memory off. This face imports nothing."""
