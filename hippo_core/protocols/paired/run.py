"""Ask the suite of a cell; the record gets the run itself (`run.json`, `results.jsonl`), which `hippo paired` reads."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from hippo_core.protocols.paired.conditions import COLUMNS
from hippo_core.protocols.paired.run_files import write_into
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.protocols.paired.suite_run import run

DRY = 8  # items of a dry run


def evaluate(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """The rows of all conditions, in the order in which they were asked."""
    parameters = cell.parameters
    suite = read_suite(parameters.suite)
    settings = RunSettings(
        conditions=tuple(parameters.conditions),
        memory=parameters.memory,
        profile=parameters.profile,
        answer_mode=parameters.answer_mode,
        encoder=parameters.encoder,
        repeats=parameters.repeats or suite.manifest.default_repeats,
        seed=parameters.seed,
        limit=min(parameters.n or DRY, DRY) if parameters.dry_run else parameters.n,
    )
    rows = run(suite, settings, cell.language_model, say=say)
    write_into(cell.record, suite, settings, rows, {"model": parameters.model})
    return pd.DataFrame(rows, columns=list(COLUMNS))
