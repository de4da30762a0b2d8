"""What a report shows of experiments that ask questions about suites: scores, claims and figures by setting, and a page of items behind
every number."""

from hippo_core.protocols.questions.report.writing import write_pages
