"""The sizes computed from a configuration are the bytes that are really stored."""

import pytest

from benchmarks.memory.size import QWEN, trace_bytes, traces_per_gb
from hippo_core.models.kv_storage import KVStorage, shape_of
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from tests.models.handmade import WORLD_TEXTS

FACT = WORLD_TEXTS["test-00000"][0]


@pytest.mark.parametrize("precision", ["model", "bfloat16", "int8"])
def test_stored_kv_takes_what_the_shape_says(lm, precision):
    ids, shape = lm.encode(FACT), shape_of(lm.config)
    bare = trace_bytes("text", shape, len(ids), FACT)
    for mode, blocks in (("kv", None), ("adapter", [1])):
        [kv] = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision=precision), blocks=blocks).get([ids]).traces
        assert trace_bytes(mode, shape, len(ids), FACT, blocks=blocks or (), precision=precision) == bare + kv.nbytes


def test_a_model_of_15_billion_parameters():
    assert QWEN.kv_bytes(1, "bfloat16") == 28 * 1024  # 28 KiB a token in bfloat16
    assert traces_per_gb(trace_bytes("kv", QWEN, 15, FACT, precision="bfloat16")) == 10**9 // (28 * 1024 * 15 + 4 * 15 + len(FACT))
