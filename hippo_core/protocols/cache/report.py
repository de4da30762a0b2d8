"""What is said of broken caches, in words and in tables: what is kept of the score, what each defence brings back and costs, and cells with
other settings beside the usual ones."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from hippo_core.protocols.base.experiment import no_sentence
from hippo_core.protocols.cache import figures
from hippo_core.protocols.cache.figures import FEATURED, MANY
from hippo_core.protocols.cache.names import Format, Kind
from hippo_core.protocols.cache.parameters import CacheParameters, usual_of
from hippo_core.protocols.cache.table import (
    CLEAN,
    LEAST_LOST,
    admitted,
    auc,
    best_heuristic,
    is_bound,
    kept,
    kept_of_damaged,
    kept_of_removed,
    recovered,
    task_metrics,
)
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section
from hippo_core.results.statistics.interval import cluster_interval

BIT = "bitflip of bit "
AXES = (
    *("times", "parts", "layers", "heads", "stored", "bits", "budget", "precision", "rank", "holdout", "contraction", "window", "ood"),
    *("repaired", "repaired_parts", "alpha", "identity", "steps", "rate", "batch", "trained_on", "clean_share", "mending", "warmup"),
    *("cooldown", "layer_share", "head_share", "mask_seed", "scored", "max_seq_len", "context_len", "needle_token", "needle_value"),
    *("position_frac", "question_template"),
)
COSTS = {"tokens_per_s": "tokens a second", "peak_mb": "peak MB", "gpu_peak_mb": "GPU peak MB"}
KINDS = get_args(Kind)
NAMES = {"none": "no defence"}
REPAIRS = ("learned", "wiener", "ecc_equal", "episodic")
SPANS = ("episodic", "episodic_random", "episodic_oldest", "episodic_gold")
PERPLEXITY = "exp(nats a token) over the tokens that are scored behind each cache. Lower is better."
Groups = Sequence[tuple[str, Frame]]


def in_words(parameters: CacheParameters, metrics: Mapping[str, Any]) -> str:
    """The result of a cell: what damage takes and which defence brings most of it back, or what a repair learnt."""
    if parameters.step == "remove":
        return no_sentence(None, metrics)
    if parameters.step == "train":
        return _training_in_words(metrics["training"])
    tasks = metrics["tasks"]
    means = kept_of_damaged(pd.DataFrame(tasks["score_vs_severity"])).mean(axis=1)
    if missing(means["none"]):
        return f"{parameters.model} gets nothing right on whole caches: there is no score that a fault could take."
    repairs = {str(name): mean for name, mean in means.items() if name != "none" and not is_bound(str(name))}
    text = f"With damaged caches, over all faults, {parameters.model} keeps {means['none']:.0%} of its score above chance with no defence"
    if repairs:
        best = max(repairs, key=lambda name: repairs[name])
        text += f", {repairs[best]:.0%} with the best defence that is told nothing ({best})"
    if "recompute" in means:
        text += f", {means['recompute']:.0%} when the text is run again"
    out = [task for task, entry in tasks["admitted"].items() if not entry["admitted"]]
    return text + (f". Not admitted, for it cannot show damage: {', '.join(out)}." if out else ".")


def _training_in_words(training: Mapping[str, Any]) -> str:
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
    """Three sections a group of cells that measured; the cells of a group differ in the seed or the kinds of fault alone."""
    parts = []
    for table in tables:
        if table.step == "remove":
            sentence = (
                "Faults, quantisation and eviction on one axis: the share of 16 bits a number that is gone (protocols/cache/removal.py), "
                "and what is kept of the score above chance, over all tasks."
            )
            picture = drawing.png(figures.removal(table.rows))
            parts.append(Section("Bits that are gone", sentence, picture, removed_bits(table.rows)))
        for name, rows in groups(table.rows, ("model", *AXES)) if table.step == "measure" else ():
            titles = [f"{title}: {name}" if name else title for title in ("Robustness", "Damage recovered", "Cost of a defence")]
            parts += _measured(titles, rows)
    return parts


def _measured(titles: Sequence[str], rows: Frame) -> list[Section]:
    metrics = task_metrics(rows)
    bounds = ", ".join(sorted(name for name in set(rows["defence"]) if is_bound(name) and name != "recompute"))
    robustness = (
        "What is left of the clean model's score above chance, the mean over damaged caches (1: all, 0: a guess), over the tasks. "
        f"Told where the damage is: {bounds or 'none'}. Best heuristic that is told nothing: {metrics['best_heuristic'] or NONE}."
    )
    fit = [task for task, entry in metrics["admitted"].items() if entry["admitted"]]
    damage = (
        "(corrupt - repaired) / (corrupt - clean) on the same probes and the same damage, with its 95% interval; 1 is all of it, below 0 a "
        f"defence harms. Of text in nats a token, of the others in answers right. Admitted: {', '.join(fit) or 'none'}."
    )
    detections = rows[rows["kind"] != CLEAN].groupby("defence")[["detected", "false_alarms"]].mean()
    costs = []
    for defence in metrics["overhead"]:
        line = {"defence": defence}
        for task, own in metrics["clean_regression"].items():
            line |= {f"{task}, nats added": round(own[defence]["loss"], 4), f"{task}, score lost": round(own[defence]["score"], 4)}
        line |= {name.replace("_", " "): share(detections[name].get(defence)) for name in ("detected", "false_alarms")}
        known = {name: value for name, value in metrics["overhead"][defence].items() if not missing(value)}
        line |= {head: f"{known[name]:,.0f}" for name, head in COSTS.items() if name in known}
        costs.append(line)
    count, lost = rows[rows["kind"] == CLEAN]["probe"].nunique(), damage_recovered(metrics)
    title = titles[0].replace("Robustness", "Perplexity")
    texts = [Section(title, PERPLEXITY, table=perplexities(metrics))] if metrics["ppl_clean"] else []
    return [
        Section(titles[0], robustness, drawing.png(figures.robustness(kept(rows))), scores_kept(metrics)),
        Section(titles[1], damage, table=lost if len(lost) else None),
        *texts,
        Section(titles[2], f"On {count} caches that nothing has damaged; what is detected, on damaged ones.", table=pd.DataFrame(costs)),
    ]


def groups(rows: Frame, axes: Sequence[str] = AXES) -> list[tuple[str, Frame]]:
    """Rows by the settings of their cells but kinds and seeds, with the words for what is not as usual; seeds name the probes.
    Cells that measured other defences than most are a group of their own: what saw a few faults is not compared with what saw all."""
    settings = [name for name in axes if name in rows]
    grouped = []
    for _, own in rows.groupby([rows[name].astype(str) for name in settings], sort=False, dropna=False):
        first = own.iloc[0]
        changed = [f"{name}={first[name]}" for name in settings if str(first[name]) != str(usual_of(name)) and not missing(first[name])]
        if any(text.startswith("ood=") for text in changed):
            changed = [text for text in changed if not text.startswith("holdout=")]
        own = own.assign(probe=own["probe"] + "@" + own["seed"].astype(str))
        for few, part in _by_defences(own):
            grouped.append((", ".join(changed + few), part.drop_duplicates(["probe", "task", "kind", "severity", "defence"])))
    return sorted(grouped, key=lambda group: group[0])


def _by_defences(rows: Frame) -> list[tuple[list[str], Frame]]:
    """Rows by the defences of their records, most rows first; of all but these the faults and severities in words."""
    sets = rows.groupby("record")["defence"].agg(lambda own: ",".join(sorted(set(own))))
    parts = sorted((part for _, part in rows.groupby(rows["record"].map(sets))), key=len, reverse=True)
    broken = [part[part["kind"] != CLEAN] for part in parts]
    names = [["/".join(dict.fromkeys(own["kind"])), *(f"severity={at:g}" for at in sorted(set(own["severity"])))] for own in broken]
    return list(zip([[], *names[1:]], parts, strict=True))


def main_of(grouped: Groups) -> Frame:
    """The rows of the cells with the usual settings; those of the first kind of cell where there are none."""
    return next((rows for name, rows in grouped if not name), grouped[0][1])


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


def perplexities(metrics: Mapping[str, Any]) -> Frame:
    """Of task metrics a line a text and a defence, a column a fault and a severity: the perplexity; that of whole caches first."""
    lines = [line | {"fault": CLEAN} for line in metrics["ppl_clean"]]
    lines += [line | {"fault": f"{line['kind']} {line['severity']:g}"} for line in metrics["ppl_corrupted"]]
    wide = pd.DataFrame(lines).pivot_table(index=["task", "defence"], columns="fault", values="ppl", sort=False)
    return wide.map(lambda ppl: f"{ppl:,.2f}").rename(index=NAMES).rename_axis(columns=None).reset_index()


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
    hurt = [line for line in metrics["damage_recovered"] if line["lost"] >= LEAST_LOST]
    many = len({line["defence"] for line in hurt}) > MANY
    lines = []
    for line in hurt:
        if line["defence"] in FEATURED or not many:
            named = {"probe": line["task"], "fault": line["kind"], "severity": f"{line['severity']:g}", "lost": share(line["lost"])}
            lines.append({**named, "defence": line["defence"], "shown": _with_interval(line["recovered"], line["low"], line["high"])})
    if not lines:
        return pd.DataFrame()
    tasks, kinds = list(metrics["admitted"]), in_order(dict.fromkeys(line["fault"] for line in lines))
    lines.sort(key=lambda line: (tasks.index(line["probe"]), kinds.index(line["fault"])))
    by = ["probe", "fault", "severity", "lost"]
    wide = pd.DataFrame(lines).pivot_table(index=by, columns="defence", values="shown", aggfunc="first", sort=False)
    return wide.fillna(NONE).rename_axis(columns=None).reset_index()


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    return share(value, low, high, sign=True) + ("" if missing(low) else f" ({span(low, high, sign=True)})")


def _headed(wide: Frame, head: str) -> Frame:
    """A table with its index as the first column, under this head; what is not there is a dash."""
    return wide.fillna(NONE).rename_axis(columns=None).rename_axis(head).reset_index()


def detection_rate(detection: Mapping[str, Any], known: Iterable[str]) -> Frame:
    """A line a defence, the best first, a column a fault: the share of damaged vectors that are detected at 1 % of false alarms, means over
    tasks and severities. Of the defences that are `known`."""
    lines: Frame = pd.DataFrame(detection["lines"])
    lines = lines[lines["defence"].isin(list(known))]
    wide = lines.groupby(["defence", "kind"], sort=False)["recall_at_1_percent"].mean().unstack(sort=False)
    wide = wide[in_order(wide)]
    wide["mean"] = wide.mean(axis=1)
    return _headed(wide.sort_values("mean", ascending=False, kind="stable").map(share), "found at 1 % false alarms")


def bits_lost(grouped: Groups) -> Frame:
    """A line a format and a bit: what flips of that bit alone cost with no defence, in nats a token (`lost`); empty where none was run."""
    lines = []
    for _, rows in grouped:
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
        listed = ", ".join(map(str, sorted(matter))) or NONE
        lines.append({"format": stored, "bits": len(own), "bits that cost .01 nats or more": listed, "worst bit": f"{int(worst['bit'])}",
                      "nats a token": share(worst["lost"]), "sign, nats": share(sign["lost"])})  # fmt: skip
    return pd.DataFrame(lines)


def removed_bits(rows: Frame) -> Frame:
    """A line a way of removal, columns by severity: the share of the bits removed, and what is kept of the score above chance."""
    lines = kept_of_removed(rows)
    lines = lines[lines["severity"] > 0]
    lines["shown"] = [f"{removed:.3f} → {share(left)}" for removed, left in zip(lines["removed"], lines["kept"], strict=True)]
    wide = lines.pivot_table(index="way", columns="severity", values="shown", aggfunc="first", sort=False)
    return _headed(wide.rename(columns=lambda severity: f"severity {severity:g}"), "gone → kept")


def _areas(rows: Frame) -> Frame:
    """By defence the normalised area under what is kept along severity, means over tasks and faults."""
    return auc(kept(rows)).groupby("defence", sort=False)["auc"].mean()


def main_results(rows: Frame) -> Frame:
    """A line a defence: its score on clean caches, the normalised area under faults, and what it keeps, as the protocol's first table."""
    clean = rows[rows["kind"] == CLEAN].groupby("defence", sort=False)["score"].mean()
    areas = _areas(rows)
    lines = [{"Method": name, "Clean score": share(clean[name]), "Robustness AUC": share(areas[name])} for name in areas.index]
    return pd.DataFrame(lines)


def ablations(grouped: Groups) -> Frame:
    """A line a setting and a defence: what is kept with it and with none, over the same faults and seeds, and the mean of what is
    recovered where enough is lost. Tasks that are not admitted are in it as well: `not admitted` names them."""
    lines = []
    for name, rows in grouped:
        if rows["kind"].astype(str).str.startswith("bitflip of bit").any():
            continue
        means, back = _areas(rows), _recovered(rows)
        out = [task for task, entry in admitted(rows).items() if not entry["admitted"]]
        for defence in means.index.drop("none", errors="ignore"):
            labels = {"setting": name or "as usual", "defence": defence}
            scores = {"kept": share(means[defence]), "kept with none": share(means["none"])}
            scores["recovered"] = share(back.get(defence), sign=True)
            lines.append({**labels, **scores, "seeds": rows["seed"].nunique(), "not admitted": ", ".join(out) or NONE})
    return pd.DataFrame(lines)


def _recovered(rows: Frame) -> Frame:
    """By defence the mean damage recovered where at least LEAST_LOST is lost, in nats or in score: a ratio to next to nothing says
    nothing."""
    lines = recovered(rows)
    return lines[lines["lost"] >= LEAST_LOST].groupby("defence")["recovered"].mean()


def spans(grouped: Groups) -> Frame:
    """A line a budget, a column a choice of spans: damage recovered, the mean over tasks and faults."""
    lines = {}
    for _, rows in grouped:
        means = _recovered(rows)
        if "episodic_gold" in means:
            lines[f"{rows['budget'].iloc[0]:g}"] = {name: share(means.get(name), sign=True) for name in SPANS}
    wide = pd.DataFrame(lines).T.sort_index(ascending=False)
    return wide.rename_axis("spans that may be put back, a share of all").reset_index() if len(wide) else wide


def left_out(grouped: Groups) -> Frame:
    """A line a fault: damage recovered by the repair whose training never saw it, by the one whose training did, and by the best heuristic,
    on the same caches."""
    usual, lines = next((rows for name, rows in grouped if not name), None), []
    for name, rows in grouped:
        if not name.startswith("ood=") or usual is None:
            continue
        kinds, seeds = set(rows["kind"]), set(rows["seed"])
        seen = _recovered(usual[usual["kind"].isin(kinds) & usual["seed"].isin(seeds)])
        unseen = _recovered(rows)
        best = best_heuristic(auc(kept(rows)))
        lines.append({"fault": ", ".join(sorted(kinds - {CLEAN})), "left out": share(unseen.get("learned"), sign=True),
                      "seen": share(seen.get("learned"), sign=True), best: share(unseen.get(best), sign=True)})  # fmt: skip
    return pd.DataFrame(lines)


def contraction(grouped: Groups) -> Frame:
    """A line a weight of the loss that contracts, a column a seed: the score kept behind the learned repair; and damage recovered."""
    lines = []
    for name, rows in grouped:
        if name and not (name.startswith("contraction=") and "," not in name):
            continue
        means = {f"seed {seed}": share(_areas(own)["learned"]) for seed, own in rows.groupby("seed") if "learned" in set(own["defence"])}
        if len(means) > 1:
            back = share(_recovered(rows)["learned"], sign=True)
            lines.append({"contraction": f"{rows['contraction'].iloc[0]:g}", **means, "recovered": back})
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
    undamaged = rows[(rows["kind"] == CLEAN) & (rows["defence"] == "none")]
    above = undamaged.groupby("task")["score"].mean() - undamaged.groupby("task")["chance"].mean()
    hurt = hurt.assign(height=hurt["score"] / hurt["task"].map(above), cluster=hurt["task"] + "/" + hurt["cluster"].astype(str))
    lines = []
    for kind in in_order(dict.fromkeys(hurt["kind"])):
        own = hurt[hurt["kind"] == kind]
        wide = own.pivot_table(index=["task", "probe", "severity", "cluster"], columns="defence", values="height").reset_index()
        clean = wide["task"].map(undamaged.groupby("task")["score"].mean() / above)
        lost = (clean - wide["none"]).mean()
        line: dict[str, Any] = {"fault": kind, "lost": share(lost), best: share((wide[best] - wide["none"]).mean() / lost)}
        for name in shown:
            interval = cluster_interval(wide[name] - wide[best], wide["cluster"], bounds=None)
            between = "" if missing(interval.low) else f" ({span(interval.low / lost, interval.high / lost, sign=True)})"
            line[name] = share((wide[name] - wide["none"]).mean() / lost) + between
        lines.append(line)
    return pd.DataFrame(lines)
