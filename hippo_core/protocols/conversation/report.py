"""The report on conversations: techniques side by side, the curve over tokens, positions, groups, and pairs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.conversation import figures as conversation
from hippo_core.protocols.conversation.figures import EVERYWHERE
from hippo_core.protocols.conversation.table import GROUPS, by_technique, mean_score
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, count, probability, quantity, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section
from hippo_core.results.statistics.paired import bonferroni, cohens_d, compare, holm, paired

AGAINST = ("random", "recency", "bm25")  # what a technique must beat before it counts as helping
SHOWN = {
    "em": "exact match",
    "overlap": "overlap",
    "presence": "answer in the prompt",
    "entity_recall": "entity recall",
    "entity_precision": "entity precision",
    "stale": "says what was corrected",
    "hit_1": "evidence hit@1",
    "recall_5": "recall@5",
    "recall_10": "recall@10",
}
NEAR = (10, 40)  # turns behind the evidence: near, between, far
ORDERS = {
    "position": ("early", "middle", "recent"),
    "salience": ("high", "medium", "low"),
    "distance": (f"under {NEAR[0]}", f"{NEAR[0]} to {NEAR[1] - 1}", f"{NEAR[1]} or more"),
}


def in_words(model: str, techniques: Sequence[Mapping[str, Any]]) -> str:
    """The best technique of each budget beside the bounds."""
    means = {(line["technique"], line["budget"]): line["em"]["mean"] for line in techniques}
    parts = []
    for budget in dict.fromkeys(line["budget"] for line in techniques):
        own = {name: mean for (name, of), mean in means.items() if of == budget and name not in EVERYWHERE and mean is not None}
        if own:
            best = max(own, key=lambda name: own[name])
            parts.append(f"{_budget(budget)} {best} {own[best]:.2f}")
    bounds = [f"{name} {mean:.2f}" for name in EVERYWHERE for (of, _), mean in list(means.items())[::-1] if of == name and mean is not None]
    failed = sum(line.get("failed", 0) for line in techniques)  # records of before do not count them
    cut = sum(line.get("cut", 0) for line in techniques)
    faults = (f"; {failed} failed" if failed else "") + (f"; {cut} cut by the limit of new tokens" if cut else "")
    return f"{model} answers: {'; '.join(parts) or NONE}; bounds: {', '.join(dict.fromkeys(bounds))}{faults}."


def sections(tables: Sequence[TableRows]) -> list[Section]:
    """The sections of each model's rows; the cells of a model are pooled where they asked the same questions."""
    collected = []
    for table in tables:
        models = list(dict.fromkeys(table.rows["model"])) if "model" in table.rows else [""]
        for model in models:
            rows = pooled(table.rows[table.rows["model"] == model] if model else table.rows)
            name = f": {model}" if len(models) > 1 else ""
            where = "Exact match by where in the dialogue the answer was told last."
            positions = drawing.png(conversation.positions(_common_budgets(rows)))
            collected += [
                _technique_table(name, rows),
                Section(f"What is answered, by tokens{name}", _curve_sentence(rows), drawing.png(conversation.curve(rows))),
                Section(f"Lost in the middle{name}", where, positions),
                *(_groups(name, rows, column) for column in (*GROUPS, "distance") if column in rows),
                _pairs(name, rows),
            ]
    return collected


def pooled(rows: Frame) -> Frame:
    """Rows of several cells as of one: each answer once, dialogues named by their seed."""
    if "seed" in rows:
        seed = rows["seed"].astype(str)
        rows = rows.assign(**{name: rows[name] + "@" + seed for name in ("dialogue", "question", "entry")})
    return rows.drop_duplicates("entry")


def _common_budgets(rows: Frame) -> Frame:
    """Rows of the budgets under which most techniques were asked."""
    counts = rows.groupby("budget")["technique"].nunique()
    most = max([counts[name] for name in counts.index if name != "full"], default=0)
    return rows[rows["budget"].isin([name for name in counts.index if counts[name] >= most or name == "full"])]


def _budget(name: str) -> str:
    return {"turns": "half of the turns (20 at most)", "full": "everything"}.get(name, f"{name} tokens" if name.isdecimal() else name)


def _technique_table(name: str, rows: Frame) -> Section:
    lines = []
    for line in sorted(by_technique(rows), key=lambda line: (_order(line["budget"]), -(line["em"]["mean"] or 0))):
        shown: dict[str, Any] = {"budget": _budget(line["budget"]), "technique": line["technique"]}
        for column, title in ((name, title) for name, title in SHOWN.items() if name in line):
            shown[title] = share(line[column]["mean"], line[column]["low"], line[column]["high"])
            if column == "em":
                shown["95% interval"] = span(line["em"]["low"], line["em"]["high"])
        shown |= {"failed": count(line["failed"]), "cut": count(line["cut"]), "tokens": quantity(line["tokens"])}
        lines.append(shown | {"ms a question": quantity(line["ms"]), "ms a dialogue": quantity(line["index_ms"])})
    n = rows["question"].nunique()
    sentence = (
        f"{n} questions about {rows['dialogue'].nunique()} dialogues; intervals by dialogue. The answer in the prompt is the ceiling of "
        "any reader. Evidence is ranked by techniques that look at the question; tokens are of the whole prompt."
    )
    return Section(f"Techniques{name}", sentence, table=pd.DataFrame(lines))


def _order(budget: str) -> tuple[int, int]:
    return (1, int(budget)) if budget.isdecimal() else (0 if budget == "full" else 2, 0)


def _curve_sentence(rows: Frame) -> str:
    sentence = "Means over the questions; none, full and oracle do not depend on the budget."
    return f"{sentence} Half of the turns is another budget and stands in the table." if "turns" in set(rows["budget"]) else sentence


def _groups(name: str, rows: Frame, column: str) -> Section:
    """Exact match by a column's values, under one budget: the tokens that most techniques had."""
    asked = rows.groupby("budget")["technique"].nunique()
    budget = max(asked.index, key=lambda name: (name.isdecimal(), name == "turns", asked[name]))
    rows = rows[rows["budget"].isin([budget, "full"])]
    order = ORDERS.get(column) or sorted(set(rows[column]))
    if column == "distance":
        rows = rows.assign(distance=[order[sum(behind >= end for end in NEAR)] for behind in rows["distance"]])
    lines = []
    best = rows.groupby("technique")["em"].mean().sort_values(ascending=False, kind="stable")
    for technique in best.index:
        own, line = rows[rows["technique"] == technique], {"technique": technique}
        for value in order:
            part = mean_score(own[own[column] == value], "em")
            line[str(value)] = share(part["mean"]) + ("" if part["low"] is None else f" ({span(part['low'], part['high'])})")
        lines.append(line)
    label = "turns behind the last evidence" if column == "distance" else column
    sentence = f"Exact match (95% interval by dialogue), {_budget(budget)}."
    return Section(f"By {label}{name}", sentence, table=pd.DataFrame(lines))


def comparisons(rows: Frame) -> Frame:
    """Every technique against each of AGAINST under the same budget: difference, corrected p over all pairs, paired d, items needed."""
    rows = rows.assign(item=rows["question"])
    lines = []
    for budget, own in rows[rows["budget"] != "full"].groupby("budget", sort=False):
        by_name = {str(name): part for name, part in own.groupby("technique", sort=False)}
        for other in AGAINST:
            for technique in by_name:
                if other in by_name and technique != other and technique not in (*EVERYWHERE, *AGAINST[: AGAINST.index(other)]):
                    lines.append(_pair(by_name[technique], by_name[other], str(budget), technique, other))
    table = pd.DataFrame(lines)
    if not lines:
        return table
    return table.assign(holm=holm(table["p"].tolist()), bonferroni=bonferroni(table["p"].tolist()))


def _pair(a: Frame, b: Frame, budget: str, technique: str, other: str) -> dict[str, Any]:
    a, b = (group[["item", "dialogue", "em"]] for group in (a, b))
    known = compare(a, b, metric="em", key="item", cluster="dialogue")
    scored = paired(a, b, "em", "item", "dialogue").dropna()
    effect = cohens_d(scored["a"] - scored["b"], scored["cluster"])
    return {
        "budget": budget, "technique": technique, "against": other, "difference": known.difference, "low": known.low, "high": known.high,
        "p": known.p_permutation, "d": effect.d, "d_low": effect.low, "d_high": effect.high, "n": known.n, "n_needed": known.n_needed,
    }  # fmt: skip


def _pairs(name: str, rows: Frame) -> Section:
    table = comparisons(rows)
    shown = [
        {
            "budget": _budget(line["budget"]),
            "technique": line["technique"],
            "against": line["against"],
            "difference": share(line["difference"], line["low"], line["high"], sign=True),
            "95% interval": span(line["low"], line["high"], sign=True),
            "p, Holm": probability(line["holm"]),
            "p, Bonferroni": probability(line["bonferroni"]),
            "d": share(line["d"], sign=True),
            "d, 95% interval": span(line["d_low"], line["d_high"], sign=True),
            "questions": count(line["n"]),
            "needed for 80% power": count(line["n_needed"]) if math.isfinite(line["n_needed"]) else NONE,
        }
        for line in table.to_dict("records")
    ]
    sentence = (
        f"Differences of exact match on the same questions; p by permuting dialogues, corrected over all {len(shown)} pairs; d is Cohen's "
        "of paired means of dialogues."
    )
    return Section(f"Which differences are shown{name}", sentence, table=pd.DataFrame(shown))
