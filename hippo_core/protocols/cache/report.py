"""What a report says of broken caches: what is left of the score, what each defence brings back, and what it costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.discovery import members
from hippo_core.protocols.cache import figures as cache
from hippo_core.protocols.cache import table as tabled
from hippo_core.protocols.cache.table import CLEAN, auc, best_heuristic, is_bound, kept, kept_of_damaged, recovered
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section

PARAMETERS = ("model", "times", "parts", "layers", "heads", "stored", "bits", "budget", "precision", "rank", "holdout", "contraction")


def in_words(model: str, tasks: Mapping[str, Any]) -> str:
    """How much the damage takes, and which defence brings most of it back."""
    means = kept_of_damaged(pd.DataFrame(tasks["score_vs_severity"])).mean(axis=1)
    repairs = {str(name): mean for name, mean in means.items() if name != "none" and not is_bound(str(name))}
    text = f"With damaged caches, over all faults, {model} keeps {means['none']:.0%} of its score above chance with no defence"
    if repairs:
        best = max(repairs, key=lambda name: repairs[name])
        text += f", {repairs[best]:.0%} with the best defence that is told nothing ({best})"
    if "recompute" in means:
        text += f", {means['recompute']:.0%} when the text is run again"
    out = [task for task, entry in tasks["admitted"].items() if not entry["admitted"]]
    return text + (f". Not admitted, for it cannot show damage: {', '.join(out)}." if out else ".")


def training_in_words(training: Mapping[str, Any]) -> str:
    """What a repair of so many numbers learnt, on validation probes."""
    examined = training["examined"]
    kinds = [name.removesuffix(" bare") for name in examined if name.endswith(" bare")]
    better = [kind for kind in kinds if examined[kind] < examined[f"{kind} bare"]]
    before, after = (sum(examined[f"{kind}{end}"] for kind in kinds) / len(kinds) for end in (" bare", ""))
    return (
        f"{training['numbers']:,} numbers, {training['steps']} steps: behind a damaged cache (severity .5, validation) the words lie "
        f"{before:.2f} nats from the clean ones, repaired {after:.2f}; nearer for {len(better)} of {len(kinds)} faults; on a clean cache "
        f"{examined['clean']:.3f}."
    )


def sections(tables: Sequence[TableRows]) -> list[Section]:
    """Three sections a table; the cells of a table are pooled where they differ in the seed or the kinds of fault alone."""
    parts = []
    for table in tables:
        for name, rows in _by_setting(table.rows) if table.step == "measure" else ():
            parts += [_curves(name, rows), _recovered(name, rows), _costs(name, rows)]
        if table.step == "remove":
            parts.append(_removal(table.rows))
    return parts


def _by_setting(rows: Frame) -> list[tuple[str, Frame]]:
    """The rows by the settings of their cells, but for the seed and the kinds: clean rows once a seed, probes named by their seed."""
    seed = rows["seed"].astype(str) if "seed" in rows else ""
    rows = rows.assign(probe=rows["probe"] + "@" + seed)
    differing = [name for name in PARAMETERS if name in rows and rows[name].astype(str).nunique() > 1]
    groups = rows.groupby([rows[name].astype(str) for name in differing], sort=False) if differing else [((), rows)]
    return [(", ".join(name), own.drop_duplicates(["probe", "task", "kind", "severity", "defence"])) for name, own in groups]


def _titled(title: str, name: str) -> str:
    return f"{title}: {name}" if name else title


def _curves(name: str, rows: Frame) -> Section:
    curves = kept(rows)
    wide = kept_of_damaged(curves)
    wide = wide.assign(mean=wide.mean(axis=1)).sort_values("mean", ascending=False)
    shown = wide.map(share).rename_axis(columns=None).reset_index()
    bounds = ", ".join(sorted(name for name in members(tabled.DEFENCES) if is_bound(name) and name != "recompute"))
    sentence = (
        "What is left of the clean model's score above chance, the mean over damaged caches (1: all, 0: a guess), over the tasks. "
        f"Told where the damage is: {bounds}. Best heuristic that is told nothing: {best_heuristic(auc(curves)) or NONE}."
    )
    return Section(_titled("Robustness", name), sentence, drawing.png(cache.robustness(curves)), shown)


def _recovered(name: str, rows: Frame) -> Section:
    lines = recovered(rows)
    shown = [
        {
            "task": line["task"],
            "fault": line["kind"],
            "defence": line["defence"],
            "recovered": share(line["recovered"], line["low"], line["high"], sign=True),
            "95% interval": NONE if missing(line["low"]) else span(line["low"], line["high"], sign=True),
            "lost": share(line["lost"]),
            "probes": line["n"],
        }
        for line in lines[lines["severity"] == lines["severity"].max()].to_dict("records")
    ]
    fit = [task for task, entry in tabled.admitted(rows).items() if entry["admitted"]]
    sentence = (
        f"At severity {lines['severity'].max():g}: (corrupt - repaired) / (corrupt - clean) on the same probes and the same damage; 1 is "
        f"all of it, below 0 a defence harms. Of text in nats a token, of the others in answers right. "
        f"Admitted: {', '.join(fit) or 'none'}."
    )
    return Section(_titled("Damage recovered", name), sentence, table=pd.DataFrame(shown))


def _costs(name: str, rows: Frame) -> Section:
    costs, lost = tabled.overhead(rows), tabled.regression(rows)
    detections = rows[rows["kind"] != CLEAN].groupby("defence")[["detected", "false_alarms"]].mean()
    shown = [
        {
            "defence": defence,
            **{f"{task}, nats added": round(own[defence]["loss"], 4) for task, own in lost.items() if defence in own},
            "detected": share(detections["detected"].get(defence)),
            "false alarms": share(detections["false_alarms"].get(defence)),
            **{f"{task}, score lost": round(own[defence]["score"], 4) for task, own in lost.items() if defence in own and task != "text"},
            "ms a cache": round(cost["repair_ms"], 2),
            "bytes kept": round(cost["kept_bytes"]),
        }
        for defence, cost in costs.items()
    ]
    count = rows[rows["kind"] == CLEAN]["probe"].nunique()
    return Section(_titled("Cost of a defence", name), f"On {count} caches that nothing has damaged.", table=pd.DataFrame(shown))


def _removal(rows: Frame) -> Section:
    lines = rows.groupby(["way", "severity"], sort=False).agg(removed=("removed", "mean"), score=("score", "mean"), n=("score", "size"))
    shown = lines.reset_index().assign(removed=lambda own: own["removed"].map(lambda value: f"{value:.3f}"))
    sentence = (
        "Faults, quantisation and eviction on one axis: the share of 16 bits a number that is gone (protocols/cache/removal.py), and "
        "the mean score over all tasks."
    )
    return Section("Bits that are gone", sentence, drawing.png(cache.removal(rows)), shown)
