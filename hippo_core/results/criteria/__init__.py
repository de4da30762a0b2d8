"""The success criteria of the evaluation plan: their form, the rows that speak for each, the verdicts."""

from hippo_core.results.criteria.judging import (
    VERDICTS,
    Criteria,
    Verdict,
    counted,
    judge,
    judge_tables,
    load_criteria,
    read_criteria,
    read_invalid,
    tally,
    write_criteria,
)
from hippo_core.results.criteria.tables import TableRows
