"""Memories: what is kept of a taught fact, what is worth keeping, how it is rehearsed, and how it is recalled.

Traces, store, gate and replay queue are plain data and arithmetic, and import no torch.
"""
