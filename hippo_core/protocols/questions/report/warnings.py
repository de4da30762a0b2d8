"""What a reader of a setting's numbers should be warned of, in sentences, and what a run did not measure."""

from hippo_core.evaluation.table import has_flag
from hippo_core.methods.presets import preset_names, styles_of_presets
from hippo_core.protocols.questions.report.runs import Run
from hippo_core.results import summaries
from hippo_core.results.conditions import ignores_window, is_control, ordered, suite_position
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import percent, share
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import expected_range, range_warning

SATURATED, REFUSALS, ABOVE_CHANCE, ORACLE = 0.98, 0.5, 0.1, 0.8
RUNG_ITEMS, RUNG_WORLDS = 200, 20


def warnings(rows: Frame, validation: Frame) -> list[str]:
    """The warnings of one setting: saturation, refusals, truncation, answers from nowhere, a weak reader, surprises."""
    messages = []
    table = summaries.estimate(rows, ["condition", "regime"])
    full = table[(table["mean"] >= SATURATED) & ~table["condition"].map(is_control)]
    if len(full):
        names = "; ".join(_named(row["condition"], row["regime"]) for _, row in full.iterrows())
        messages.append(f"Saturated ({names}): from {share(SATURATED)} on nothing can be shown to be better.")
    groups = [(_named(*key), group) for key, group in rows.groupby(["condition", "regime"], sort=False)]
    for key, rate in rows.groupby(["condition", "regime"])["refusal"].mean().items():
        if rate > REFUSALS:
            messages.append(f"{_named(*key)}: the model refuses {percent(rate)} of the questions.")
    for name, group in groups:
        if short := int((has_flag(group, "truncated") | (group["n_dropped"].fillna(0) > 0)).sum()):
            messages.append(f"{name}: {short} of {len(group)} prompts were too long, so their oldest facts were left out.")
    for name, group in groups:
        if cut := int(has_flag(group, "cut").sum()):
            messages.append(f"{name}: {cut} of {len(group)} answers were cut by the limit of new tokens.")
    without_facts = table[(table["regime"] == "delayed") & ~table["condition"].map(ignores_window)]
    for _, row in without_facts[without_facts["mean"] > without_facts["chance"] + ABOVE_CHANCE].iterrows():
        guess = f"where chance is {share(row['chance'])}; the question may give its answer away"
        messages.append(f"{_named(row['condition'], row['regime'])}: {share(row['mean'])} without the facts, {guess}.")
    for _, row in table[(table["condition"] == "controls/oracle") & (table["mean"] < ORACLE)].iterrows():
        blame = "the model may fail here where the memory does not"
        messages.append(f"oracle: {share(row['mean'])} with the gold facts in the prompt, below {share(ORACLE)}; {blame}.")
    for condition, regime, mean, limits in expected(rows, validation):
        if warning := range_warning(_named(condition, regime), mean, limits):
            messages.append(f"{warning}.")
    return messages


def _named(condition: str, regime: str) -> str:
    return f"{style_of(condition).label}, {regime}"


def expected(rows: Frame, validation: Frame) -> list[tuple[str, str, float, tuple[float, float]]]:
    """(condition, regime, test mean, expected range) of each condition that has validation rows."""
    ranges = []
    for condition in ordered(validation["condition"]):
        for regime, group in validation[validation["condition"] == condition].groupby("regime"):
            here = rows[(rows["condition"] == condition) & (rows["regime"] == regime)]
            if len(here):
                limits = expected_range(group, n=len(here), cluster="cluster")
                ranges.append((condition, str(regime), float(here["score"].mean()), limits))
    return ranges


def not_measured(run: Run) -> list[str]:
    """What this run says nothing about."""
    rows = run.rows
    absent = ordered((set(preset_names()) & set(styles_of_presets())) - set(rows["preset"]))
    notes = [f"Presets without a record in this run: {', '.join(absent)}."] if absent else []
    for setting, group in rows.groupby("setting", sort=False):
        if absent := ordered(set(rows["preset"]) - set(group["preset"])):
            notes.append(f"{setting}: no record of {', '.join(style_of(name).label for name in absent)}.")
    if rows["model"].nunique() == 1:
        notes.append(f"Other models: all rows are from {rows['model'].iloc[0]}.")
    for model, group in rows.groupby("model"):
        if absent := sorted(set(rows["suite"]) - set(group["suite"]), key=suite_position):
            notes.append(f"{model}: no record of the suites {', '.join(absent)}.")
    if set(rows["encoder"]) >= {"own"} and "minilm" not in set(rows["encoder"]):
        notes.append("Retrieval with a published encoder: rag_dense and rag_hybrid use the answering model's own vectors.")
    if rows["seed"].nunique() == 1:
        notes.append(
            f"Other seeds: all rows have seed {rows['seed'].iloc[0]}, so the run does not show how results vary between data sets."
        )
    if run.validation.empty:
        notes.append("Expected ranges, and a best rag that validation worlds choose: the run has no validation cells.")
    small = rows[rows["rung"] != ""].groupby(["setting", "condition", "regime", "rung"])["cluster"].agg(["size", "nunique"])
    few = small[(small["size"] < RUNG_ITEMS) | (small["nunique"] < RUNG_WORLDS)]
    if len(few):
        least = f"{RUNG_ITEMS} items in {RUNG_WORLDS} worlds"
        notes.append(f"Claims for a single rung: they need {least}; {len(few)} of {len(small)} groups have fewer.")
    for column, words in (("kv_mb", "KV-cache size"), ("latency_ms", "latency"), ("recall_1", "recall of gold facts")):
        if rows[column].isna().all():
            notes.append(f"{words}: it is in no record.")
    return notes
