"""How well the turns that answer a question are found, by each method, for each size of chunk: retrieval alone, ids alone.

Of a question's evidence: `hit_1`, whether the best chunk holds any of it; `recall_k`, which share the k best hold; `any_5`, whether the
five best hold any. A chunk of six turns shows six times as many words, so the mean number of words shown stands beside.
"""

import math
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Literal, Self

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Memory, Method, Observation, Query, Retrieve
from hippo_core.methods.presets import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.base.assignments import with_settings
from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue, DialogueQuestion, Turn
from hippo_core.protocols.conversation.techniques import load_technique
from hippo_core.protocols.conversation.techniques.base import TechniqueContext, TurnQuery
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.store import TraceStore
from hippo_core.suites.types import Fact, World

MEASURES = ("hit_1", "recall_5", "recall_10", "any_5", "words_5")
INTERVALS = ("recall_5", "any_5")
PRESETS = (
    *("baselines/rag_bm25", "baselines/rag_dense[encoder=minilm]", "baselines/rag_hybrid[encoder=minilm]"),
    "actr",
    *("memory/hei_nw[encoder=minilm;delivery=text]", "memory/sgc_rss[encoder=minilm;delivery=text]"),
)
Half = Literal["choosing", "judging"]
Rank = Callable[[DialogueQuestion], "list[Chunk]"]  # a question -> chunks, best first


@dataclass(frozen=True, slots=True)
class Searched:
    """What is searched: chunks of so many turns, with their date or not, with so many neighbours."""

    size: int = 1
    dated: bool = False
    context: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Turns in a row. `text`: what is searched; `words`: how many the turns themselves have."""

    id: str
    turns: tuple[str, ...]
    text: str
    words: int

    @classmethod
    def of(cls, dialogue: Dialogue, turns: Sequence[Turn], text: str) -> Self:
        """The chunk of these turns."""
        words = sum(len(turn.line.split()) for turn in turns)
        return cls(f"{dialogue.id}/{turns[0].id}", tuple(turn.id for turn in turns), text, words)


def chunked(dialogue: Dialogue, size: int, dated: bool = False, context: int = 0) -> list[Chunk]:
    """The dialogue in chunks of `size` turns; none crosses a session.

    Args:
        dated: whether the date of the session opens the text.
        context: so many turns before and after a chunk, of its session, are searched with it; they are not counted as its own.
    """
    chunks = []
    for _, group in groupby(dialogue.turns, key=lambda turn: turn.session):
        session = list(group)
        for start in range(0, len(session), size):
            own, searched = session[start : start + size], session[max(0, start - context) : start + size + context]
            date = [f"({own[0].date})"] if dated and own[0].date else []
            chunks.append(Chunk.of(dialogue, own, " ".join([*date, *(turn.line for turn in searched)])))
    return chunks


def half_of(question: str) -> Half:
    """Constants are chosen on one half of the questions and judged on the other: by the SHA-256 of the question's words."""
    return "choosing" if int(sha256(question.encode()).hexdigest(), 16) % 2 else "judging"


def evidence_parts(
    lm: LanguageModel,
    dialogues: Sequence[Dialogue],
    presets: Iterable[str],
    searched: Sequence[Searched],
    kept: Collection[tuple[str, Searched]] = (),
    log: Callable[[str], None] = lambda line: None,
) -> Iterator[Frame]:
    """A frame a preset and search, a row a question with evidence; ids and numbers alone. A preset is NAME or NAME[key=value;...]; a
    name without a slash is a technique's that ranks turns. Those that are `kept` already are left out; `log` gets how long each took."""
    for name in presets:
        waiting = [search for search in searched if (name, search) not in kept]
        method = None
        if "/" in name and waiting:
            preset = load_preset(*with_settings(name))
            method = preset.method(lm, preset.settings)
        for search in waiting:
            begin, rows = time.perf_counter(), []
            for dialogue in dialogues:
                rank = _method_ranking(method, dialogue, search) if method else _technique_ranking(name, lm, dialogue, search)
                for question in (asked for asked in dialogue.questions if asked.evidence):
                    known = {"method": name, "question": question.id, "dialogue": dialogue.id, "category": question.kind}
                    known |= {"half": half_of(question.question), "chunk": search.size, "dated": search.dated, "context": search.context}
                    rows.append(known | score(rank(question)[:10], set(question.evidence)))
            if method:
                method.forget()
            log(f"{name}, {search.size} turns a chunk: {time.perf_counter() - begin:.0f} s")
            yield pd.DataFrame(rows)


def _method_ranking(method: Method, dialogue: Dialogue, search: Searched) -> Rank:
    """The ranking of a method; the chunks are the facts of a world, in order."""
    by_id = {chunk.id: chunk for chunk in chunked(dialogue, search.size, search.dated, search.context)}
    facts = [Fact(chunk.id, dialogue.id, chunk.text, {}, time, provenance="conversation") for time, chunk in enumerate(by_id.values())]
    world, taught = World(dialogue.id, tuple(facts), ()), tuple(by_id)
    retrieve = _opened(method, world, [question.question for question in dialogue.questions])
    return lambda question: [by_id[trace.source] for trace in retrieve(Query(question.question, taught)).ranking or ()]


def _technique_ranking(name: str, lm: LanguageModel, dialogue: Dialogue, search: Searched) -> Rank:
    """The ranking of a technique that ranks turns; its chunks are its own, of turns in a row whatever their session."""
    if search.dated or search.context:
        raise LabError(f"technique {name} searches the turns as they are; leave out --dated and --context")
    setting, size, turns = TechniqueContext(lm, chunk=search.size), search.size, dialogue.turns
    base, opened, settings = name.partition("[")
    choose = load_technique(name if size == 1 else f"{base}@{size}{opened}{settings}", setting).open(dialogue)
    budget = ContextBudget(None, None, [0] * len(turns), len)

    def rank(question: DialogueQuestion) -> list[Chunk]:
        ranking = choose(TurnQuery(question.question, question.id), budget).ranking or ()
        firsts = dict.fromkeys(index // size * size for index in ranking)
        return [Chunk.of(dialogue, turns[first : first + size], "") for first in firsts]

    return rank


def score(best: Sequence[Chunk], evidence: set[str]) -> dict[str, float]:
    """The measures of a ranking, of its ten best chunks."""

    def recall(k: int) -> float:
        return len(evidence & {turn for chunk in best[:k] for turn in chunk.turns}) / len(evidence)

    shares = {"hit_1": float(recall(1) > 0), "recall_5": recall(5), "recall_10": recall(10), "any_5": float(recall(5) > 0)}
    return shares | {"words_5": float(sum(chunk.words for chunk in best[:5]))}


def _opened(method: Method, world: World, questions: Sequence[str]) -> Retrieve:
    if not isinstance(method, Memory):
        return method.open(passages_of(world), questions)
    if method.settings.calibrates:
        raise LabError("a method that is calibrated on validation worlds cannot be asked here; switch its gate off")
    method.warm_up()
    with tempfile.TemporaryDirectory(prefix="hippo-evidence-") as folder:
        with TraceStore.create(Path(folder), "evidence", method.identity()) as store:
            method.teach([Observation.of(fact) for fact in world.facts], store)
        with TraceStore.open(Path(folder), "evidence", method.identity(), read_only=True) as store:
            return method.open(store.traces(world.id), questions)


def kept(path: Path | None) -> tuple[Frame, set[tuple[str, Searched]]]:
    """The rows that an earlier run has left, and their presets and searches."""
    rows = pd.read_csv(path) if path and path.is_file() else pd.DataFrame()
    done = {(row["method"], Searched(row["chunk"], row["dated"], row["context"])) for row in rows.to_dict("records")}
    return rows, done


def by_category(rows: Frame, half: Half | None = None) -> Frame:
    """Means by method, search and category, with n, of INTERVALS with a 95 % interval by conversation (NaN where there are too few);
    `all` are all but adversarial questions, which ask for what was never stated."""
    kept = rows if half is None else rows[rows["half"] == half]
    every = kept[~kept["category"].isin(["adversarial", "abstention"])].assign(category="all")
    keys = ["method", "chunk", "dated", "context", "category"]
    grouped = pd.concat([kept, every]).groupby(keys, sort=False)
    means: Frame = grouped[list(MEASURES)].mean()
    means["n"] = grouped.size()
    for name in INTERVALS:
        intervals = [cluster_interval(group[name], group["dialogue"]) for _, group in grouped]
        means[f"{name}_low"] = [one.low for one in intervals]
        means[f"{name}_high"] = [one.high for one in intervals]
    return means.reset_index()


def as_markdown(table: Frame) -> str:
    """The table as markdown."""
    lines = [
        "| method | turns a chunk | category | n | hit@1 | recall@5 | recall@10 | any@5 | words shown @5 |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in table.to_dict("records"):
        label = f"{row['chunk']}" + ", dated" * row["dated"] + (f", {row['context']} around" if row["context"] else "")
        shares = " | ".join(_share(row[name]) + _between(row, name) for name in MEASURES[:-1])
        lines.append(f"| {row['method']} | {label} | {row['category']} | {row['n']} | {shares} | {row['words_5']:.0f} |")
    return "\n".join(lines) + "\n"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".lstrip("0") if value < 1 else "1.00"


def _between(row: Mapping[str, float], name: str) -> str:
    low, high = row.get(f"{name}_low", math.nan), row.get(f"{name}_high", math.nan)
    return "" if math.isnan(low) else f" ({_share(low)} to {_share(high)})"
