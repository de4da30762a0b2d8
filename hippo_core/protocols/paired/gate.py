"""A gate: a policy that a comparison must meet, rule by rule."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hippo_core.files import home, root
from hippo_core.models.spec import read_mapping, validated
from hippo_core.protocols.paired.comparison import Paired
from hippo_core.protocols.paired.items import StrictModel
from hippo_core.results.formatting import probability, quantity, share

Share = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-1, le=1)]


class GroupPolicy(StrictModel):
    """What is asked of one group of items."""

    min_items: int = 1
    min_candidate_success: Share | None = None
    min_success_delta: Difference | None = None
    max_p_holm: Share | None = None


class Policy(StrictModel):
    """A policy file. Floors are absolute (`min_candidate_success`) or against the baseline (`min_success_delta`, and
    `min_success_delta_low` of the lower end of its 95% interval). `groups`: by type:NAME or tag:NAME; one that the suite lacks fails.
    `metrics`: the least difference of a score's means."""

    schema_version: int = 1
    min_paired_items: int = 1
    reviewed_labels: bool = False
    min_candidate_success: Share | None = None
    min_success_delta: Difference | None = None
    min_success_delta_low: Difference | None = None
    max_mcnemar_p: Share | None = None
    max_permutation_p: Share | None = None
    max_tokens_per_success_ratio: Annotated[float, Field(gt=0)] | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    groups: dict[str, GroupPolicy] = Field(default_factory=dict)


@dataclass(frozen=True)
class PolicyRule:
    """A rule of a policy: what was asked, what was observed, and whether it suffices. What is unknown does not suffice."""

    name: str
    asked: str
    observed: str
    passed: bool

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'FAIL'}  {self.name}: asked {self.asked}, found {self.observed}"


def read_policy(path: Path) -> Policy:
    """A policy from a YAML file, from here or from the lab; LabError where it is not of its form."""
    there = next((candidate for candidate in (path, home() / path, root() / path) if candidate.is_file()), path)
    return validated(Policy, read_mapping(there), str(there))


def judged(pair: Paired, policy: Policy) -> list[PolicyRule]:
    """Every rule of the policy, judged."""
    success, (before, after) = pair.success, pair.costs
    rules: list[PolicyRule] = []

    def least(name: str, bound: float | None, value: float | None, shown: Callable[..., str] = _signed) -> None:
        if bound is not None:
            rules.append(PolicyRule(name, f">= {bound:g}", shown(value), value is not None and value >= bound))

    def most(name: str, bound: float | None, value: float, shown: Callable[..., str] = probability) -> None:
        if bound is not None:
            rules.append(PolicyRule(name, f"<= {bound:g}", shown(value), value <= bound))

    least("paired items", policy.min_paired_items, success.n, str)
    if policy.reviewed_labels:
        status = pair.candidate.run.about["suite"]["label_status"]
        rules.append(PolicyRule("labels", "reviewed", status, status == "reviewed"))
    least("candidate's success", policy.min_candidate_success, success.mean_a)
    least("success, difference", policy.min_success_delta, success.difference)
    least("success, difference, lower end", policy.min_success_delta_low, success.low)
    most("McNemar's exact p", policy.max_mcnemar_p, pair.p_mcnemar)
    most("p, worlds permuted", policy.max_permutation_p, success.p_permutation)
    ratio = after.per_success / before.per_success if before.per_success else math.nan
    most("tokens a success, candidate / baseline", policy.max_tokens_per_success_ratio, ratio, quantity)
    for name, bound in policy.metrics.items():
        least(f"{name}, difference", bound, pair.metrics[name].difference if name in pair.metrics else None)
    groups = {group.name: group for group in pair.groups}
    for name, own in policy.groups.items():
        if name not in groups:
            rules.append(PolicyRule(name, "items of this group", "none", False))
            continue
        result = groups[name].result
        least(f"{name}, items", own.min_items, result.n, str)
        least(f"{name}, candidate's success", own.min_candidate_success, result.mean_a)
        least(f"{name}, difference", own.min_success_delta, result.difference)
        most(f"{name}, p after Holm", own.max_p_holm, groups[name].p_holm)
    return rules


def _signed(value: float | None) -> str:
    return share(value, sign=True)
