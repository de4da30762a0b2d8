"""The tables of the cache protocol: what is kept, recovered, noticed, ablated and gone."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.experiments.cache.report import TOLD
from hippo_core.experiments.cache.table import CLEAN, admitted, auc, kept, recovered
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame

BIT = "bitflip of bit "
AXES = tuple(name for name in (*TOLD, "window", "ood") if name != "model")
NAMES = {"none": "no defence"}


def groups(rows: Frame) -> list[tuple[str, Frame]]:
    """Rows by what their cells were told besides kinds and seeds, with the words for what is not as usual; seeds name the probes."""
    from hippo_core.experiments.cache.experiment import usual_of

    told = [name for name in AXES if name in rows]
    found = []
    for _, own in rows.groupby([rows[name].astype(str) for name in told], sort=False, dropna=False):
        first = own.iloc[0]
        said = [f"{name}={first[name]}" for name in told if str(first[name]) != str(usual_of(name)) and not _empty(first[name])]
        if any(one.startswith("ood=") for one in said):
            said = [one for one in said if not one.startswith("holdout=")]
        own = own.assign(probe=own["probe"] + "@" + own["seed"].astype(str))
        found.append((", ".join(said), own.drop_duplicates(["probe", "task", "kind", "severity", "defence"])))
    return found


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or value == ""


def main_of(found: Sequence[tuple[str, Frame]]) -> Frame:
    """The rows of the cells that were told nothing unusual; those of the first kind of cell where there are none."""
    return next((rows for name, rows in found if not name), found[0][1])


def scores_kept(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a fault, a column a defence: what is left of the score above chance, the mean over severities from 0 and over
    tasks; then the mean, and what a defence keeps and takes."""
    areas: Frame = pd.DataFrame(metrics["robustness_auc"])
    wide = areas.groupby(["kind", "defence"], sort=False)["auc"].mean().unstack(sort=False)
    wide.loc["mean"] = wide.mean()
    shown = wide.map(share)
    costs = metrics["overhead"]
    shown.loc["kilobytes beside a cache"] = [f"{costs[name]['kept_bytes'] / 1000:,.0f}" for name in wide]
    shown.loc["milliseconds a cache, one core"] = [f"{costs[name]['repair_ms']:,.0f}" for name in wide]
    return _headed(shown.rename(columns=NAMES), "fault, of all layers and heads")


def damage_recovered(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a probe, a fault and a severity, a column a defence: damage recovered with its interval."""
    lines = [
        {"probe": line["task"], "fault": line["kind"], "severity": f"{line['severity']:g}", "lost": share(line["lost"]),
         "defence": line["defence"], "shown": _with_interval(line)}
        for line in metrics["damage_recovered"]
    ]  # fmt: skip
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


def noticed(found: Mapping[str, Any]) -> Frame:
    """A line a fault, a column a defence: the share of damaged vectors that are found at 1 % of false alarms, means over tasks
    and severities."""
    lines: Frame = pd.DataFrame(found["lines"])
    wide = lines.groupby(["kind", "defence"], sort=False)["recall_at_1_percent"].mean().unstack(sort=False)
    wide.loc["mean"] = wide.mean()
    return _headed(wide.map(share), "found at 1 % false alarms")


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
    for stored, own in lost.groupby("stored", sort=False):
        worst, sign = own.loc[own["lost"].idxmax()], own.loc[own["bit"].idxmax()]
        matter = own[own["lost"] >= 0.01]["bit"].astype(int).tolist()
        said = ", ".join(map(str, sorted(matter))) or NONE
        lines.append({"format": stored, "bits": len(own), "bits that cost .01 nats or more": said, "worst bit": f"{int(worst['bit'])}",
                      "nats a token": share(worst["lost"]), "sign, nats": share(sign["lost"])})  # fmt: skip
    return pd.DataFrame(lines)


def gone(rows: Frame) -> Frame:
    """A line a way, columns by severity: the share of the bits that is gone, and what is kept of the score above chance."""
    clean, chance = rows[rows["severity"] == 0].groupby("task")["score"].mean(), rows.groupby("task")["chance"].mean()
    means = rows[rows["severity"] > 0].groupby(["way", "severity", "removed", "task"], sort=False)["score"].mean().reset_index()
    above = means["task"].map(chance)
    means["kept"] = (means["score"] - above) / (means["task"].map(clean) - above)
    lines = means.groupby(["way", "severity", "removed"], sort=False)["kept"].mean().reset_index()
    lines["shown"] = [f"{removed:.3f} → {share(left)}" for removed, left in zip(lines["removed"], lines["kept"], strict=True)]
    wide = lines.pivot_table(index="way", columns="severity", values="shown", aggfunc="first", sort=False)
    return _headed(wide.rename(columns=lambda one: f"severity {one:g}"), "gone → kept")


def ablations(found: Sequence[tuple[str, Frame]]) -> Frame:
    """A line a setting and a defence: what is kept with it and with none, over the same faults and seeds. Tasks that are not admitted are
    in it as well: `out` names them."""
    lines = []
    for name, rows in found:
        if rows["kind"].astype(str).str.startswith(BIT).any():
            continue
        areas = auc(kept(rows))
        means = areas.groupby("defence", sort=False)["auc"].mean()
        back = recovered(rows).groupby("defence", sort=False)["recovered"].mean()
        out = [task for task, one in admitted(rows).items() if not one["admitted"]]
        for defence in means.index.drop("none", errors="ignore"):
            told = {"setting": name or "as usual", "defence": defence}
            scores = {"kept": share(means[defence]), "kept with none": share(means["none"]), "recovered": share(back[defence], sign=True)}
            lines.append({**told, **scores, "seeds": rows["seed"].nunique(), "not admitted": ", ".join(out) or NONE})
    return pd.DataFrame(lines)


def main_results(rows: Frame) -> Frame:
    """A line a defence: its score on clean caches, the normalised area under faults, and what it keeps, as the protocol's first table."""
    clean = rows[rows["kind"] == CLEAN].groupby("defence", sort=False)["score"].mean()
    areas = auc(kept(rows)).groupby("defence", sort=False)["auc"].mean()
    lines = [{"Method": name, "Clean score": share(clean[name]), "Robustness AUC": share(areas[name])} for name in areas.index]
    return pd.DataFrame(lines)
