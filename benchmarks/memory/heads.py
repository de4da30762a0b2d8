"""Heads over MiniLM's pieces beside each other, alone and added up with n-grams and MiniLM's vectors: MiniLM reads every text once.

    HIPPO_DATA=... python benchmarks/memory/heads.py [--split val] [--set notes squad ...] [--head head-1337 head-natural-1337]
        [--pieces pieces-1337] [--whole]

Sums are those of `rag_sum_head` (recency 0) and of the memory (`memory`, recency 2), nothing fitted. Percent; the interval (95 %) draws
worlds, or questions where there are fewer than six worlds. `less first`: less the sum of the first head, question by question.
--pieces: late interaction of word pieces, too (retrieval/pieces.py). --whole: one key a passage, too, in place of one a sentence.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from ladders import ladder

from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models import minilm
from hippo_core.models.matmul import quicken_products
from hippo_core.results.scores import score_ranking
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.retrieval.encoded import kept
from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates, load_head
from hippo_core.retrieval.lexicon import sentences
from hippo_core.retrieval.minilm_head import MINILM_HEAD, PIECES, owner
from hippo_core.retrieval.payload import Payload
from hippo_core.retrieval.pieces import PieceIndex, load_pieces, pieces_of
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.text_encoder import Codes, KeyEncoder, joined
from hippo_core.retrieval.trace_index import Channel, TraceIndex
from hippo_core.retrieval.vectors import quantised
from hippo_core.store.trace import Trace
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import World

SETS = {  # suite, profile, settings, questions: of a split
    "notes": ("notes", "default", {}, None),
    "notes together": ("notes", "together", {}, None),
    "squad": ("squad", "default", {}, None),
    "episodic": ("episodic", "default", {"n_facts": 1000, "n_items": 100}, 400),
    "hotpotqa": ("hotpotqa", "default", {}, 300),
    "twowiki": ("twowiki", "default", {}, None),
}
LADDERS = ("first", "second")
WITH_PIECES: tuple[tuple[Channel, ...], ...] = (("pieces",), ("minilm", "pieces"), ("grams", "minilm", "key", "pieces"))
SHOWN = ("recall_1", "recall_2", "recall_5", "all_gold_5")
KEPT = 1024  # texts whose states lie in one file
WORLDS = 12  # from so many on intervals draw worlds


def worlds_of(name: str, split: str, n: int | None) -> Iterator[World]:
    """The worlds of a set; the ladders are their test."""
    if name in LADDERS:
        yield ladder(name)  # type: ignore[arg-type]
        return
    suite, profile, overrides, usual = SETS[name]
    yield from worlds(suite, profile, n or usual, 1337, split, overrides=overrides)  # type: ignore[arg-type]


def read(texts: Sequence[str]) -> Iterator[tuple[list[int], Sequence[torch.Tensor], torch.Tensor]]:
    """`minilm.read` with states in half precision, which are kept below data/generated: a run that was cut off goes on where it was."""
    order = sorted(range(len(texts)), key=lambda row: (len(texts[row]), row))
    for start in range(0, len(order), KEPT):
        batch = order[start : start + KEPT]
        made = kept(f"{minilm.identity()} states in half precision", some := [texts[row] for row in batch], lambda some=some: run(some))
        yield batch, made["states"].float().split(made["sizes"].tolist()), made["vectors"]


def run(texts: Sequence[str]) -> dict[str, torch.Tensor]:
    """The states of all pieces of texts one after another, how many each text has, and the texts' vectors."""
    states, vectors = {}, torch.zeros(len(texts), minilm.WIDTH)
    for batch, own, means in minilm.read(texts):
        states |= dict(zip(batch, own, strict=True))
        vectors[batch] = means
    laid = [states[row] for row in range(len(texts))]
    return {"states": torch.cat(laid).half(), "sizes": torch.tensor([len(state) for state in laid]), "vectors": vectors}


def codes_of(texts: Sequence[str], heads: dict[str, KeyEncoder]) -> dict[str, Codes]:
    """The codes of texts by each head, and by each projection of pieces with the first head, from one run of MiniLM."""
    vectors = np.zeros((len(texts), minilm.WIDTH), np.int8)
    active = {name: torch.zeros(len(texts), head.expansion) for name, head in heads.items()}
    pieces: dict[str, dict[int, PieceIndex]] = {name: {} for name, head in heads.items() if head.pieces}
    for batch, states, means in read(texts):
        vectors[batch] = quantised(means.numpy())
        words = [minilm.words_of_pieces(texts[row]) for row in batch]
        for name, head in heads.items():
            active[name][batch] = head.model.active(states, head.expansion)
            if head.pieces:
                pieces[name] |= {row: pieces_of(head.pieces, *pair, vectors[row]) for row, *pair in zip(batch, states, words, strict=True)}  # type: ignore[misc]
    rows = range(len(texts))
    return {
        name: Codes(head.code(active[name]), vectors, tuple(pieces[name][row] for row in rows) if head.pieces else ())
        for name, head in heads.items()
    }


def indexes(world: World, texts: Sequence[str], codes: dict[str, Codes], parts: Sequence[Sequence[str]]) -> dict[str, list[Trace]]:
    """The world's facts as traces by each head; `parts` [N]: what of each fact has a key of its own."""
    rows = {text: row for row, text in enumerate(texts)}
    _, starts = joined(parts)
    flat = np.array([rows[part] for own in parts for part in own])
    ends = [*starts[1:].tolist(), len(flat)]
    by_encoder = {}
    for name, made in codes.items():
        own = made.some(flat)
        keys = own.sparse_keys()
        tables = tuple(piece.table for piece in own.pieces)
        payloads = [Payload((), keys[a:b], own.vectors[a:b], tables[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]
        facts = enumerate(zip(world.facts, payloads, strict=True), start=1)
        by_encoder[name] = [
            Trace(world.id, fact.id, fact.text, payload=payload, time=fact.time, id=number) for number, (fact, payload) in facts
        ]
    return by_encoder


def asked(world: World, encoders: dict[str, KeyEncoder], full: bool) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Every way of ranking, and what its rankings of the world's questions are worth."""
    parts = [sentences(fact.text) for fact in world.facts]
    wholes = [[fact.text] for fact in world.facts]
    questions = [item.question for item in world.items]
    texts = list(dict.fromkeys([part for own in (*parts, *(wholes if full else ())) for part in own] + questions))
    codes = codes_of(texts, encoders)
    rows = {text: row for row, text in enumerate(texts)}
    first = next(iter(encoders))
    variants: list[tuple[str, str, tuple[Channel, ...], float, bool]] = [
        ("grams", first, ("grams",), 0.0, False),
        ("minilm", first, ("minilm",), 0.0, False),
        ("rag_sum", first, ("grams", "minilm"), 0.0, False),
    ]
    for name, encoder in encoders.items():
        if encoder.pieces:
            variants += [(f"{name} {'+'.join(channels)}", name, channels, 0.0, False) for channels in WITH_PIECES]
            continue
        variants += [
            (f"{name} alone", name, ("key",), 0.0, False),
            (f"{name} sum", name, ("grams", "minilm", "key"), 0.0, False),
            (f"{name} memory", name, ("grams", "minilm", "key"), HeiNWSettings().episodic.recall.recency, False),
        ]
        if full:
            variants += [
                (f"{name} alone, a key a passage", name, ("key",), 0.0, True),
                (f"{name} sum, a key a passage", name, ("grams", "minilm", "key"), 0.0, True),
            ]
    traces = {False: indexes(world, texts, codes, parts)} | ({True: indexes(world, texts, codes, wholes)} if full else {})
    for label, name, channels, recency, single_key in variants:
        recaller = Recaller(
            TraceIndex(traces[single_key][name], channels, encoders[name]), RecallConfig("off", 20, 20, 1.0, 1, recency=recency)
        )
        ranked = [recaller.recall(item.question, set(item.taught), codes[name].row_at(rows[item.question])).traces for item in world.items]
        yield label, [score_ranking(ranking, item) for ranking, item in zip(ranked, world.items, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=("val", "test"))
    parser.add_argument("--set", nargs="+", default=[*SETS, *LADDERS], choices=[*SETS, *LADDERS])
    parser.add_argument("--head", nargs="+", default=[MINILM_HEAD])
    parser.add_argument("--pieces", nargs="*", default=[PIECES])
    parser.add_argument("--n", type=int)
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    quicken_products()
    code = HeiNWSettings().episodic.code
    encoders = {
        head: KeyEncoder(KeyModel(MiniLMStates(), load_head(owner(), head)), code.expansion, code.winners) for head in arguments.head
    }
    first = encoders[arguments.head[0]]
    encoders |= {part: replace(first, pieces=load_pieces(owner(), part)) for part in arguments.pieces}
    for name in arguments.set:
        drawn = list(worlds_of(name, arguments.split, arguments.n))
        rows: dict[str, list[dict[str, float]]] = {}
        clusters, rungs = [], []
        for world in drawn:
            clusters += [world.id] * len(world.items)
            rungs += [item.rung for item in world.items]
            for label, own in asked(world, encoders, arguments.whole):
                rows.setdefault(label, []).extend(own)
        show(name, arguments.split, rows, clusters, rungs, arguments.head[0])


def show(name: str, split: str, rows: dict[str, list[dict[str, float]]], clusters: list[str], rungs: list[str], first: str) -> None:
    """Print a set's table."""
    kinds = list(dict.fromkeys(rungs)) if len(set(rungs)) > 1 else []
    answered = np.array([not np.isnan(row["recall_1"]) for row in next(iter(rows.values()))])
    many = len(set(clusters)) >= WORLDS
    groups = np.array(clusters if many else [str(number) for number in range(len(clusters))])[answered]
    print(f"\n{name}, {split}: {len(set(clusters))} worlds, {int(answered.sum()):,} questions with an answer")
    heads = ["R@1", "95 %", "R@2", "R@5", "all @5", *kinds, "less first"]
    print(f"| way | {' | '.join(heads)} |\n|---|{'--:|' * len(heads)}")
    for label, own in rows.items():
        table = {column: np.array([row[column] for row in own])[answered] for column in SHOWN}
        interval = cluster_interval(table["recall_1"].tolist(), groups.tolist())
        by_rung = [f"{100 * table['recall_1'][np.array(rungs)[answered] == rung].mean():.1f}" for rung in kinds]
        other = f"{first} sum"
        less = "–"
        if label != other:
            before = np.array([row["recall_1"] for row in rows[other]])[answered]
            difference = cluster_interval((table["recall_1"] - before).tolist(), groups.tolist(), bounds=(-1.0, 1.0))
            less = f"{100 * difference.mean:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
        shares = [f"{100 * table[column].mean():.1f}" for column in SHOWN]
        cells = [shares[0], f"{100 * interval.low:.1f} to {100 * interval.high:.1f}", *shares[1:], *by_rung, less]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
