"""The report of a run: one HTML page, markdown beside it, and a page of items behind every number."""

from hippo_core.results.report.writing import Group, write_report
