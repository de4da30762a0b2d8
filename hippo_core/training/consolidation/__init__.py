"""Consolidation: what a store holds is rehearsed into the model itself, so that it answers with its memory off. This face imports nothing.

`rehearsal` makes questions out of traces, `kept` what must not be lost, `ways` how the model may change, `sleep` trains.
"""
