"""The title of each figure: one sentence, made from the numbers, that says what the figure shows. No number, no claim.

A difference between two conditions that answered the same questions is called one where the interval of the paired difference leaves out
0; a change between other questions, where the two intervals do not overlap. Otherwise the sentence says no more than the numbers.
"""

from hippo_core.protocols.questions.sweeps import on_axis
from hippo_core.results import summaries
from hippo_core.results.conditions import ignores_window, is_bound, is_control, ordered
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import percent, share
from hippo_core.results.frames import Frame, Row

_SPAN = "baselines/span_short"


def right_or_wrong(rows: Frame) -> bool:
    """Whether every answer is simply right or wrong; a suite's own score may lie between."""
    return bool(rows["score"].dropna().isin((0, 1)).all())


def _number(mean: float, binary: bool) -> str:
    return percent(mean) if binary else share(mean)


def _score(mean: float, binary: bool) -> str:
    return f"{percent(mean)} right" if binary else f"a score of {share(mean)}"


def _find(table: Frame, **where: str) -> Row | None:
    for column, value in where.items():
        table = table[table[column] == value]
    return None if table.empty else table.iloc[0]


def _leader(table: Frame) -> Row | None:
    """The best condition that is no bound and ignores the window: what one would use after the session has ended."""
    own = table[(table["regime"] == "delayed") & table["condition"].map(ignores_window) & ~table["condition"].map(is_bound)]
    return None if own.empty else own.loc[own["mean"].idxmax()]


def _memory(rows: Frame) -> str | None:
    return next((name for name in ordered(rows["condition"]) if name.startswith("memory/") and not is_control(name)), None)


def overview(rows: Frame) -> str:
    """What the window gives, what is left when it is gone, and what the best other condition gets."""
    rows = summaries.in_both_regimes(rows)
    table = summaries.estimate(rows, ["condition", "regime"])
    now, later = _find(table, condition=_SPAN, regime="immediate"), _find(table, condition=_SPAN, regime="delayed")
    leader = _leader(table)
    parts, binary = [], right_or_wrong(rows)
    if now is not None and later is not None:
        without = _number(later["mean"], binary)
        parts.append(f"span_short gets {_score(now['mean'], binary)} with the facts in its prompt, {without} without them")
    elif later is not None:
        parts.append(f"Without the facts in its prompt span_short gets {_score(later['mean'], binary)}")
    if leader is not None:
        name = style_of(leader["condition"]).label
        parts.append(f"{name} gets {_number(leader['mean'], binary) if parts else _score(leader['mean'], binary)}")
    if not parts and len(table):
        best = table.loc[table["mean"].idxmax()]
        parts.append(f"{style_of(best['condition']).label} gets {_score(best['mean'], binary)}")
    return "; ".join(parts) or "Nothing was scored"


def ladder(rows: Frame) -> str:
    """Where the memory and the best retrieval differ most; with one of them alone, how it (without either, the best condition) fares
    with the first and the last way of asking.
    """
    rows = summaries.labelled(rows)
    rows = rows[rows["regime"] == "delayed"]
    rungs = summaries.order_of(rows, "rung")
    rag, memory = summaries.best_rag(rows)[0], _memory(rows)
    if rag and memory:
        return _between(rows, memory, rag)
    leader = _leader(summaries.estimate(rows, ["condition", "regime"]))
    name = memory or rag or (None if leader is None else leader["condition"])
    table = summaries.estimate(rows[rows["condition"] == name], ["rung"])
    first, last = (_find(table, rung=rung) for rung in (rungs[0], rungs[-1])) if len(rungs) > 1 else (None, None)
    if first is None or last is None:
        return "Accuracy by kind of cue"
    binary = right_or_wrong(rows)
    ends = _number(first["mean"], binary), _number(last["mean"], binary)
    if not (first["low"] > last["high"] or last["low"] > first["high"]):
        return f"{style_of(str(name)).label} gets {ends[0]} on {rungs[0]} cues and {ends[1]} on {rungs[-1]} ones"
    verb = "falls" if first["mean"] > last["mean"] else "rises"
    return f"{style_of(str(name)).label} {verb} from {ends[0]} on {rungs[0]} cues to {ends[1]} on {rungs[-1]} ones"


def _between(rows: Frame, memory: str, rag: str) -> str:
    """The kind of cue on which the two differ by most, question by question, among those on which the paired difference is clear."""
    names, binary = (style_of(memory).label, style_of(rag).label), right_or_wrong(rows)
    pairs = {
        rung: summaries.pair(rows[rows["rung"] == rung], (memory, "delayed"), (rag, "delayed")) for rung in summaries.order_of(rows, "rung")
    }
    clear = {rung: pair for rung, pair in pairs.items() if pair is not None and (pair.low > 0 or pair.high < 0)}
    if not clear:
        return f"{names[0]} and {names[1]}: no clear difference on any kind of cue"
    rung = max(clear, key=lambda name: abs(clear[name].difference))
    ours, theirs = clear[rung].mean_a, clear[rung].mean_b
    return f"On {rung} cues {names[0]} gets {_score(ours, binary)}, {names[1]} {_number(theirs, binary)}"


def recall(rows: Frame) -> str:
    """Where the gold fact stands in the best ranking."""
    rows = summaries.labelled(rows)
    measured = rows[rows["recall_1"].notna() & ~rows["condition"].map(is_bound)]
    if measured.empty:
        return "No condition ranks facts"
    means = measured.groupby("condition")[["recall_1", "recall_5"]].mean()
    best = next(name for name in ordered(means.index) if means.loc[name, "recall_1"] == means["recall_1"].max())
    first, five = means.loc[best, "recall_1"], means.loc[best, "recall_5"]
    return (
        f"{style_of(best).label} puts the gold fact first for {percent(first)} of the questions, among its first five for {percent(five)}"
    )


def cost(rows: Frame) -> str:
    """What the longest prompt buys over the best retrieval; in a run without it, what the memory pays and gets beside that."""
    rows = summaries.labelled(rows)
    table = summaries.estimate(rows, ["condition", "regime"])
    chosen = "baselines/longctx" if "baselines/longctx" in set(table["condition"]) else _memory(rows)
    rag, _ = summaries.best_rag(rows)
    ours, theirs = (_find(table, condition=str(name), regime="delayed") for name in (chosen, rag))
    if ours is None or theirs is None:
        return "Tokens in the prompt against accuracy"
    tokens = rows.groupby("condition")["prompt_tokens"].mean()
    binary = right_or_wrong(rows)
    ends = f"{_score(ours['mean'], binary)} against {_number(theirs['mean'], binary)}"
    ours_label, rag_label = style_of(str(chosen)).label, style_of(str(rag)).label
    return f"{ours_label} reads {tokens[chosen] / tokens[rag]:.1f} times the tokens of {rag_label} and gets {ends}"


def apart(axis: str, table: Frame) -> str:
    """Where one line of a sweep is clearly ahead of the next, and by most; or, where none is, farthest ahead of the last.

    Clearly: their intervals do not overlap. `table` holds estimates by panel, line and x.
    """
    points = [
        (", ".join(filter(None, [f"{axis}={on_axis(x)}", panel])), here.sort_values("mean", ascending=False, kind="stable"))
        for (panel, x), here in table.groupby(["panel", "x"])
    ]
    for words, other in (("Ahead", 1), ("Farthest apart", -1)):
        pairs = [(point, here.iloc[0], here.iloc[other]) for point, here in points if len(here) > 1]
        clear = [(point, best, rest) for point, best, rest in pairs if best["low"] > rest["high"]]
        if clear:
            point, best, rest = max(clear, key=lambda pair: pair[1]["mean"] - pair[2]["mean"])
            scores = f"{style_of(best['line']).label} {percent(best['mean'])} right, {style_of(rest['line']).label} {percent(rest['mean'])}"
            return f"{words} at {point}: {scores}"
    return f"Along {axis} the intervals of the best and the worst condition overlap"
