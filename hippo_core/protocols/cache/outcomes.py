"""The tables of the cache protocol: what is kept, recovered, noticed and gone. Those of settings: ablations.py."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from hippo_core.protocols.cache.figures import FEATURED, MANY
from hippo_core.protocols.cache.names import Format, Kind
from hippo_core.protocols.cache.report import TOLD
from hippo_core.protocols.cache.table import CLEAN, LEAST_LOST, auc, kept, kept_of_damaged
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame

BIT = "bitflip of bit "
AXES = tuple(name for name in (*TOLD, "window", "ood") if name != "model")
KINDS = get_args(Kind)
NAMES = {"none": "no defence"}


def groups(rows: Frame) -> list[tuple[str, Frame]]:
    """Rows by what their cells were told besides kinds and seeds, with the words for what is not as usual; seeds name the probes.

    Cells that measured other defences than most are a group of their own: what saw a few faults is not compared with what saw all.
    """
    from hippo_core.protocols.cache.parameters import usual_of

    told = [name for name in AXES if name in rows]
    found = []
    for _, own in rows.groupby([rows[name].astype(str) for name in told], sort=False, dropna=False):
        first = own.iloc[0]
        said = [f"{name}={first[name]}" for name in told if str(first[name]) != str(usual_of(name)) and not _empty(first[name])]
        if any(one.startswith("ood=") for one in said):
            said = [one for one in said if not one.startswith("holdout=")]
        own = own.assign(probe=own["probe"] + "@" + own["seed"].astype(str))
        for few, part in _alike(own):
            found.append((", ".join(said + few), part.drop_duplicates(["probe", "task", "kind", "severity", "defence"])))
    return sorted(found, key=lambda one: one[0])


def _alike(rows: Frame) -> list[tuple[list[str], Frame]]:
    """Rows by the defences of their records, most rows first; of all but these the faults and severities in words."""
    sets = rows.groupby("record")["defence"].agg(lambda own: ",".join(sorted(set(own))))
    parts = sorted((part for _, part in rows.groupby(rows["record"].map(sets))), key=len, reverse=True)
    broken = [part[part["kind"] != CLEAN] for part in parts]
    names = [["/".join(dict.fromkeys(own["kind"])), *(f"severity={at:g}" for at in sorted(set(own["severity"])))] for own in broken]
    return list(zip([[], *names[1:]], parts, strict=True))


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or value == ""


def main_of(found: Sequence[tuple[str, Frame]]) -> Frame:
    """The rows of the cells that were told nothing unusual; those of the first kind of cell where there are none."""
    return next((rows for name, rows in found if not name), found[0][1])


def scores_kept(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a defence, the best first, a column a fault: what damaged caches keep of the score above chance, the mean over
    severities above 0 and over tasks; then the mean, and what a defence keeps and takes."""
    wide = kept_of_damaged(pd.DataFrame(metrics["score_vs_severity"]))
    wide = wide[in_order(wide)]
    wide["mean"] = wide.mean(axis=1)
    wide = wide.sort_values("mean", ascending=False, kind="stable")
    shown, costs = wide.map(share), metrics["overhead"]
    shown["KB a cache"] = [f"{costs[name]['kept_bytes'] / 1000:,.0f}" for name in wide.index]
    shown["ms a cache"] = [f"{costs[name]['repair_ms']:,.0f}" for name in wide.index]
    return _headed(shown.rename(index=NAMES), "score kept")


def in_order(kinds: Iterable[str]) -> list[str]:
    """Kinds in the order in which they are listed, those that are not behind them."""
    given = list(kinds)
    return sorted(given, key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS) + given.index(kind))


def score_lost(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a fault, a column a task: the share of the score above chance that it takes at its top severity."""
    curves: Frame = pd.DataFrame(metrics["score_vs_severity"])
    bare = curves[(curves["defence"] == "none") & (curves["severity"] == curves["severity"].max())]
    wide = 1 - bare.pivot_table(index="kind", columns="task", values="kept", sort=False)
    return _headed(wide.loc[in_order(wide.index)].map(share), "taken at the top severity")


def damage_recovered(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a probe, a fault and a severity at which at least LEAST_LOST is lost, a column a defence: damage recovered
    with its interval. Where there are many defences, those that are featured."""
    told = [line for line in metrics["damage_recovered"] if line["lost"] >= LEAST_LOST]
    many = len({line["defence"] for line in told}) > MANY
    lines = [
        {"probe": line["task"], "fault": line["kind"], "severity": f"{line['severity']:g}", "lost": share(line["lost"]),
         "defence": line["defence"], "shown": _with_interval(line)}
        for line in told if line["defence"] in FEATURED or not many
    ]  # fmt: skip
    rank = {kind: place for place, kind in enumerate(in_order(dict.fromkeys(line["fault"] for line in lines)))}
    lines.sort(key=lambda line: rank[line["fault"]])
    lines.sort(key=lambda line: list(metrics["admitted"]).index(line["probe"]))
    wide = pd.DataFrame(lines).pivot_table(
        index=["probe", "fault", "severity", "lost"], columns="defence", values="shown", aggfunc="first", sort=False
    )
    return wide.fillna(NONE).rename_axis(columns=None).reset_index()


def _with_interval(line: Mapping[str, Any]) -> str:
    low, high = line["low"], line["high"]
    said = share(line["recovered"], low, high, sign=True)
    return said if missing(low) else f"{said} ({span(low, high, sign=True)})"


def _headed(wide: Frame, head: str) -> Frame:
    """A table with its index as the first column, under this head; what is not there is a dash."""
    return wide.fillna(NONE).rename_axis(columns=None).rename_axis(head).reset_index()


def detection_rate(found: Mapping[str, Any], known: Iterable[str]) -> Frame:
    """A line a defence, the best first, a column a fault: the share of damaged vectors that are found at 1 % of false alarms, means over
    tasks and severities. Of the defences that are `known`."""
    lines: Frame = pd.DataFrame(found["lines"])
    lines = lines[lines["defence"].isin(list(known))]
    wide = lines.groupby(["defence", "kind"], sort=False)["recall_at_1_percent"].mean().unstack(sort=False)
    wide = wide[in_order(wide)]
    wide["mean"] = wide.mean(axis=1)
    return _headed(wide.sort_values("mean", ascending=False, kind="stable").map(share), "found at 1 % false alarms")


def bits_lost(found: Sequence[tuple[str, Frame]]) -> Frame:
    """A line a format and a bit: what flips of that bit alone cost with no defence, in nats a token (`lost`); empty where none was run."""
    lines = []
    for _, rows in found:
        plain = rows[(rows["defence"] == "none") & (rows["task"] == "text")]
        clean = plain[plain["kind"] == CLEAN]["loss"].mean()
        for kind, own in plain.groupby("kind", sort=False):
            if str(kind).startswith(BIT):
                bit = int(str(kind).removeprefix(BIT))
                lines.append({"stored": own["stored"].iloc[0], "bit": bit, "lost": float(own["loss"].mean() - clean)})
    return pd.DataFrame(lines, columns=["stored", "bit", "lost"])


def bits_in_short(lost: Frame) -> Frame:
    """A line a format: how many bits cost .01 nats or more, the worst, and the sign."""
    lines = []
    for stored in sorted(set(lost["stored"]), key=get_args(Format).index):
        own = lost[lost["stored"] == stored]
        worst, sign = own.loc[own["lost"].idxmax()], own.loc[own["bit"].idxmax()]
        matter = own[own["lost"] >= 0.01]["bit"].astype(int).tolist()
        said = ", ".join(map(str, sorted(matter))) or NONE
        lines.append({"format": stored, "bits": len(own), "bits that cost .01 nats or more": said, "worst bit": f"{int(worst['bit'])}",
                      "nats a token": share(worst["lost"]), "sign, nats": share(sign["lost"])})  # fmt: skip
    return pd.DataFrame(lines)


def removed_bits(rows: Frame) -> Frame:
    """A line a way, columns by severity: the share of the bits that is gone, and what is kept of the score above chance."""
    clean, chance = rows[rows["severity"] == 0].groupby("task")["score"].mean(), rows.groupby("task")["chance"].mean()
    means = rows[rows["severity"] > 0].groupby(["way", "severity", "removed", "task"], sort=False)["score"].mean().reset_index()
    above = means["task"].map(chance)
    means["kept"] = (means["score"] - above) / (means["task"].map(clean) - above)
    lines = means.groupby(["way", "severity", "removed"], sort=False)["kept"].mean().reset_index()
    lines["shown"] = [f"{removed:.3f} → {share(left)}" for removed, left in zip(lines["removed"], lines["kept"], strict=True)]
    wide = lines.pivot_table(index="way", columns="severity", values="shown", aggfunc="first", sort=False)
    return _headed(wide.rename(columns=lambda one: f"severity {one:g}"), "gone → kept")


def main_results(rows: Frame) -> Frame:
    """A line a defence: its score on clean caches, the normalised area under faults, and what it keeps, as the protocol's first table."""
    clean = rows[rows["kind"] == CLEAN].groupby("defence", sort=False)["score"].mean()
    areas = auc(kept(rows)).groupby("defence", sort=False)["auc"].mean()
    lines = [{"Method": name, "Clean score": share(clean[name]), "Robustness AUC": share(areas[name])} for name in areas.index]
    return pd.DataFrame(lines)
