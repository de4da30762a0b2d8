"""Triton's kernels become machine code for a GPU, here where there may be none: the interpreter takes more than the compiler does."""

import json
import os
import subprocess
import sys

import pytest

from tests.kernels.impls import NO_TRITON

pytestmark = pytest.mark.long
SHARED = 99 * 1024  # bytes a program may have on the GPUs that have least, of compute capability 8.6 and 8.9 (CUDA C++ Programming Guide)
CODE = """
import json, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from hippo_core.kernels.hopfield import triton as hopfield
from hippo_core.kernels.kwta import triton as kwta
from hippo_core.kernels.sparse_recall import triton as sparse_recall
from hippo_core.kernels.trace_attention import triton as trace_attention

def compiled(function, types, constants, **options):
    names = function.arg_names
    signature = dict(zip(names, types.split() + ["constexpr"] * len(constants), strict=True))
    places = {(names.index(name),): value for name, value in constants.items()}
    made = triton.compile(ASTSource(fn=function, signature=signature, constexprs=places), GPUTarget("cuda", 86, 32), options)
    return {"machine": bool(made.asm["cubin"]), "shared": made.metadata.shared, "text": made.asm["ptx"]}

tile = {"QUERIES": trace_attention.QUERIES, "TOKENS": trace_attention.TOKENS}
print(json.dumps({
    "kwta": compiled(kwta._fill, "*fp32 *fp32 *i32 *i8 i32 i32", {"BLOCK": 2048}, enable_fp_fusion=False),
    "stream": compiled(sparse_recall._stream, "*i32 *i8 *i1 *i16 *i64 i32 i32 i32 i32 i32", {"WIDTH": 64, "BLOCK": 128, "TOP": 16}),
    "join": compiled(sparse_recall._join, "*i64 *i64 *i64 i32 i32", {"TOP": 16, "BLOCK": 1024}),
    "hopfield": compiled(hopfield._part, "*fp32 *fp32 *i1 *fp32 *fp32 *fp32 i32 i32 i32 fp32 i32",
        {"CUES": hopfield.CUES, "DIMS": hopfield.WIDEST, "BLOCK": 16}, num_stages=hopfield.STAGES),
    "attention": compiled(trace_attention._attend, "*fp32 *fp32 *fp32 *i1 *fp32 *fp32 fp32 i32 i32 i32 i32",
        {**tile, "DIMS": trace_attention.WIDEST}, num_stages=trace_attention.STAGES),
    "attention in halves": compiled(trace_attention._attend, "*bf16 *bf16 *bf16 *i1 *bf16 *fp32 fp32 i32 i32 i32 i32",
        {**tile, "DIMS": 64}, num_stages=trace_attention.STAGES),
}))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the compiler makes of each kernel, in a process of its own, where they are not interpreted."""
    surroundings = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))}
    surroundings.pop("TRITON_INTERPRET", None)
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=surroundings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@NO_TRITON
@pytest.mark.parametrize("kernel", ["kwta", "stream", "join", "hopfield", "attention", "attention in halves"])
def test_it_compiles_within_the_shared_memory_of_small_gpus(made, kernel):
    assert made[kernel]["machine"]
    assert made[kernel]["shared"] <= SHARED


@NO_TRITON
def test_quantising_has_the_same_bits_as_on_a_cpu(made):
    """IEEE's quotient, and no product fused into a sum, which would be rounded once instead of twice."""
    assert "div.rn.f32" in made["kwta"]["text"]
    assert "fma.rn.f32" not in made["kwta"]["text"]
