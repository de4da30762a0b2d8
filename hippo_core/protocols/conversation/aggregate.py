"""Phase three: a report of scored.jsonl, as markdown, HTML and JSON: techniques, differences, positions, salience."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.files import write_json, write_text
from hippo_core.protocols.conversation.judge import ASPECTS, JudgeAgreement, agreement
from hippo_core.results.formatting import NONE, html, probability, quantity, share, span, table
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval, numbered
from hippo_core.results.statistics.paired import bonferroni, cohens_d, holm, of_numbered_pairs

GROUPS = ("position", "salience", "kind", "key")
COMPARED = {"contains": "Differences", "overlap": "Differences of overlap", "entity_recall": "Differences of entity recall"}
KEYS = ["provider", "technique", "budget"]
NUMBERS = ("contains", "em", "overlap", "entity_recall", "entity_precision", "stale", "tokens_in", "tokens_out", "seconds")
NAMES = ("answer_id", "dialogue", "question", "error", *KEYS, *GROUPS, *NUMBERS)  # of a scored answer


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
    notes = []
    for aspect in ASPECTS:
        agreed = agreement(scored, list(last.values()), ratings, aspect)
        rows[aspect] = [last.get(answer_id, {}).get(aspect) for answer_id in rows["answer_id"]] if agreed.shown else None
        notes.append(judge_note(aspect, agreed) if judged else f"{aspect}: no judge was asked")
    tables = {"Techniques": conditions(rows)} | {title: differences(rows, score) for score, title in COMPARED.items()}
    tables |= {f"By {name} (n)": breakdown(rows, name) for name in GROUPS}
    written = [{"title": title, "columns": list(made), "rows": made.to_numpy().tolist()} for title, made in tables.items() if len(made)]
    parts = [f"## {entry['title']}\n\n{table(entry['columns'], entry['rows'])}" for entry in written]
    page = "\n\n".join(["# Conversations", *parts, "## The judge", *notes]) + "\n"
    write_text(out / "report.md", page)
    write_text(out / "report.html", html(page, "Conversations"))
    write_json(out / "report.json", {"tables": written, "notes": notes})
    return out / "report.html"


def conditions(rows: Frame) -> Frame:
    """A row a provider, technique and budget, in ready words: means with 95% intervals by dialogue."""
    lines = []
    for key, part in rows.groupby(KEYS, sort=False):
        ok = part[part["error"].isna()]
        right = cluster_interval(ok["contains"].astype(float), ok["dialogue"])
        known = ok["tokens_in"].notna().sum()
        line = dict(zip(KEYS, map(str, key), strict=True))
        line |= {
            "n": str(len(ok)),
            "failed": str(len(part) - len(ok)),
            "cut": str(int(ok["cut"].eq(True).sum())) if "cut" in ok else NONE,
            "dialogues": str(ok["dialogue"].nunique()),
            "contains": share(right.mean, right.low, right.high),
            "95 %": span(right.low, right.high),
            "EM": _mean(ok, "em"),
        }
        line |= {name.replace("_", " "): _mean(ok, name) for name in ("overlap", "entity_recall", "entity_precision", "stale")}
        line["tokens in"] = _mean(ok, "tokens_in", None, quantity) + (f" ({known} of {len(ok)} known)" if known < len(ok) else "")
        line["tokens out"] = _mean(ok, "tokens_out", None, quantity)
        line["seconds (mean)"] = _mean(ok, "seconds", None, quantity)
        line["seconds (median)"] = quantity(float(ok["seconds"].median()) if len(ok) else math.nan)
        lines.append(line | {aspect: _mean(ok, aspect, (1.0, 5.0)) for aspect in ASPECTS})
    return pd.DataFrame(lines)


def differences(rows: Frame, score: str = "contains") -> Frame:
    """Every pair of techniques of a provider, on the questions that both answered; d is Cohen's of the means of dialogues; p by permutation
    over dialogues, corrected over all pairs."""
    lines, p_values = [], []
    answered = rows[rows["error"].isna()].assign(
        item=rows["dialogue"].astype(str) + "/" + rows["question"].astype(str), label=rows["technique"] + " (" + rows["budget"] + ")"
    )
    for provider, part in answered.groupby("provider", sort=False):
        last = part.drop_duplicates(["label", "item"], keep="last")
        scores = last.pivot(index="item", columns="label", values=score).astype(float)
        dialogues = last.drop_duplicates("item").set_index("item")["dialogue"].astype(str)
        for a, b in combinations(last["label"].unique(), 2):
            both = scores[[a, b]].dropna()
            if both.empty:
                continue
            pair = of_numbered_pairs(both[a].to_numpy(), both[b].to_numpy(), numbered(dialogues[both.index].to_numpy()))
            effect = cohens_d(both[a] - both[b], dialogues[both.index])
            p_values.append(pair.p_permutation)
            line = {"provider": str(provider), "techniques": f"{a} − {b}", "n": str(pair.n)}
            line["difference"] = share(pair.difference, pair.low, pair.high, sign=True)
            line["95 %"] = span(pair.low, pair.high, sign=True)
            line |= {"d": share(effect.d, sign=True), "d, 95 %": span(effect.low, effect.high, sign=True)}
            lines.append(line | {"only the one / the other": f"{pair.only_a} / {pair.only_b}", "p": probability(pair.p_permutation)})
    corrected = {"p (Holm)": holm(p_values), "p (Bonferroni)": bonferroni(p_values)}
    return pd.DataFrame(lines).assign(**{title: list(map(probability, values)) for title, values in corrected.items()})


def breakdown(rows: Frame, name: str) -> Frame:
    """The share of answers that contain the right one, by technique and by a property of the question."""
    known = rows[rows[name].notna() & (rows[name] != "")]
    lines = []
    for key, part in known.groupby(KEYS, sort=False):
        line = dict(zip(KEYS, map(str, key), strict=True))
        for value in known[name].unique():
            cell = part[(part[name] == value) & part["error"].isna()]
            line[str(value)] = f"{_mean(cell, 'contains')} ({len(cell)})"
        lines.append(line)
    return pd.DataFrame(lines)


def judge_note(aspect: str, result: JudgeAgreement) -> str:
    """A sentence about a judge's aspect."""
    kappa = f"weighted kappa {share(result.kappa.mean)} ({span(result.kappa.low, result.kappa.high)}), {result.kappa.n} rated answers"
    verdict = "shown" if result.shown else f"not shown: {result.why}"
    return f"{aspect}: {verdict}" + (f"; {kappa}" if result.kappa.n else "")


def _mean(rows: Frame, name: str, bounds: Any = (0.0, 1.0), shown: Callable[[float], str] = share) -> str:
    """The mean of a score, with its interval where there is one."""
    known = cluster_interval(rows[name].astype(float), rows["dialogue"], bounds=bounds)
    return shown(known.mean) + ("" if math.isnan(known.low) else f" ({shown(known.low)} to {shown(known.high)})")
