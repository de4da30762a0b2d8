"""The five kernels beside torch, in one thread, as a table of docs/kernels.md: equation, versions, bytes moved, time of a call.

python benchmarks/kernels.py [--write]        --write: into reports/reference/kernels/index.md

Bytes are what a call must at least read and write. Each time is the median of `torch.utils.benchmark`. Torch's column is the plainest call
of torch that gives the same, or the nearest to it. With a GPU the Triton versions are timed as well.
"""

import platform
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.benchmark import Timer

from hippo_core.files import root, write_text
from hippo_core.kernels import Code, hopfield, kwta, merge, sparse_recall, trace_attention
from hippo_core.kernels.sparse_recall.index import SparseIndex

PAGE = "reports/reference/kernels/index.md"
ROWS, DIMS, WINNERS, TOP, WIDTH, BETA = 100_000, 8_192, 32, 10, 256, 8.0
IMPLS = "reference, cpu, triton"


class Case(NamedTuple):
    """An operation at one size: its call by the name of a version, torch's call, and the bytes that it must move."""

    name: str
    equation: str
    size: str
    versions: str
    moved: int
    call: Callable[[str], object]
    torch: Callable[[], object]


def code_of(x: Tensor) -> Code:
    """The code of rows, whatever device they are on."""
    return kwta(x, WINNERS, "cpu" if x.device.type == "cpu" else "triton")


def winners_of_torch(x: Tensor) -> tuple[Tensor, Tensor]:
    """k-winners-take-all as topk says it: winners are not in order, and ties fall as they fall."""
    quantised = torch.round(x / x.abs().amax(1, keepdim=True) * 127)
    indexes = quantised.abs().topk(WINNERS).indices
    return indexes, quantised.gather(1, indexes)


def cases(device: str) -> list[Case]:
    """All operations on made data: a store of ROWS, eight questions with three traces of 16 tokens each."""
    random = torch.Generator(device).manual_seed(1)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, device=device)

    states = drawn(256, DIMS)
    store = Code(*(torch.cat(parts) for parts in zip(*(code_of(drawn(1_000, DIMS)) for _ in range(ROWS // 1_000)), strict=True)))
    cue = Code(store.indices[:1], store.values[:1])
    rows = torch.arange(ROWS, device=device).repeat_interleave(WINNERS)
    sparse = torch.sparse_coo_tensor(torch.stack([rows, store.indices.flatten().long()]), store.values.flatten().float(), (ROWS, DIMS))
    sparse, dense_cue = sparse.to_sparse_csr(), torch.zeros(DIMS, 1, device=device)
    dense_cue[cue.indices[0].long(), 0] = cue.values[0].float()
    index = SparseIndex(DIMS)
    index.add(Code(*(part.cpu() for part in store)))
    memory = torch.nn.functional.normalize(drawn(ROWS, WIDTH))
    asked = memory[:8] + 0.03 * drawn(8, WIDTH)
    q, k, v = drawn(8, 9, 32, 64), drawn(8, 3, 48, 64), drawn(8, 3, 48, 64)
    seen = torch.ones(8, 48, dtype=torch.bool, device=device)
    first, other = (trace_attention(q, k, v, seen, impl="reference") for _ in range(2))
    codes = 5 * ROWS * WINNERS  # int32 indices, int8 values
    return [
        Case(
            "`kwta`",
            "the K largest of round(127 x / max abs x)",
            f"256 rows of {DIMS:,}, K = {WINNERS}",
            IMPLS,
            256 * (4 * DIMS + 5 * WINNERS),
            lambda impl: kwta(states, WINNERS, impl),
            lambda: winners_of_torch(states),
        ),
        Case(
            "`sparse_recall`",
            "the rows with the largest sum of store · cue over shared indices",
            f"{ROWS:,} rows, one cue, best {TOP}",
            IMPLS,
            codes,
            lambda impl: sparse_recall(store, cue, TOP, impl=impl),
            lambda: (sparse @ dense_cue).squeeze(1).topk(TOP),
        ),
        Case(
            "`SparseIndex`, kept",
            "the same, from posting lists",
            f"{ROWS:,} rows, one cue, best {TOP}",
            "cpu",
            9 * ROWS * WINNERS * WINNERS // DIMS,
            lambda _: index.recall(Code(*(part.cpu() for part in cue)), TOP),
            lambda: (sparse @ dense_cue).squeeze(1).topk(TOP),
        ),
        Case(
            "`hopfield`",
            "z ← softmax(β M z) M",
            f"{ROWS:,} rows of {WIDTH}, 8 cues",
            IMPLS,
            4 * WIDTH * (ROWS + 16),
            lambda impl: hopfield(memory, asked, BETA, impl=impl),
            lambda: torch.softmax(BETA * asked @ memory.T, 1) @ memory,
        ),
        Case(
            "`trace_attention`",
            "softmax(s q · k) v, and its log-sum-exp",
            "8 questions of 32 tokens, 9 heads on 3, 48 trace tokens",
            IMPLS,
            4 * (2 * q.numel() + k.numel() + v.numel() + first[1].numel()),
            lambda impl: trace_attention(q, k, v, seen, impl=impl),
            lambda: scaled_dot_product_attention(q, k, v, seen[:, None, None], enable_gqa=True),
        ),
        Case(
            "`merge`",
            "two attentions over different keys as one",
            "the same queries",
            "torch",
            4 * 3 * (q.numel() + first[1].numel()),
            lambda _: merge(*first, *other),
            lambda: scaled_dot_product_attention(q, torch.cat([k, k], 2), torch.cat([v, v], 2), enable_gqa=True),
        ),
    ]


def microseconds(call: Callable[[], object]) -> float:
    """The median time of a call."""
    return Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=1.0).median * 1e6


def page() -> str:
    """The table of all operations, with the machine and the command that gave it."""
    devices = {"CPU": ("cpu", "cpu")} | ({"GPU": ("cuda", "triton")} if torch.cuda.is_available() else {})
    rows: dict[str, dict[str, str]] = {}
    for name, (device, impl) in devices.items():
        for case in cases(device):
            ours, theirs = microseconds(partial(case.call, impl)), microseconds(case.torch)
            cells = {"operation": case.name, "equation": case.equation, "versions": case.versions, "size": case.size}
            times = {f"{name}, µs": f"{ours:,.0f}", f"torch on {name}, µs": f"{theirs:,.0f}"}
            rows.setdefault(case.name, {**cells, "MB moved": f"{case.moved / 1e6:.2f}"}).update(times)
    head = [*next(iter(rows.values()))]
    rule = ["---" if column in head[:4] else "--:" for column in head]
    lines = [head, rule, *([row[column] for column in head] for row in rows.values())]
    where = [str(date.today()), platform.machine(), f"torch {torch.__version__}", "one thread"]
    where += [torch.cuda.get_device_name()] if "GPU" in devices else []
    source = f"`python benchmarks/kernels.py --write`: {', '.join(where)}."
    return "\n".join([source, "", *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def main() -> None:
    """Print the table, and keep it where that is asked for."""
    torch.set_num_threads(1)
    written = page()
    print(written)
    if "--write" in sys.argv[1:]:
        write_text(root() / PAGE, written)


if __name__ == "__main__":
    main()
