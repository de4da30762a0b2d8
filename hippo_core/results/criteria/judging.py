"""Verdicts on the success criteria, each with its number, interval, test, rule and reason.

met: the value reaches its target, and interval and p bear it out. not met: the value does not reach it. not shown: it does, but the
interval is too wide or p too large. not judged: nothing could be compared, or a claim has a rival at chance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_json
from hippo_core.results.criteria.criterion import About, Asked, Criteria, Range
from hippo_core.results.criteria.evidence import Evidence, NotAsked, NotJudged, Pool, gather
from hippo_core.results.criteria.power import Claim
from hippo_core.results.criteria.tables import TableRows, gather_table
from hippo_core.results.policies import SCORES, with_policies
from hippo_core.results.statistics.paired import holm
from hippo_core.results.verdicts import Word

NEEDED = ("run_id", "suite", "preset", "model", "regime", "step", "profile", "n", "seed", "cell", "item_id", "world", "stage")
NAN = math.nan
SLACK = 1e-9  # of a value that reaches its target
OF_PAIR = ("mean_a", "mean_b", "p_mcnemar", "p_mid", "only_a", "only_b", "harmed", "harmed_low", "harmed_high", "n_needed")


@dataclass(frozen=True)
class Verdict:
    """One criterion judged for one model. What does not exist is NaN, None or empty.

    Args:
        p, p_holm: the permutation test by world of a and b, and the same adjusted over the claims of the family that were judged.
        met_when: the rule in words.
        a, b: the conditions compared; `cells` are those of a, then those of b.
        only_a, only_b: the items on which the one or the other has more of the `metric`; `harmed`: the share of the latter.
        rung: the one kind of cue that it is about.
        rival_shows: where the best rag is b, the share of the gold facts that it shows on validation worlds.
    """

    id: str
    question: str
    text: str
    family: str
    about: About
    metric: str
    model: str
    suite: str
    profile: str
    regime: str
    rule: str
    target: float | Range
    met_when: str
    verdict: Word
    reason: str
    a: str = ""
    b: str = ""
    rung: str = ""
    value: float = NAN
    low: float = NAN
    high: float = NAN
    n: int = 0
    n_worlds: int = 0
    mean_a: float = NAN
    mean_b: float = NAN
    p: float = NAN
    p_holm: float = NAN
    p_mcnemar: float = NAN
    p_mid: float = NAN
    only_a: int | None = None
    only_b: int | None = None
    harmed: float = NAN
    harmed_low: float = NAN
    harmed_high: float = NAN
    n_needed: float = NAN
    cells: tuple[str, ...] = ()
    worlds: str = ""
    rival_shows: float = NAN


def judge(criteria: Criteria, rows: pd.DataFrame, validation: pd.DataFrame | None = None, declared: Sequence[Claim] = ()) -> list[Verdict]:
    """A verdict for every model, apart, and every criterion that its rows are asked, in the order of the files. Seeds are pooled.

    Args:
        rows: all item rows of a run with the columns of its cells (NEEDED; optional: encoder, preset_overrides, suite_overrides).
        validation: the same on validation worlds. They choose the best rag, and calibrate "unknown" unless the rows have its columns.
            Without them the highest on the test rows is the best, with a wider interval (Bonferroni) where that makes a claim easier.
        declared: claims that were said before the run to rest on too few worlds: where only its p stands against one it is not judged.
    """
    missing = [column for column in NEEDED if column not in rows]
    if missing:
        raise LabError(f"the rows of a run need the columns {', '.join(missing)}")
    if "split" in rows and len(rows["split"].unique()) > 1:
        raise LabError("criteria are judged on the rows of one split; pass test rows and validation rows apart")
    tuning = rows.iloc[:0] if validation is None else validation
    if not {*SCORES} <= set(rows):
        rows, tuning = with_policies(rows, tuning), with_policies(tuning, tuning)
    verdicts = []
    for model in sorted(rows["model"].unique()) or [""]:
        excused = {claim.id: claim for claim in declared if claim.model == model}
        pool, validated = Pool(rows.loc[rows["model"] == model]), Pool(tuning.loc[tuning["model"] == model])
        measure = partial(gather, criteria, pool=pool, validation=validated)
        verdicts += _judged(criteria, criteria.single(), measure, str(model), excused)
    return verdicts


def judge_tables(criteria: Criteria, tables: Sequence[TableRows]) -> list[Verdict]:
    """A verdict for every criterion of the experiments whose tables these are, in the order of the files."""
    return _judged(criteria, criteria.tables, partial(gather_table, tables=tables), "", {})


def _judged(
    criteria: Criteria, asked: Sequence[Asked], measure: Callable[[Any], Evidence], model: str, declared: Mapping[str, Claim]
) -> list[Verdict]:
    evidence: dict[str, Evidence | str] = {}
    claims: dict[str, dict[str, float]] = {}
    for criterion in asked:
        try:
            seen = evidence[criterion.id] = measure(criterion)
        except NotAsked:
            continue
        except (NotJudged, LabError) as reason:  # rows that do not pair are no evidence; the report still stands
            evidence[criterion.id] = str(reason)
            continue
        if criterion.superiority and seen.comparison and not seen.says_nothing:
            claims.setdefault(criterion.family, {})[criterion.id] = seen.comparison.p_permutation
    corrected = {name: p for p_values in claims.values() for name, p in zip(p_values, holm(list(p_values.values())), strict=True)}
    return [
        _verdict(criteria, criterion, model, evidence[criterion.id], corrected.get(criterion.id, NAN), declared.get(criterion.id))
        for criterion in asked
        if criterion.id in evidence
    ]


def _verdict(criteria: Criteria, criterion: Asked, model: str, evidence: Evidence | str, p_holm: float, declared: Claim | None) -> Verdict:
    names = ("id", "question", "text", "family", "about", "metric", "rule", "target")
    what: dict[str, Any] = {name: getattr(criterion, name) for name in names}
    what |= {"model": model, "met_when": met_when(criteria, criterion), **criterion.about_rows}
    if isinstance(evidence, str):
        return Verdict(**what, verdict="not judged", reason=evidence)
    seen, pair = evidence.interval, evidence.comparison
    decided = _decide(criteria, criterion, evidence, p_holm, declared)
    verdict, reason = ("not judged", evidence.says_nothing) if evidence.says_nothing else decided
    if pair:
        what |= {"p": pair.p_permutation, **{name: getattr(pair, name) for name in OF_PAIR}}
    return Verdict(
        **what, verdict=verdict, reason="; ".join([reason, *evidence.remarks]), value=seen.mean, low=seen.low, high=seen.high,
        n=seen.n, n_worlds=seen.n_worlds, p_holm=p_holm, a=evidence.a, b=evidence.b, cells=evidence.cells,
        rival_shows=evidence.rival_shows,
    )  # fmt: skip


def _decide(criteria: Criteria, criterion: Asked, evidence: Evidence, p_holm: float, declared: Claim | None) -> tuple[Word, str]:
    """The verdict by the table in `Rule`, and why. A claim that only its p stands against is not judged where it was `declared` before the
    run; it may not rest on more worlds than were planned then."""
    seen = evidence.interval
    if any(map(math.isnan, (seen.mean, seen.low, seen.high))):
        return "not judged", f"no interval can be given for {seen.n} scored items in {seen.n_worlds} worlds"
    target = f"{criterion.target:g}" if not isinstance(criterion.target, tuple) else "{:g} to {:g}".format(*criterion.target)
    target = f"the target ({criterion.rule.replace('_', ' ')} {target})"
    least, most = criterion.reach
    if not least - SLACK <= seen.mean <= most + SLACK:
        return "not met", f"{seen.mean:.3f} does not meet {target}"
    lowest, highest = criterion.support(criteria.margin)
    unshown = f"{seen.mean:.3f} meets {target} but this is not shown: "
    if seen.low <= lowest:
        return "not shown", f"{unshown}lower bound {seen.low:.3f} is not above {lowest:.3f}"
    if seen.high >= highest:
        return "not shown", f"{unshown}upper bound {seen.high:.3f} is not below {highest:.3f}"
    if criterion.superiority and not p_holm <= criteria.alpha:
        if declared and seen.n_worlds <= declared.n_worlds:
            return "not judged", f"{unshown}declared before the run: {declared}"
        return "not shown", f"{unshown}p after Holm's correction is {p_holm:.3f}"
    return "met", f"{seen.mean:.3f} meets {target} and the interval supports it"


def met_when(criteria: Criteria, criterion: Asked) -> str:
    """The rule of a criterion in words: the value that it must reach, then what its interval and p must show."""
    lowest, highest = criterion.support(criteria.margin)
    if criterion.same:
        return f"the same for every item, to {_number(criterion.tolerance)}" if criterion.tolerance else "the same for every item"
    signed = criterion.difference is not None or criterion.rule == "at_most_chance_plus"
    if isinstance(criterion.target, tuple):
        shown = " to ".join(_number(end, signed) for end in criterion.target)
        return f"{shown}; its interval inside {_number(lowest, signed)} to {_number(highest, signed)}"
    least = criterion.rule in ("at_least", "not_below")
    over = " above a guess" if criterion.rule == "at_most_chance_plus" else " times b's" if criterion.ratio else ""
    bound = f"its interval above {_number(lowest, signed)}" if least else f"its interval below {_number(highest, signed)}"
    p = f", p ≤ {_number(criteria.alpha)}" if criterion.superiority else ""
    return f"at {'least' if least else 'most'} {_number(criterion.target, signed)}{over}; {bound}{p}"


def _number(value: float, sign: bool = False) -> str:
    """A number of a rule, with all the digits that it was written with."""
    integer, _, digits = f"{abs(value):.10f}".rstrip("0").partition(".")
    text = f"{integer}.{digits:0<2}" if digits else integer
    return ("−" if value < 0 else "+" if sign and value else "") + text


def write_criteria(path: Path, verdicts: Sequence[Verdict], invalid: Sequence[str] = ()) -> None:
    """Write verdicts as JSON, and in sentences which cells are `invalid`; what does not exist (NaN, infinity) is null."""
    criteria = [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in asdict(verdict).items()}
        for verdict in verdicts
    ]
    write_json(path, {"schema_version": 1, "criteria": criteria, **({"invalid": list(invalid)} if invalid else {})})


def read_criteria(path: Path) -> pd.DataFrame:
    """The verdicts of such a file, a row each; with all columns where there is none."""
    return pd.DataFrame(read_object(path)["criteria"], columns=[field.name for field in fields(Verdict)])
