"""Presets: all files load, overrides reach them, and what is wrong is named."""

import subprocess
import sys

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.presets import load_preset


@pytest.mark.parametrize("name", ["baselines/rag_dense", "baselines/rag_hybrid", "baselines/rag_rerank"])
def test_the_encoder_is_the_model_itself_unless_told_otherwise(name):
    assert load_preset(name).settings.encoder == "own"
    assert load_preset(name, {"encoder": "minilm"}).settings.encoder == "minilm"


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("baselines/rag", {}, "unknown preset 'baselines/rag'; legal: .*baselines/core, .*controls/random_facts"),
        ("../grids/smoke", {}, "unknown preset"),
        (f"{root()}/params/presets/baselines/core", {}, "unknown preset"),
        ("baselines/rag_bm25", {"kk": 3}, "kk: unknown key; legal: decoding, delivery, control, abstention, unknown_below, k, recency"),
        ("baselines/rag_bm25", {"k": 0}, "k: .*got 0"),
        ("baselines/rag_bm25", {"k": "many"}, "k: .*got 'many'"),
        ("baselines/rag_dense", {"encoder": "glove"}, "encoder: .*'own' or 'minilm'.*got 'glove'"),
        ("baselines/core", {"k": 3}, "k: unknown key; legal: decoding, delivery, control"),
        ("baselines/rag_bm25", {"encoder": "own"}, "encoder: unknown key; legal: .*k, recency"),
        ("baselines/rag_dense", {"candidates": 5}, "candidates: unknown key; legal: .*encoder"),
        ("baselines/core", {"method": "a:B"}, "its method cannot be replaced"),
    ],
)
def test_what_is_wrong_is_named(name, overrides, message):
    with pytest.raises(LabError, match=message):
        load_preset(name, overrides)


def test_reading_presets_brings_no_torch():
    code = (
        "import sys, hippo_core.methods.presets as c; [c.load_preset(name) for name in c.preset_names()]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
