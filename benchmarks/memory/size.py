"""How many traces a gigabyte holds, by model and way of injecting; and what an index of a million keys takes."""

import resource
import time
from collections.abc import Sequence

import torch
from transformers import AutoConfig

from hippo_core.errors import unknown
from hippo_core.files import root
from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.models.kv_storage import KVShape, Precision, shape_of

TEXT, TOKENS = "On Friday, Carla sold a guitar at the market yesterday.", 15
ADAPTED = {"hippo-tiny": 3, "smollm2-135m": 5, "Qwen2.5-1.5B": 4}  # blocks; of the last one, an assumption
GB, TOKEN_ID = 10**9, 4  # bytes; bytes of a token id
QWEN = KVShape(28, 2, 128)  # Qwen2.5-1.5B, by its published configuration; the lab's own models say theirs when they are loaded
UNITS, WINNERS, ROWS = 2048, 64, 1_000_000


def trace_bytes(
    mode: str, shape: KVShape, tokens: int, text: str, stored: bool = True, blocks: Sequence[int] = (), precision: Precision = "int8"
) -> int:
    """Bytes that one trace takes: its token ids and text (UTF-8), and where its KV is stored, these.

    `stored`: the KV is kept, else run anew; text has none. `blocks`: those that an adapter looks at. LabError for an unknown mode.
    """
    layers = {"kv": shape.layers, "adapter": len(blocks), "text": 0}
    if mode not in layers:
        raise unknown("delivery", mode, layers)
    kv_size = shape.kv_bytes(tokens, precision, layers[mode]) if stored else 0
    return TOKEN_ID * tokens + len(text.encode()) + kv_size


def traces_per_gb(bytes_a_trace: int) -> int:
    """How many traces of so many bytes 10^9 bytes hold."""
    return GB // bytes_a_trace


def shapes() -> dict[str, KVShape]:
    """The three models, by their configurations."""
    folders = {"hippo-tiny": "data/weights/hippo-tiny", "smollm2-135m": "data/models/smollm2-135m"}
    configs = {
        name: shape_of(AutoConfig.from_pretrained(root() / folder, trust_remote_code=False))
        for name, folder in folders.items()
        if (root() / folder).is_dir()
    }
    return {**configs, "Qwen2.5-1.5B": QWEN}


def per_gb(name: str, shape: KVShape) -> list[int]:
    """Traces a GB: KV stored in int8 and in bfloat16, the adapter's blocks stored in int8, KV made anew."""
    blocks = range(ADAPTED[name])
    sizes = [
        trace_bytes("kv", shape, TOKENS, TEXT, precision="int8"),
        trace_bytes("kv", shape, TOKENS, TEXT, precision="bfloat16"),
        trace_bytes("adapter", shape, TOKENS, TEXT, blocks=blocks, precision="int8"),
        trace_bytes("text", shape, TOKENS, TEXT),
    ]
    return [traces_per_gb(size) for size in sizes]


def index_of_many() -> tuple[float, float]:
    """MB of an index of ROWS random keys, and milliseconds of a recall."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.stack([torch.randperm(UNITS, generator=generator)[:WINNERS].sort().values for _ in range(2000)]).int()
    before, index = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, SparseIndex(UNITS)
    for _ in range(ROWS // 100_000):
        chosen = patterns[torch.randint(len(patterns), (100_000,), generator=generator)]
        index.add(Code(chosen, torch.randint(1, 127, chosen.shape, generator=generator, dtype=torch.int8)))
    cue = Code(chosen[:1], torch.ones_like(chosen[:1], dtype=torch.int8))
    index.recall(cue, 20)
    begin = time.perf_counter()
    for _ in range(20):
        index.recall(cue, 20)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3, (time.perf_counter() - begin) / 20 * 1e3


def main() -> None:
    """Print both."""
    print(f"traces of {TOKENS} tokens and {len(TEXT)} characters a GB:\n")
    print("| model | KV stored, int8 | bfloat16 | KV of some blocks (adapter), int8 | text and ids, KV made anew |\n|---|--:|--:|--:|--:|")
    for name, shape in shapes().items():
        print(f"| {name} | " + " | ".join(f"{count:,}" for count in per_gb(name, shape)) + " |")
    megabytes, milliseconds = index_of_many()
    keys = f"{ROWS:,} keys of {WINNERS} winners of {UNITS:,}"
    print(f"\nan index of {keys}: {megabytes:,.0f} MB at most, {milliseconds:.1f} ms a cue on one thread")


if __name__ == "__main__":
    main()
