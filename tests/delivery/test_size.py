"""The sizes computed from a configuration are the bytes that are really stored."""

import pytest
from transformers import AutoConfig

from benchmarks.memory.trace_size import QWEN, trace_bytes, traces_per_gb
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.kv_storage import KVStorage, shape_of
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from tests.models.handmade import TOLD

FACT = TOLD["test-00000"][0]


@pytest.mark.parametrize("precision", ["model", "bfloat16", "int8"])
def test_stored_kv_takes_what_the_shape_says(lm, precision):
    ids, shape = lm.encode(FACT), shape_of(lm.config)
    bare = trace_bytes("text", shape, len(ids), FACT)
    for mode, blocks in (("kv", None), ("adapter", [1])):
        [kv] = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision=precision), blocks=blocks).get([ids]).traces
        assert trace_bytes(mode, shape, len(ids), FACT, blocks=blocks or (), precision=precision) == bare + kv.nbytes


def test_what_is_run_anew_takes_its_ids_and_its_text(lm):
    ids, shape = lm.encode(FACT), shape_of(lm.config)
    assert {trace_bytes(mode, shape, len(ids), FACT, stored=False, blocks=[0]) for mode in ("kv", "adapter", "text")} == {
        4 * len(ids) + len(FACT)
    }
    assert trace_bytes("text", shape, 0, "é") == 2


def test_a_model_of_15_billion_parameters():
    assert QWEN.kv_bytes(1, "bfloat16") == 28 * 1024  # 28 KiB a token in bfloat16
    assert traces_per_gb(trace_bytes("kv", QWEN, 15, FACT, precision="bfloat16")) == 10**9 // (28 * 1024 * 15 + 4 * 15 + len(FACT))


def test_the_shape_of_the_real_model():
    folder = root() / "data/models/smollm2-135m"
    if not folder.exists():
        pytest.skip("run `make models`")
    shape = shape_of(AutoConfig.from_pretrained(folder, trust_remote_code=False))
    assert (shape.layers, shape.kv_heads, shape.head_width) == (30, 3, 64)


def test_an_unknown_way_names_the_known_ones():
    with pytest.raises(LabError, match="legal: adapter, kv, text"):
        trace_bytes("cache", QWEN, 15, FACT)
