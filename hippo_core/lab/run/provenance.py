"""What a record says of its origin, written before the cell runs: configuration, commit, versions, checksums."""

from typing import Any

from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.cells import Cell
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.results.records.origin import git_sha, versions
from hippo_core.results.records.table import Table


def describe_run(cell: Cell, parameters: Parameters, table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of `config_snapshot.yaml` and of `meta.json`."""
    config = {"parameters": parameters.values(), **(cell.plan.config if cell.plan else {})}
    meta = {
        "git_sha": git_sha(),
        "config_hash": fingerprints.digest(config),
        "cell": cell.id,
        "phase": cell.phase,
        "experiment": cell.experiment,
        "step": table.step,
        "table": table.described(),
        "parameters": parameters.model_dump(exclude={"record_dir"}),
        "needs": cell.needs,
        "threads": parameters.threads,
        "versions": versions(),
        "checksums": {"notebook": fingerprints.notebook(cell.notebook), **cell.checksums},
    }
    return config, meta
