"""The report of a run, with what each of its experiments brings: sections of its tables, or pages of its own."""

import shlex
from collections.abc import Collection
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import COMMAND
from hippo_core.protocols.base.experiment import Experiment, load_experiment, names_of_ours
from hippo_core.results.criteria import TableRows
from hippo_core.results.records import as_of_now, read_meta, read_table, records_with
from hippo_core.results.report import ExperimentGroup
from hippo_core.results.report import write_report as write

WITHIN = ("model", "seed", "suite", "n", "steps")  # parameters that tell rows of one unit apart


def write_report(run: Path, out: Path, own: Collection[str] = ()) -> Path:
    """Write the report of a run's records to `out`; the path of its page.

    Args:
        own: module paths of experiments of one's own. A record names its experiment, but only those named here are imported.

    Raises:
        LabError: there is nothing to report, or a record names an experiment that `own` does not.
    """
    with as_of_now(run):
        names = sorted({str(read_meta(record)["experiment"]) for record in records_with(run, dry_run=True)})
        if strange := sorted(set(names) - set(names_of_ours()) - set(own)):
            flags = " ".join(f"--allow-import {shlex.quote(name)}" for name in strange)
            raise LabError(
                f"records of {run.name} name experiments that the lab does not ship: {', '.join(strange)}; to import this code, having "
                f"read it: {COMMAND} report {run.name} {flags}"
            )
        experiments = [load_experiment(name) for name in names]
        pages = dict.fromkeys(page for experiment in experiments for page in experiment.pages)  # experiments may share them
        return write(run, out, [group(run, experiment) for experiment in experiments if not experiment.pages], list(pages))


def group(run: Path, experiment: Experiment) -> ExperimentGroup:
    """The tables and sections of an experiment in a run."""
    name, tables = experiment.name, []
    within = tuple(field for field in WITHIN if field in experiment.parameters.model_fields)
    for table in experiment.tables:
        if records_with(run, True, name, table.step):
            rows = read_table(run, name, table.step, dry_run=True)
            tables.append(TableRows(name, table.step, table.unit, table.cluster, rows, table.measures, within))
    return ExperimentGroup(name, tables, tuple(experiment.sections(tables)))
