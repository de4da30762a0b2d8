"""A gate: a policy that a comparison must meet, rule by rule."""

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
    there = path if path.is_file() else next((candidate for candidate in (home() / path, root() / path) if candidate.is_file()), path)
    return validated(Policy, read_mapping(there), str(there))


def judged(pair: Paired, policy: Policy) -> list[PolicyRule]:
    """Every rule of the policy, judged."""
    success, (before, after) = pair.success, pair.costs
    status = pair.candidate.run.about["suite"]["label_status"]
    rules = [PolicyRule("paired items", f">= {policy.min_paired_items}", str(success.n), success.n >= policy.min_paired_items)]
    if policy.reviewed_labels:
        rules.append(PolicyRule("labels", "reviewed", status, status == "reviewed"))
    rules += _floor("candidate's success", policy.min_candidate_success, success.mean_a)
    rules += _floor("success, difference", policy.min_success_delta, success.difference)
    rules += _floor("success, difference, lower end", policy.min_success_delta_low, success.low)
    rules += _ceiling("McNemar's exact p", policy.max_mcnemar_p, pair.p_mcnemar)
    rules += _ceiling("p, worlds permuted", policy.max_permutation_p, success.p_permutation)
    if (most := policy.max_tokens_per_success_ratio) is not None:
        ratio = after.per_success / before.per_success if before.per_success else float("nan")
        rules.append(PolicyRule("tokens a success, candidate / baseline", f"<= {most:g}", quantity(ratio), ratio <= most))
    for name, least in policy.metrics.items():
        rules += _floor(f"{name}, difference", least, pair.metrics[name].difference if name in pair.metrics else None)
    groups = {group.name: group for group in pair.groups}
    for name, own in policy.groups.items():
        if name not in groups:
            rules.append(PolicyRule(name, "items of this group", "none", False))
            continue
        result = groups[name].result
        rules.append(PolicyRule(f"{name}, items", f">= {own.min_items}", str(result.n), result.n >= own.min_items))
        rules += _floor(f"{name}, candidate's success", own.min_candidate_success, result.mean_a)
        rules += _floor(f"{name}, difference", own.min_success_delta, result.difference)
        rules += _ceiling(f"{name}, p after Holm", own.max_p_holm, groups[name].p_holm)
    return rules


def _floor(name: str, least: float | None, value: float | None) -> list[PolicyRule]:
    return [] if least is None else [PolicyRule(name, f">= {least:g}", share(value, sign=True), value is not None and value >= least)]


def _ceiling(name: str, most: float | None, value: float) -> list[PolicyRule]:
    return [] if most is None else [PolicyRule(name, f"<= {most:g}", probability(value), value <= most)]
