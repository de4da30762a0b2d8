"""Traces for tests, made by hand or drawn by hypothesis."""

import numpy as np
from hypothesis import strategies as st

from hippo_core.retrieval.payload import Payload, PayloadCodec
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store import Identity
from hippo_core.store.trace import Trace

DIMS, WINNERS, TOKENS = 32, 4, 8
CODEC = PayloadCodec(key="by hand", dims=DIMS, winners=WINNERS, token_limit=TOKENS)
IDENTITY = Identity("made", "0" * 64, "hei_nw", CODEC)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.integers(-128, 127).filter(bool)
keys = st.dictionaries(st.integers(0, DIMS - 1), values, min_size=1, max_size=WINNERS).map(lambda entries: key_of(entries))
saliences = st.floats(0, 1e9)


def key_of(entries):
    """A key of a dict from index to value."""
    dims = sorted(entries)
    return SparseKey(np.array(dims), np.array([entries[dim] for dim in dims]), DIMS)


def trace(source="f1", world="w1", **given):
    """A trace by hand; what is not given is the same for all."""
    payload = Payload(given.pop("token_ids", (1, 2, 3)), (given.pop("key", key_of({3: 7, 20: -1})),))
    return Trace(world=world, source=source, **{"text": f"words of {source}", "payload": payload, **given})


drawn = st.builds(
    Trace,
    world=st.sampled_from(["w1", "w2", "w3"]),
    source=texts,
    text=texts,
    payload=st.builds(
        Payload,
        st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=TOKENS).map(tuple),
        st.lists(keys, min_size=1, max_size=3).map(tuple),
    ),
    teller=texts,
    confidence=st.none() | st.floats(0, 1) | st.sampled_from([0, 1]),
    salience=saliences,
    pinned=st.booleans(),
    provenance=st.sampled_from(["chat", "tool", "file"]),
    context_key=texts,
    time=st.integers(-(2**62), 2**62) | st.integers(0, 9),
    uses=st.integers(0, 2**62),
    evidence=st.integers(1, 2**62),
)
