"""Every interval of a verdict and of the paired comparisons is one of 95% over whole worlds: what statsmodels finds.

Where the highest of several stands for a side and that helps the claim, the level is Bonferroni's.
"""

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.linear_model import WLS

from hippo_core.results import summaries
from hippo_core.results.statistics.paired import compare
from tests.results.invented import RAGS, cell, verdict

WORLDS, PER_WORLD = 40, 5
BOTH = {"a": "memory/hei_nw", "b": "baselines/core"}


def drawn(preset, seed, level, **columns):
    """A cell whose worlds differ much more than the items of a world, with a tenth of the items not scored."""
    random = np.random.default_rng(seed)
    values = np.repeat(random.beta(3, 3, WORLDS), PER_WORLD) * level + random.random(WORLDS * PER_WORLD) * 0.1
    values[random.random(len(values)) < 0.1] = np.nan
    return cell(preset, 0.5, n=WORLDS * PER_WORLD, **columns).assign(score=values, took=10 * values)


MEMORY, CORE = drawn("memory/hei_nw", 1, 0.8), drawn("baselines/core", 2, 0.4)


def limits(above, below, worlds, level):
    """Those of sum(above) / sum(below) by statsmodels: a weighted mean with a covariance clustered by world and Student's t."""
    groups = np.unique(worlds, return_inverse=True)[1]
    fit = WLS(above / below, np.ones(len(above)), weights=below).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    return fit.conf_int(1 - level)[0]


def assert_level(result, above, below, worlds, level=0.95, lower=0.90):
    """The ends are those of the level and not those of a lower one."""
    known = ~(np.isnan(above) | np.isnan(below))
    above, below, worlds = above[known], below[known], worlds[known]
    assert (result.low, result.high) == pytest.approx(limits(above, below, worlds, level), abs=1e-9)
    assert (result.low, result.high) != pytest.approx(limits(above, below, worlds, lower), abs=1e-3)


def of(rows, column="score"):
    return rows[column].to_numpy(float)


def counted(values):
    """One an item: the mean is a ratio with it below."""
    return np.ones(len(values))


def test_a_difference():
    values = of(MEMORY) - of(CORE)
    fields = {"difference": BOTH, "at_least": 0.1}
    for result in (verdict(fields, MEMORY, CORE), compare(MEMORY, CORE)):
        assert_level(result, values, counted(values), MEMORY["world"].to_numpy())


def test_the_paired_comparisons_of_a_report():
    rows = summaries.labelled(pd.concat([MEMORY, CORE], ignore_index=True).assign(question="?"))
    result = summaries.pair(rows, ("memory/hei_nw", "delayed"), ("baselines/core", "delayed"))
    values = of(MEMORY) - of(CORE)
    assert_level(result, values, counted(values), MEMORY["world"].to_numpy())


@pytest.mark.parametrize(("rule", "above"), [({"at_least": 0.2}, 0.0), ({"at_most": 0.9}, 0.0), ({"at_most_chance_plus": 0.9}, 0.1)])
def test_a_value(rule, above):
    values = of(MEMORY) - above
    assert_level(verdict({"value": {"of": "memory/hei_nw"}} | rule, MEMORY), values, counted(values), MEMORY["world"].to_numpy())


def test_a_ratio():
    fields = {"ratio": BOTH | {"metric": "took"}, "at_most": 3}
    assert_level(verdict(fields, MEMORY, CORE), of(MEMORY, "took"), of(CORE, "took"), MEMORY["world"].to_numpy())


def test_the_share_of_items_that_are_the_same():
    random = np.random.default_rng(3)
    equal = np.repeat(random.random(WORLDS), PER_WORLD) > random.random(WORLDS * PER_WORLD)
    other = CORE.assign(answered=0.0)
    fields = {"difference": BOTH | {"metric": "answered"}, "same": True}
    result = verdict(fields, MEMORY.assign(answered=1.0 - equal), other)
    assert_level(result, equal.astype(float), counted(equal), CORE["world"].to_numpy())


def test_the_best_of_three_that_is_claimed_has_an_interval_as_much_wider():
    rags = [drawn(name, 5, level) for name, level in zip(RAGS, (0.3, 0.5, 0.4), strict=True)]
    result = verdict({"difference": {"a": "best_rag", "b": "baselines/core"}, "not_below": -0.5}, *rags, CORE)
    values = of(rags[1]) - of(CORE)
    assert_level(result, values, counted(values), CORE["world"].to_numpy(), 1 - 0.05 / 3, lower=0.95)


def test_a_score_in_a_table():
    [result] = summaries.estimate(MEMORY, ["preset"]).itertuples()
    assert_level(result, of(MEMORY), counted(MEMORY), MEMORY["world"].to_numpy())
