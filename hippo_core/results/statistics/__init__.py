"""The statistics of the lab in one place: intervals clustered by world, paired comparisons, and the range expected of a cell."""

from hippo_core.results.statistics.interval import Interval, cluster_interval, expected_range, range_warning, ratio_interval, wilson
from hippo_core.results.statistics.paired import Comparison, compare, holm, mcnemar, mcnemar_mid, paired, permutation_test
