"""What the cache experiment was told otherwise, beside what it usually is: settings, spans of the store, faults left out of a training, the
loss that contracts; and whether a repair is ahead of the best heuristic."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.cache.outcomes import in_order
from hippo_core.protocols.cache.table import CLEAN, LEAST_LOST, admitted, auc, best_heuristic, kept, recovered
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval

Groups = Sequence[tuple[str, Frame]]
REPAIRS = ("learned", "wiener", "ecc_equal", "episodic")
SPANS = ("episodic", "episodic_random", "episodic_oldest", "episodic_gold")


def ablations(found: Groups) -> Frame:
    """A line a setting and a defence: what is kept with it and with none, over the same faults and seeds, and the mean of what is
    recovered where enough is lost. Tasks that are not admitted are in it as well: `not admitted` names them."""
    lines = []
    for name, rows in found:
        if rows["kind"].astype(str).str.startswith("bitflip of bit").any():
            continue
        means = auc(kept(rows)).groupby("defence", sort=False)["auc"].mean()
        back = _recovered(rows).groupby("defence")["recovered"].mean()
        out = [task for task, one in admitted(rows).items() if not one["admitted"]]
        for defence in means.index.drop("none", errors="ignore"):
            told = {"setting": name or "as usual", "defence": defence}
            scores = {"kept": share(means[defence]), "kept with none": share(means["none"])}
            scores["recovered"] = share(back.get(defence), sign=True)
            lines.append({**told, **scores, "seeds": rows["seed"].nunique(), "not admitted": ", ".join(out) or NONE})
    return pd.DataFrame(lines)


def _recovered(rows: Frame) -> Frame:
    """Damage recovered where at least LEAST_LOST is lost, in nats or in score: a ratio to next to nothing says nothing."""
    lines = recovered(rows)
    return lines[lines["lost"] >= LEAST_LOST]


def spans(found: Groups) -> Frame:
    """A line a budget, a column a choice of spans: damage recovered, the mean over tasks and faults."""
    lines = {}
    for _, rows in found:
        means = _recovered(rows).groupby("defence")["recovered"].mean()
        if "episodic_gold" in means:
            lines[f"{rows['budget'].iloc[0]:g}"] = {name: share(means.get(name), sign=True) for name in SPANS}
    wide = pd.DataFrame(lines).T.sort_index(ascending=False)
    return wide.rename_axis("spans that may be put back, a share of all").reset_index() if len(wide) else wide


def left_out(found: Groups) -> Frame:
    """A line a fault: damage recovered by the repair whose training never saw it, by the one whose training did, and by the best heuristic,
    on the same caches."""
    usual, lines = next((rows for name, rows in found if not name), None), []
    for name, rows in found:
        if not name.startswith("ood=") or usual is None:
            continue
        kinds, seeds = set(rows["kind"]), set(rows["seed"])
        seen = _recovered(usual[usual["kind"].isin(kinds) & usual["seed"].isin(seeds)]).groupby("defence")["recovered"].mean()
        unseen = _recovered(rows).groupby("defence")["recovered"].mean()
        best = best_heuristic(auc(kept(rows)))
        lines.append({"fault": ", ".join(sorted(kinds - {CLEAN})), "left out": share(unseen.get("learned"), sign=True),
                      "seen": share(seen.get("learned"), sign=True), best: share(unseen.get(best), sign=True)})  # fmt: skip
    return pd.DataFrame(lines)


def contraction(found: Groups) -> Frame:
    """A line a weight of the loss that contracts, a column a seed: the score kept behind the learned repair; and damage recovered."""
    lines = []
    for name, rows in found:
        if name and not (name.startswith("contraction=") and "," not in name):
            continue
        areas = {seed: auc(kept(own)) for seed, own in rows.groupby("seed") if "learned" in set(own["defence"])}
        if len(areas) < 2:
            continue
        means = {f"seed {seed}": share(own[own["defence"] == "learned"]["auc"].mean()) for seed, own in areas.items()}
        back = _recovered(rows).groupby("defence")["recovered"].mean()
        lines.append({"contraction": f"{rows['contraction'].iloc[0]:g}", **means, "recovered": share(back["learned"], sign=True)})
    return pd.DataFrame(lines) if len(lines) > 1 else pd.DataFrame()


def margin_over_heuristic(rows: Frame) -> Frame:
    """A line a fault, where it takes at least half of a task's score above chance: the share of this that the best heuristic and each
    repair bring back, tasks and severities pooled; in brackets the 95% interval by world of how far a repair is ahead of the heuristic."""
    curves = kept(rows)
    best = best_heuristic(auc(curves))
    shown = [name for name in REPAIRS if name in set(rows["defence"])]
    if not best or not shown:
        return pd.DataFrame()
    bare = curves[(curves["defence"] == "none") & (curves["severity"] > 0) & (curves["kept"] <= 0.5)]
    hurt = rows.merge(bare[["task", "kind", "severity"]])
    whole = rows[(rows["kind"] == CLEAN) & (rows["defence"] == "none")]
    above = whole.groupby("task")["score"].mean() - whole.groupby("task")["chance"].mean()
    hurt = hurt.assign(height=hurt["score"] / hurt["task"].map(above), cluster=hurt["task"] + "/" + hurt["cluster"].astype(str))
    lines = []
    for kind in in_order(dict.fromkeys(hurt["kind"])):
        own = hurt[hurt["kind"] == kind]
        wide = own.pivot_table(index=["task", "probe", "severity", "cluster"], columns="defence", values="height").reset_index()
        clean = wide["task"].map(whole.groupby("task")["score"].mean() / above)
        lost = (clean - wide["none"]).mean()
        line: dict[str, Any] = {"fault": kind, "lost": share(lost), best: share((wide[best] - wide["none"]).mean() / lost)}
        for name in shown:
            found = cluster_interval(wide[name] - wide[best], wide["cluster"], bounds=None)
            between = "" if missing(found.low) else f" ({span(found.low / lost, found.high / lost, sign=True)})"
            line[name] = share((wide[name] - wide["none"]).mean() / lost) + between
        lines.append(line)
    return pd.DataFrame(lines)
