"""The success criteria of the evaluation plan: their form, the rows that speak for each, the verdicts."""

from hippo_core.results.criteria.criterion import Criteria, load_criteria
from hippo_core.results.criteria.judging import Verdict, judge, judge_tables, read_criteria, write_criteria
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.verdicts import VERDICTS
