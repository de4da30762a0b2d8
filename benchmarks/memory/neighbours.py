"""The nearest ten of dense vectors: our learnt sparse code (retrieval/neighbours) beside faiss' flat index, its IVF and hnswlib.

    python benchmarks/memory/neighbours.py [ROWS ...]              (100000 1000000; after `make peers`; HNSW=100000 is the most it gets)
    HIPPO_DATA=... python benchmarks/memory/neighbours.py encode   (once, some 15 minutes; what is asked from then on)

Rows are MiniLM's vectors of sentences that people wrote and of spans of 4, 8 and 16 pieces of them, cues those of questions, once they are
encoded; before that, and with MADE=1, unit vectors of 256 in families of 32 (recall.py). All are kept in 8 bits; faiss and hnswlib get the
same numbers as float32. IVF has as many lists as ours has units, and it and hnswlib are asked by the least effort that finds as many of the
nearest ten as ours does. Our times hold the making of a cue's code. Half of the rows are removed in the end and all are asked again,
as they were last.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from recall import CUES, TOP, ask_all, seconds, shared, unit, vectors, without_peers

from hippo_core.files import home
from hippo_core.retrieval.lexicon import sentences
from hippo_core.retrieval.vectors import quantised
from hippo_core.text_files import read_text

if TYPE_CHECKING:
    from sides import Method, Peer

SIZES = (100_000, 1_000_000)
HNSW, MADE = int(os.environ.get("HNSW", "100000")), bool(os.environ.get("MADE"))
SPANS, LENGTH = (4, 8, 16), (12, 400)  # pieces of a span; characters of a sentence
EFFORTS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # lists that IVF looks into, hnswlib's efSearch
FOLDER = "data/generated/neighbours"
BATCH = 4_000  # sentences that are encoded together


def written() -> tuple[list[str], list[str]]:
    """Sentences that people wrote, and questions, each in an order that says nothing."""
    passages = json.loads(read_text("squad"))
    texts = [part for name in ("tinystories", "wikitext2-train", "tinyshakespeare") for part in read_text(name).split("\n")]
    texts += [entry["context"] for entry in passages] + [entry["text"] for entry in json.loads(read_text("twowiki-passages"))]
    texts += [entry["document"] for entry in json.loads(read_text("hotpotqa"))]
    parts = [part.strip() for text in texts for part in sentences(text.replace("<|endoftext|>", " "))]
    parts += [line.split("\t")[0] for line in read_text("sst2").splitlines()]
    asked = [question["question"] for entry in passages for question in entry["questions"]]
    random = np.random.default_rng(5)
    stored = [part for part in dict.fromkeys(parts) if LENGTH[0] <= len(part) <= LENGTH[1]]
    return [stored[row] for row in random.permutation(len(stored))], [asked[row] for row in random.permutation(len(asked))[: 4 * CUES]]


def encode() -> None:
    """Encode what is written and keep it: rows.npy int8 [N, 384] in an order that says nothing, cues.npy int8 [B, 384]."""
    import torch
    from torch.nn.functional import normalize

    from hippo_core.models import minilm
    from hippo_core.models.matmul import quicken_products

    quicken_products()
    folder = home() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    stored, asked = written()
    np.save(folder / "cues.npy", quantised(minilm.encode(asked).numpy()))
    rows = []
    for start in range(0, len(stored), BATCH):
        for _, states, means in minilm.read(stored[start : start + BATCH]):
            spans = [
                state[: len(state) // size * size].unflatten(0, (-1, size)).mean(1)
                for state in states
                for size in SPANS
                if len(state) >= size
            ]
            rows.append(quantised(normalize(torch.cat([means, *spans]), dim=-1).numpy()))
        print(f"{min(start + BATCH, len(stored)):,} of {len(stored):,} sentences, {sum(map(len, rows)):,} rows", flush=True)
    laid = np.concatenate(rows)
    np.save(folder / "rows.npy", laid[np.random.default_rng(1).permutation(len(laid))])


def drawn(count: int) -> tuple[str, NDArray[np.int8], NDArray[np.int8]]:
    """What the rows are, rows and cues, int8."""
    folder = home() / FOLDER
    if not MADE and (folder / "rows.npy").exists():
        return "MiniLM's vectors", np.load(folder / "rows.npy")[:count], np.load(folder / "cues.npy")[:CUES]
    return "made vectors", *map(quantised, vectors(count))  # type: ignore[return-value]


def as_good(peer: "Peer", least: float, near: NDArray) -> tuple["Method", str]:
    """The peer by the least effort that finds as much."""
    for effort in EFFORTS:
        peer.set_effort(effort)
        if (recall := shared(peer.method.ids(0, CUES, 1), near)) >= least:
            break
    return peer.method, f"{peer.method.name} ({effort}) {recall:.3f}"


def timed(methods: list["Method"]) -> Iterator[str]:
    """Microseconds a cue of each side, alone and in a batch, by one thread; and as times of ours."""
    for kind, by_method in ask_all(methods, 1).items():
        times = ", ".join(f"{name} {each:.0f}" for name, each in by_method.items())
        over = ", ".join(f"{name} {each / by_method['ours']:.1f}" for name, each in by_method.items() if name != "ours")
        yield f"  recall  {kind:5}: {times} us a cue; divided by ours: {over}"


def compare(count: int) -> None:
    """Print a size's figures."""
    from sides import by_faiss, hnsw_peer, ivf_peer, neighbour_index

    what, rows, cues = drawn(count)
    count = len(rows)
    floats, asked = unit(rows.astype(np.float32)), unit(cues.astype(np.float32))
    flat = by_faiss(floats, asked)
    near = flat.ids(0, CUES, 2)
    index, own, insert = neighbour_index(rows, cues)
    own.ids(0, 2, 1)
    print(f"{count:,} rows, {what} of {rows.shape[1]}, {len(index._units.table):,} units", flush=True)
    peers = [ivf_peer(floats, asked, len(index._units.table))] + ([hnsw_peer(floats, asked)] if count <= HNSW else [])
    costs = [f"ours {insert:.1f}", *(f"{peer.method.name} {peer.insert:.1f}" for peer in peers)]
    print(f"  insert  {', '.join(costs)} us a row, learning included", flush=True)
    for index.probes, index.compared in ((128, 512), (64, 512), (32, 256)):
        recalls = shared(own.ids(0, CUES, 1), near)
        chosen, efforts = zip(*(as_good(peer, recalls, near) for peer in peers), strict=True)
        print(f"  recall@{TOP}  ours ({index.probes} units, {index.compared} rows) {recalls:.3f}, {', '.join(efforts)}")
        for line in timed([own, flat, *chosen]):
            print(line, flush=True)
    removed = np.random.default_rng(2).permutation(count)[: count // 2]
    removing = {"ours": index.remove} | {peer.method.name: peer.remove for peer in peers}
    costs = [f"{name} {1e6 * seconds(lambda remove=remove: remove(removed)) / len(removed):.2f}" for name, remove in removing.items()]
    left = np.setdiff1d(np.arange(count), removed)
    near = left[by_faiss(floats[left], asked).ids(0, CUES, 2)]
    recalls = [f"{method.name} {shared(method.ids(0, CUES, 1), near):.3f}" for method in (own, *(peer.method for peer in peers))]
    print(f"  half removed: {', '.join(costs)} us a row; recall@{TOP} then {', '.join(recalls)}", flush=True)


def main() -> None:
    if sys.argv[1:] == ["encode"]:
        encode()
        return
    if without_peers():
        return
    for count in [int(size) for size in sys.argv[1:]] or SIZES:
        compare(count)


if __name__ == "__main__":
    main()
