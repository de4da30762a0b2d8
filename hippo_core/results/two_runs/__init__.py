"""Two runs, compared item by item: of this lab, of lm-evaluation-harness (`--log_samples`) or of inspect_ai (`.eval`)."""

from hippo_core.results.two_runs.comparison import BySuite, TwoRuns, compare_runs, compare_suites, open_log
from hippo_core.results.two_runs.logs import Log
from hippo_core.results.two_runs.writing import as_json, as_markdown, suites_as_json, suites_as_markdown
