"""The report of a run: one HTML page, markdown beside it, and whatever pages its experiments have of their own."""

from hippo_core.results.report.writing import ExperimentGroup, PageBlock, PagePart, Pages, write_report
