"""What finding one fact among many costs: the memory and retrieval, in turn, in one process, retrieval alone.

    python benchmarks/memory/costs.py [--model hippo-tiny] [--facts 100 1000 10000] [--questions 10]

Milliseconds are the median over rounds of the mean over questions, the cue's codes included, which are made for all questions together on
every side. Up to 10,000 facts are those of one world of `episodic`; more are these over and over, which changes no time. Bytes are those of
the store of a memory, which is a file with all it was told, and of the text and the codes of a rag; the index of words and their pieces is
made of the text when it is opened, on every side, and is left out, as are keys and values, which only what was recalled has.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

import numpy as np
from retrieval import method_of, opened

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Memory, Method, Query
from hippo_core.methods.rag.fitted import FittedRag
from hippo_core.models.load import load
from hippo_core.models.minilm import WIDTH
from hippo_core.models.packages.pins import available
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.text_encoder import payloads
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import World

MOST, ROUNDS = 10_000, 3
METHODS = (
    *("rag_bm25", "rag_grams", "rag_dense[encoder=minilm]", "rag_sum", "rag_sum_head", "rag_head", "rag_head_fitted"),
    *("memory/hei_nw[encoder=minilm]", "memory/hei_nw[encoder=own]", "memory/hei_nw[encoder=minilm;episodic.use_completion=hopfield]"),
    *("memory/hei_nw[encoder=minilm;episodic.use_completion=predictive]", "rag_rerank[encoder=minilm]"),
)


def world_of(facts: int, questions: int, context_limit: int) -> World:
    """A world of so many facts, with questions about all but the repeated ones."""
    few = min(facts, MOST)
    [world] = worlds("episodic", "default", questions, 1337, "val", context_limit, {"n_facts": few, "n_items": questions})
    many = [replace(fact, id=f"{fact.id}.{turn}" if turn else fact.id) for turn in range(facts // few) for fact in world.facts]
    timed = tuple(replace(fact, time=number) for number, fact in enumerate(many))
    ids = tuple(fact.id for fact in timed)
    return replace(world, facts=timed, items=tuple(replace(item, taught=ids) for item in world.items))


def main() -> None:
    """Print a table a number of facts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="hippo-tiny")
    parser.add_argument("--facts", nargs="+", type=int, default=[100, 1000, 10_000])
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--ways", nargs="+", default=METHODS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if reason := available("minilm"):
        print(f"what finding costs: skipped, most of these ways need MiniLM: {reason}")
        return
    lm, suite = load(load_spec(options.model), threads=options.threads), get_suite("episodic")
    print("| facts | way | recall@1 | ms | of rag_rerank | tokens a question | tokens once, a fact | bytes a fact |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for facts in options.facts:
        world = world_of(facts, options.questions, lm.spec.context_limit)
        queries = [(Query(item.question, item.taught), item) for item in world.items]
        methods, folders = {}, dict[str, Path]()
        for name in options.ways:
            method = method_of(lm, name)[1]
            folders[name] = Path(tempfile.mkdtemp())
            methods[name] = (method, opened(method, suite, world, folders[name]))
        rows: dict[str, list[float]] = {name: [] for name in methods}
        lines = {}
        for number in range(ROUNDS + 1):  # the first one builds indexes and compiles
            for name, (_, retrieve) in methods.items():
                retrieved = [(retrieve(query), item) for query, item in queries]
                if number:
                    rows[name].append(mean(result.retrieval_ms for result, _ in retrieved))
                first = [bool(result.ranking) and result.ranking[0].text in texts(world, item) for result, item in retrieved]
                lines[name] = np.mean(first), mean(result.computed_tokens for result, _ in retrieved)
        slowest = median(rows[options.ways[-1]])
        for name, (method, _) in methods.items():
            once = method.index_tokens(passages_of(world)[:100]) / min(100, facts)
            (right, tokens), ms = lines[name], median(rows[name])
            size = bytes_of(method, world, folders[name]) / facts
            cells = f"{right:.2f} | {ms:.2f} | {ms / slowest:.3f} | {tokens:.0f} | {once:.0f} | {size:.0f}"
            print(f"| {facts:,} | {name} | {cells} |", flush=True)


def bytes_of(method: Method, world: World, folder: Path) -> int:
    """Bytes that hold a world's facts: a memory's file below `place`; a rag's texts with their codes, MiniLM's vectors in fp32 where these
    are all."""
    if isinstance(method, Memory):
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    fact_texts = [fact.text for fact in world.facts]
    size = sum(len(text.encode()) for text in fact_texts)
    if isinstance(method, FittedRag):
        codes = payloads(method.encoder, fact_texts, [()] * len(fact_texts))
        size += sum(table.nbytes for code in codes for table in code.pieces)
        return size + sum(code.vectors.nbytes + sum(key.indices.nbytes + key.values.nbytes for key in code.keys) for code in codes)
    return size + (4 * WIDTH * len(fact_texts) if getattr(method.settings, "encoder", None) == "minilm" else 0)


def texts(world: World, item) -> set[str]:
    """What the gold facts of an item say."""
    return {fact.text for fact in world.facts[:MOST] if fact.id in item.gold_facts}


if __name__ == "__main__":
    main()
