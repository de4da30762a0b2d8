"""The report of a run, with what each of its experiments says of its tables."""

from pathlib import Path

from hippo_core.experiments.base import load_experiment
from hippo_core.results.criteria import TableRows
from hippo_core.results.records import read_meta, read_table, records_with
from hippo_core.results.report import Group
from hippo_core.results.report import write_report as write


def write_report(run: Path, out: Path) -> Path:
    """Write the report of a run's records to `out`; the path of its page. LabError where there is nothing to report."""
    return write(run, out, groups(run))


def groups(run: Path) -> list[Group]:
    """The tables of each experiment in a run whose rows are not answers to questions, and its sections."""
    names = dict.fromkeys(read_meta(record)["experiment"] for record in records_with(run, dry_run=True))
    experiments = [load_experiment(name) for name in sorted(names)]
    return [Group(one.name, tables := _tables(run, one.name), tuple(one.sections(tables))) for one in experiments if one.sections]


def _tables(run: Path, name: str) -> list[TableRows]:
    experiment, tables = load_experiment(name), []
    for table in experiment.tables:
        if records_with(run, True, name, table.step):
            rows = read_table(run, name, table.step, dry_run=True)
            tables.append(TableRows(name, table.step, table.unit, table.cluster, rows, table.measures))
    return tables
