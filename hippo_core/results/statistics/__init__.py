"""The statistics of the lab in one place: intervals clustered by world, paired comparisons, and the range expected of a cell."""

from hippo_core.results.statistics.expected import expected_range, range_warning
from hippo_core.results.statistics.interval import Interval, cluster_interval, ratio_interval, wilson
from hippo_core.results.statistics.paired import Comparison, compare, holm, mcnemar, paired, permutation_test

__all__ = [
    "Comparison",
    "Interval",
    "cluster_interval",
    "compare",
    "expected_range",
    "holm",
    "mcnemar",
    "paired",
    "permutation_test",
    "range_warning",
    "ratio_interval",
    "wilson",
]
