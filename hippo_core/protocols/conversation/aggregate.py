"""Phase three: a report of scored.jsonl, as markdown, HTML and JSON: techniques, differences, positions, salience."""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.errors import LabError
from hippo_core.files import write_json, write_text
from hippo_core.protocols.conversation.judge import ASPECTS, JudgeAgreement, agreement
from hippo_core.results.formatting import NONE, html, missing, probability, quantity, share, span, table
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.results.statistics.paired import compare, holm

KEYS = ["provider", "technique", "budget"]
NUMBERS = ("contains", "em", "entity_recall", "entity_precision", "stale", "tokens_in", "tokens_out", "seconds")
NAMES = ("answer_id", "dialogue", "question", "error", *KEYS, "position", "salience", "kind", *NUMBERS)  # of a scored answer
Table = tuple[str, list[str], list[list[str]]]  # title, columns, rows


def aggregate(
    scored: Sequence[dict[str, Any]], out: Path, judged: Sequence[dict[str, Any]] = (), ratings: Sequence[dict[str, Any]] = ()
) -> Path:
    """Write report.md, report.html and report.json below `out`; returns the page. LabError where nothing is scored."""
    if not scored:
        raise LabError("no scored answers; run the phases execute and evaluate first")
    for number, row in enumerate(scored, 1):
        if wrong := [name for name in NUMBERS if not isinstance(row.get(name), int | float | None)]:
            raise LabError(f"scored answer {number}: {wrong[0]} is no number; run the phase evaluate again")
    rows: Frame = pd.DataFrame(list(scored))
    if len(judges := {judgement["judge"] for judgement in judged}) > 1:
        raise LabError(f"judgements of {len(judges)} judges ({', '.join(sorted(judges))}); give those of one")
    last = {judgement["answer_id"]: judgement for judgement in judged}
    agreements = {aspect: agreement(scored, list(last.values()), ratings, aspect) for aspect in ASPECTS}
    for aspect in ASPECTS:
        ids = rows["answer_id"] if agreements[aspect].shown else []
        rows[aspect] = [last.get(answer_id, {}).get(aspect) for answer_id in ids] if len(ids) else None
    tables = [conditions(rows), differences(rows), *(breakdown(rows, name) for name in ("position", "salience", "kind"))]
    tables = [entry for entry in tables if entry[2]]
    notes = [judge_note(aspect, agreements[aspect], bool(judged)) for aspect in ASPECTS]
    parts = [f"## {title}\n\n{table(columns, body)}" for title, columns, body in tables]
    page = "\n\n".join(["# Conversations", *parts, "## The judge", *notes]) + "\n"
    write_text(out / "report.md", page)
    write_text(out / "report.html", html(page, "Conversations"))
    write_json(
        out / "report.json",
        {"tables": [{"title": title, "columns": columns, "rows": body} for title, columns, body in tables], "notes": notes},
    )
    return out / "report.html"


def conditions(rows: Frame) -> Table:
    """A row a provider and technique."""
    body = []
    for key, part in rows.groupby(KEYS, sort=False):
        ok = part[part["error"].isna()]
        right = cluster_interval(ok["contains"].astype(float), ok["dialogue"])
        known = ok["tokens_in"].notna().sum()
        tokens = quantity(_mean(ok["tokens_in"])) + (f" ({known} of {len(ok)} known)" if known < len(ok) else "")
        cells = [share(right.mean, right.low, right.high), span(right.low, right.high)]
        cells += [share(_mean(ok[name])) for name in ("em", "entity_recall", "entity_precision", "stale")]
        cells += [tokens, quantity(_mean(ok["tokens_out"])), quantity(float(ok["seconds"].median()) if len(ok) else math.nan)]
        cells += [quantity(_mean(ok[aspect])) for aspect in ASPECTS]
        cut = str(int(ok["cut"].eq(True).sum())) if "cut" in ok else NONE
        body.append([*map(str, key), str(len(ok)), str(len(part) - len(ok)), cut, str(ok["dialogue"].nunique()), *cells])
    columns = [*KEYS, "n", "failed", "cut", "dialogues", "contains", "95 %", "EM", "entity recall", "entity precision", "stale"]
    return "Techniques", [*columns, "tokens in", "tokens out", "seconds (median)", *ASPECTS], body


def differences(rows: Frame) -> Table:
    """Every pair of techniques of a provider, on the questions that both answered; p by permutation over dialogues, Holm over all pairs."""
    pairs = []
    for provider, part in rows.groupby("provider", sort=False):
        groups = {
            f"{name} ({budget})": _items(group[group["error"].isna()])
            for (name, budget), group in part.groupby(["technique", "budget"], sort=False)
        }
        for a, b in combinations(groups, 2):
            both = sorted(set(groups[a]["item"]) & set(groups[b]["item"]))
            if both:
                first, second = (groups[label][groups[label]["item"].isin(both)] for label in (a, b))
                pairs.append((str(provider), str(a), str(b), compare(first, second, key="item")))
    adjusted = holm([pair.p_permutation for *_, pair in pairs])
    body = [
        [provider, f"{a} − {b}", str(pair.n), share(pair.difference, pair.low, pair.high, sign=True), span(pair.low, pair.high, sign=True),
         f"{pair.only_a} / {pair.only_b}", probability(pair.p_permutation), probability(p)]
        for (provider, a, b, pair), p in zip(pairs, adjusted, strict=True)
    ]  # fmt: skip
    return "Differences", ["provider", "techniques", "n", "difference", "95 %", "only the one / the other", "p", "p (Holm)"], body


def _items(group: Frame) -> Frame:
    last = group.drop_duplicates(["dialogue", "question"], keep="last")
    names = last["dialogue"].astype(str) + "/" + last["question"].astype(str)
    return pd.DataFrame({"item": names, "world": last["dialogue"], "score": last["contains"].astype(float)})


def breakdown(rows: Frame, name: str) -> Table:
    """The share of answers that contain the right one, by technique and by a property of the question."""
    known = rows[rows[name].notna() & (rows[name] != "")]
    values = list(dict.fromkeys(known[name]))
    body = []
    for key, part in known.groupby(KEYS, sort=False):
        cells = [part[(part[name] == value) & part["error"].isna()]["contains"].astype(float) for value in values]
        body.append([*map(str, key), *(f"{share(_mean(cell))} ({len(cell)})" for cell in cells)])
    return f"By {name} (n)", [*KEYS, *map(str, values)], body


def judge_note(aspect: str, result: JudgeAgreement, judged: bool) -> str:
    """A sentence about a judge's aspect."""
    if not judged:
        return f"{aspect}: no judge was asked"
    kappa = f"weighted kappa {share(result.kappa.mean)} ({span(result.kappa.low, result.kappa.high)}), {result.kappa.n} rated answers"
    verdict = "shown" if result.shown else f"not shown: {result.why}"
    return f"{aspect}: {verdict}" + (f"; {kappa}" if result.kappa.n else "")


def _mean(values: Any) -> float:
    known = [float(value) for value in values if not missing(value)]
    return float(np.mean(known)) if known else math.nan
