"""What a report says of a paired run: its conditions side by side, the memory against each of them, and groups of items."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.paired.comparison import by_item, grouped, pairs_of
from hippo_core.protocols.paired.conditions import MEMORY
from hippo_core.protocols.paired.figures import picture
from hippo_core.protocols.paired.summary import by_condition, scores_by_condition
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.formatting import probability, share, share_and_span, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section

CLEAR = 0.05  # p after Holm's correction, at most


def in_words(metrics: Mapping[str, Any]) -> str:
    """The memory against word search, or each condition's success where one of them was not run."""
    pair = next((one for one in metrics["pairs"] if one["baseline"] == "lexical"), None)
    if pair is None:
        return "; ".join(f"{name} {share(found['mean'])}" for name, found in metrics["metrics"].items()) + " of the items succeed."
    bounds = f", 95% interval {span(pair['low'], pair['high'], sign=True)}" if pair["low"] is not None else ""
    return (
        f"{MEMORY} succeeds at {share(pair['mean_a'])} of {pair['n']} items, lexical at {share(pair['mean_b'])}: a difference of "
        f"{share(pair['difference'], sign=True)}{bounds}, {pair['gained']} gained and {pair['lost']} lost, McNemar's exact p "
        f"{probability(pair['p_mcnemar'])}, mid-p {probability(pair['p_mid'])}, worlds permuted {probability(pair['p_permutation'])}."
    )


def found_of(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What pairs of the memory under test and another condition say, in sentences: against word search, then ahead of which, behind which,
    and where no difference is clear (p by permutation of worlds after Holm's correction, .05)."""
    told = [in_words({"pairs": pairs})] if any(one["baseline"] == "lexical" for one in pairs) else []
    clear = [one for one in pairs if one["p_holm"] is not None and one["p_holm"] <= CLEAR]
    kinds = {
        "clearly ahead of": [one for one in clear if one["difference"] > 0],
        "clearly behind": [one for one in clear if one["difference"] < 0],
        "not clearly different from": [one for one in pairs if one not in clear],
    }
    of = [f"{kind} {', '.join(map(_with_difference, own))}" for kind, own in kinds.items() if own]
    return [*told, *([f"Of all conditions, corrected for their number, {MEMORY} is {'; '.join(of)}."] if of else [])]


def _with_difference(pair: Mapping[str, Any]) -> str:
    return f"{pair['baseline']} ({share(pair['difference'], sign=True)})"


def found(tables: Sequence[TableRows]) -> list[Section]:
    """Four sections a cell."""
    sections = []
    for table in tables:
        rows: Frame = table.rows
        for own in [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]:
            name = _named(own, rows)
            sections += [_conditions(own, name), _scores(own, name), _pairs(own, name), _groups(own, name)]
    return sections


def _named(own: Frame, rows: Frame) -> str:
    told = ["suite", *(name for name in ("profile", "model", "memory", "encoder", "seed") if name in rows and rows[name].nunique() > 1)]
    return ", ".join(str(own[name].iloc[0]) for name in told if name in own)


def _conditions(rows: Frame, name: str) -> Section:
    sentence = (
        "Share of items that succeed, with its 95% interval by world, then by type of item. Tokens a success: of all items, cached ones "
        "counted once."
    )
    return Section(f"Paired conditions: {name}", sentence, picture(rows), by_condition(rows), found_of(pairs_of(rows)))


def _scores(rows: Frame, name: str) -> Section:
    sentence = "Each a mean over the items that have it; a dash where none has, as recall where nothing is ranked."
    return Section(f"Paired scores: {name}", sentence, table=scores_by_condition(rows))


def _pairs(rows: Frame, name: str) -> Section:
    lines = [
        {
            "against": one["baseline"],
            "items": one["n"],
            "it": share(one["mean_b"]),
            MEMORY: share(one["mean_a"]),
            "difference": share(one["difference"], sign=True),
            "95% interval": span(one["low"], one["high"], sign=True),
            "gained": one["gained"],
            "lost": one["lost"],
            "harmed": share_and_span(one["harmed"], one["harmed_low"], one["harmed_high"]),
            "McNemar's exact p": probability(one["p_mcnemar"]),
            "mid-p": probability(one["p_mid"]),
            "p, worlds permuted": probability(one["p_permutation"]),
            "after Holm": probability(one["p_holm"]),
        }
        for one in pairs_of(rows)
    ]
    sentence = (
        "Item by item; repeats of an item are averaged first. McNemar's test takes items for independent; interval and permutation go by "
        "world. Harmed: the share of items that the other does better. Items to which one side gives no value are left out."
    )
    return Section(f"{MEMORY} against each: {name}", sentence, table=pd.DataFrame(lines))


def _groups(rows: Frame, name: str) -> Section:
    memory, lexical = (by_item(rows[rows["condition"] == one]) for one in (MEMORY, "lexical"))
    if memory.empty or lexical.empty:
        return Section(f"By group: {name}", f"{MEMORY} and lexical were not both run.")
    lines = [
        {
            "group": one.name,
            "items": one.result.n,
            "lexical": share(one.result.mean_b),
            MEMORY: share(one.result.mean_a),
            "difference": share(one.result.difference, sign=True),
            "p": probability(one.result.p_permutation),
            "after Holm": probability(one.p_holm),
            "harmed": share_and_span(one.result.harmed, one.result.harmed_low, one.result.harmed_high),
        }
        for one in grouped(memory, lexical)
    ]
    return Section(f"By group: {name}", f"{MEMORY} against lexical, p by permutation of worlds.", table=pd.DataFrame(lines))
