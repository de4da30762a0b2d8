"""The report on a paired run: its conditions side by side, the memory against each of them, and groups of items."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib import rc_context

from hippo_core.protocols.paired.comparison import aligned, grouped, items_by_condition, pairs_of
from hippo_core.protocols.paired.conditions import MEMORY
from hippo_core.protocols.paired.page import group_lines
from hippo_core.protocols.paired.summary import by_condition, scores_by_condition
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.figures.palette import QUIET, RULE, Style
from hippo_core.results.formatting import probability, share, share_and_span, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section

CLEAR = 0.05  # p after Holm's correction, at most
MINE, OTHER = Style(MEMORY, "#0072b2", "o"), Style("", QUIET, "o")


def in_words(metrics: Mapping[str, Any]) -> str:
    """The memory against word search, or each condition's success where one of them was not run."""
    pair = next((line for line in metrics["pairs"] if line["baseline"] == "lexical"), None)
    if pair is None:
        return "; ".join(f"{name} {share(success['mean'])}" for name, success in metrics["metrics"].items()) + " of the items succeed."
    bounds = f", 95% interval {span(pair['low'], pair['high'], sign=True)}" if pair["low"] is not None else ""
    return (
        f"{MEMORY} succeeds at {share(pair['mean_a'])} of {pair['n']} items, lexical at {share(pair['mean_b'])}: a difference of "
        f"{share(pair['difference'], sign=True)}{bounds}, {pair['gained']} gained and {pair['lost']} lost, McNemar's exact p "
        f"{probability(pair['p_mcnemar'])}, mid-p {probability(pair['p_mid'])}, worlds permuted {probability(pair['p_permutation'])}."
    )


def comparison_sentences(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about pairs of the memory under test and another condition: against word search, then ahead of which, behind which,
    and where no difference is clear (p by permutation of worlds after Holm's correction, .05)."""
    sentences = [in_words({"pairs": pairs})] if any(pair["baseline"] == "lexical" for pair in pairs) else []
    clear = [pair for pair in pairs if pair["p_holm"] is not None and pair["p_holm"] <= CLEAR]
    kinds = {
        "clearly ahead of": [pair for pair in clear if pair["difference"] > 0],
        "clearly behind": [pair for pair in clear if pair["difference"] < 0],
        "not clearly different from": [pair for pair in pairs if pair not in clear],
    }
    of = [f"{kind} {', '.join(map(_with_difference, own))}" for kind, own in kinds.items() if own]
    return [*sentences, *([f"Of all conditions, corrected for their number, {MEMORY} is {'; '.join(of)}."] if of else [])]


def _with_difference(pair: Mapping[str, Any]) -> str:
    return f"{pair['baseline']} ({share(pair['difference'], sign=True)})"


def sections(tables: Sequence[TableRows]) -> list[Section]:
    """Four sections a cell."""
    collected = []
    for table in tables:
        rows: Frame = table.rows
        differing = [name for name in ("profile", "model", "memory", "encoder", "seed") if name in rows and rows[name].nunique() > 1]
        for own in [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]:
            name = ", ".join(str(own[column].iloc[0]) for column in ("suite", *differing) if column in own)
            shares = (
                "Share of items that succeed, with its 95% interval by world, then by type of item. Tokens a success: of answers "
                "that state tokens, cached ones counted once."
            )
            means = "Each a mean over the items that have it; a dash where none has, as recall where nothing is ranked."
            pairs = pairs_of(own)
            collected += [
                Section(f"Paired conditions: {name}", shares, picture(own), by_condition(own), comparison_sentences(pairs)),
                Section(f"Paired scores: {name}", means, table=scores_by_condition(own)),
                _pairs(pairs, name),
                _groups(own, name),
            ]
    return collected


def _pairs(pairs: Sequence[Mapping[str, Any]], name: str) -> Section:
    lines = [
        {
            "against": pair["baseline"],
            "items": pair["n"],
            "it": share(pair["mean_b"]),
            MEMORY: share(pair["mean_a"]),
            "difference": share(pair["difference"], sign=True),
            "95% interval": span(pair["low"], pair["high"], sign=True),
            "gained": pair["gained"],
            "lost": pair["lost"],
            "harmed": share_and_span(pair["harmed"], pair["harmed_low"], pair["harmed_high"]),
            "McNemar's exact p": probability(pair["p_mcnemar"]),
            "mid-p": probability(pair["p_mid"]),
            "p, worlds permuted": probability(pair["p_permutation"]),
            "after Holm": probability(pair["p_holm"]),
        }
        for pair in pairs
    ]
    sentence = (
        "Item by item; repeats of an item are averaged first. McNemar's test takes items for independent; interval and permutation go by "
        "world. Harmed: the share of items that the other does better. Items to which one side gives no value are left out."
    )
    return Section(f"{MEMORY} against each: {name}", sentence, table=pd.DataFrame(lines))


def _groups(rows: Frame, name: str) -> Section:
    items = items_by_condition(rows)
    if not {MEMORY, "lexical"} <= items.keys():
        return Section(f"By group: {name}", f"{MEMORY} and lexical were not both run.")
    heads = ["group", "items", "lexical", MEMORY, "difference", "p", "after Holm", "harmed"]
    lines = pd.DataFrame(group_lines(grouped(*aligned(items[MEMORY], items["lexical"]))), columns=heads)
    return Section(f"By group: {name}", f"{MEMORY} against lexical, p by permutation of worlds.", table=lines)


def picture(rows: Frame) -> bytes:
    """Success of each condition with its 95% interval by world (PNG)."""
    items = items_by_condition(rows)
    names = list(items)
    means = pd.DataFrame([mean_by_cluster(own, "success", "world") for own in items.values()], dtype=float)
    margins = drawing.Margins(drawing.text_width(names, 11) + 0.35, 0.5, head=0.05)
    figure, [panel] = drawing.grid("What each condition is worth; further right is better", 1, 1, 0.34 * len(names) + 0.6, margins)
    with rc_context(drawing.STYLE):
        for index, name in enumerate(names):
            drawing.bars(panel, [index], means[index : index + 1], MINE if name == MEMORY else OTHER, across=True)
        panel.set_yticks(range(len(names)), names, fontsize=11)
        panel.set(
            xlim=(min(-0.03, means["low"].min() - 0.02), 1.03),
            ylim=(len(names) - 0.5, -0.5),
            xlabel="share of items that succeed; lines are 95% intervals by world",
        )
        panel.grid(axis="x", color=RULE)
    return drawing.png(figure)
