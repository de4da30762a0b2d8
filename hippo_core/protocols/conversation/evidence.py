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
from pathlib import Path
from typing import Literal

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Memory, Method, Observation, Query, Retrieve
from hippo_core.methods.presets import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.base.parameters import with_settings
from hippo_core.protocols.conversation.budget import ContextBudget
from hippo_core.protocols.conversation.chunks import chunked, world_of
from hippo_core.protocols.conversation.dialogue import Dialogue, DialogueQuestion
from hippo_core.protocols.conversation.techniques import load_technique
from hippo_core.protocols.conversation.techniques.base import TechniqueContext, TurnQuery
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.store import TraceStore
from hippo_core.suites.types import World

MEASURES = ("hit_1", "recall_5", "recall_10", "any_5", "words_5")
INTERVALS = ("recall_5", "any_5")
PRESETS = (
    *("baselines/rag_bm25", "baselines/rag_dense[encoder=minilm]", "baselines/rag_hybrid[encoder=minilm]"),
    "actr",
    *("memory/hei_nw[encoder=minilm;delivery=text]", "memory/sgc_rss[encoder=minilm;delivery=text]"),
)
Half = Literal["choosing", "judging"]


@dataclass(frozen=True, slots=True)
class Searched:
    """What is searched: chunks of so many turns, with their date or not, with so many neighbours."""

    size: int = 1
    dated: bool = False
    context: int = 0


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
                new_rows = _rows(method, dialogue, search) if method else _technique_rows(name, lm, dialogue, search)
                rows += [{"method": name, **row} for row in new_rows]
            if method:
                method.forget()
            log(f"{name}, {search.size} turns a chunk: {time.perf_counter() - begin:.0f} s")
            yield pd.DataFrame(rows)


def _rows(method: Method, dialogue: Dialogue, search: Searched) -> list[dict[str, object]]:
    chunks = chunked(dialogue, search.size, search.dated, search.context)
    world = world_of(dialogue, chunks)
    own = {chunk.id: (set(chunk.turns), chunk.words) for chunk in chunks}
    retrieve, rows = _opened(method, world), []
    for item, question in zip(world.items, dialogue.questions, strict=True):
        if not question.evidence:
            continue
        ranking = retrieve(Query(item.question, item.taught)).ranking or ()
        best = [own[trace.source] for trace in ranking[:10]]
        rows.append({**_about(dialogue, question, search), **score(best, set(question.evidence))})
    return rows


def _technique_rows(name: str, lm: LanguageModel, dialogue: Dialogue, search: Searched) -> list[dict[str, object]]:
    """The rows of a technique that ranks turns; its chunks are its own, of turns in a row whatever their session."""
    if search.dated or search.context:
        raise LabError(f"technique {name} searches the turns as they are; leave out --dated and --context")
    setting = TechniqueContext(lm, chunk=search.size)
    choose, turns = load_technique(name if search.size == 1 else f"{name}@{search.size}", setting).open(dialogue), dialogue.turns
    budget = ContextBudget(None, None, [0] * len(turns), len)
    rows = []
    for question in dialogue.questions:
        if question.evidence:
            ranking = choose(TurnQuery(question.question, question.id), budget).ranking or ()
            firsts = list(dict.fromkeys(index // search.size * search.size for index in ranking))[:10]
            chunks = [turns[first : first + search.size] for first in firsts]
            best = [({turn.id for turn in chunk}, sum(len(turn.line.split()) for turn in chunk)) for chunk in chunks]
            rows.append({**_about(dialogue, question, search), **score(best, set(question.evidence))})
    return rows


def _about(dialogue: Dialogue, question: DialogueQuestion, search: Searched) -> dict[str, object]:
    known = {"question": question.id, "dialogue": dialogue.id, "category": question.kind, "half": half_of(question.question)}
    return {**known, "chunk": search.size, "dated": search.dated, "context": search.context}


def score(best: Sequence[tuple[set[str], int]], evidence: set[str]) -> dict[str, float]:
    """The measures of a ranking: of its ten best chunks the turns and the number of words."""

    def recall(k: int) -> float:
        return len(evidence & set().union(*(ids for ids, _ in best[:k]))) / len(evidence)

    shares = {"hit_1": float(recall(1) > 0), "recall_5": recall(5), "recall_10": recall(10), "any_5": float(recall(5) > 0)}
    return shares | {"words_5": float(sum(words for _, words in best[:5]))}


def _opened(method: Method, world: World) -> Retrieve:
    questions = [item.question for item in world.items]
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
    grouped: Frame = pd.concat([kept, every]).groupby(keys, sort=False)
    means: Frame = grouped[list(MEASURES)].mean()
    low_high = {name: {key: cluster_interval(group[name], group["dialogue"]) for key, group in grouped} for name in INTERVALS}
    bounds = {
        f"{name}_{end}": [getattr(intervals[key], end) for key in means.index]
        for name, intervals in low_high.items()
        for end in ("low", "high")
    }
    return means.assign(n=grouped.size(), **bounds).reset_index()


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
