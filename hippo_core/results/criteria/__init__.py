"""The success criteria of the evaluation plan: their form, the rows that speak for each, the verdicts."""

from hippo_core.results.criteria.judging import Criteria, Verdict, judge, load_criteria, write_criteria
