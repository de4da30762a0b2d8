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
WAYS = (
    *("rag_bm25", "rag_grams", "rag_dense[encoder=minilm]", "rag_sum", "rag_sum_head", "rag_head", "rag_head_fitted"),
    *("memory/hei_nw[encoder=minilm]", "memory/hei_nw[encoder=own]", "memory/hei_nw[encoder=minilm;episodic.use_completion=hopfield]"),
    *("memory/hei_nw[encoder=minilm;episodic.use_completion=predictive]", "rag_rerank[encoder=minilm]"),
)


def world_of(facts: int, questions: int, context_limit: int) -> World:
    """A world of so many facts, with questions about all but the repeated ones."""
    few = min(facts, MOST)
    [world] = worlds("episodic", "default", questions, 1337, "val", context_limit, {"n_facts": few, "n_items": questions})
    many = [replace(fact, id=f"{fact.id}.{turn}" if turn else fact.id) for turn in range(facts // few) for fact in world.facts]
    told = tuple(replace(fact, time=number) for number, fact in enumerate(many))
    ids = tuple(fact.id for fact in told)
    return replace(world, facts=told, items=tuple(replace(item, taught=ids) for item in world.items))


def main() -> None:
    """Print a table a number of facts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="hippo-tiny")
    parser.add_argument("--facts", nargs="+", type=int, default=[100, 1000, 10_000])
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--ways", nargs="+", default=WAYS)
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
        sides, places = {}, dict[str, Path]()
        for name in options.ways:
            method = method_of(lm, name)[1]
            places[name] = Path(tempfile.mkdtemp())
            sides[name] = (method, opened(method, suite, world, places[name]))
        rows: dict[str, list[float]] = {name: [] for name in sides}
        said = {}
        for number in range(ROUNDS + 1):  # the first one builds indexes and compiles
            for name, (_, retrieve) in sides.items():
                found = [(retrieve(query), item) for query, item in queries]
                if number:
                    rows[name].append(mean(one.retrieval_ms for one, _ in found))
                first = [bool(one.ranking) and one.ranking[0].text in texts(world, item) for one, item in found]
                said[name] = np.mean(first), mean(one.computed_tokens for one, _ in found)
        slowest = median(rows[options.ways[-1]])
        for name, (method, _) in sides.items():
            once = method.index_tokens(passages_of(world)[:100]) / min(100, facts)
            (right, tokens), ms = said[name], median(rows[name])
            held = bytes_of(method, world, places[name]) / facts
            cells = f"{right:.2f} | {ms:.2f} | {ms / slowest:.3f} | {tokens:.0f} | {once:.0f} | {held:.0f}"
            print(f"| {facts:,} | {name} | {cells} |", flush=True)


def bytes_of(method: Method, world: World, place: Path) -> int:
    """Bytes that hold a world's facts: a memory's file below `place`; a rag's texts with their codes, MiniLM's vectors in fp32 where these
    are all."""
    if isinstance(method, Memory):
        return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    told = [fact.text for fact in world.facts]
    held = sum(len(text.encode()) for text in told)
    if isinstance(method, FittedRag):
        codes = payloads(method.encoder, told, [()] * len(told))
        held += sum(table.nbytes for one in codes for table in one.pieces)
        return held + sum(one.vectors.nbytes + sum(key.indices.nbytes + key.values.nbytes for key in one.keys) for one in codes)
    return held + (4 * WIDTH * len(told) if getattr(method.settings, "encoder", None) == "minilm" else 0)


def texts(world: World, item) -> set[str]:
    """What the gold facts of an item say."""
    return {fact.text for fact in world.facts[:MOST] if fact.id in item.gold_facts}


if __name__ == "__main__":
    main()
