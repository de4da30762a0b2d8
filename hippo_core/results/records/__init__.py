"""Records: the folder that a cell leaves, how it is named, written, checked, read and compared.

A record is `executed/<run>/<preset>/<suite>/<n>_<seed>/<cell id>/` with

    config_snapshot.yaml   everything the cell was told, resolved; written before it runs
    meta.json              code, versions, checksums, seeds; written before it runs, times added after
    metrics.csv            one row an item and stage
    metrics.json           means with intervals, and what they cost
    notebook.ipynb         the executed notebook
    DONE                   last: the SHA-256 of each file above. Without it there is no record

This package needs neither torch nor pandas until rows are read.
"""

from .diff import Difference, diff
from .paths import DONE, RUNS, folders_with, record_folder, run_folder, set_aside
from .read import read_meta, read_rows, records_of
from .summary import build_metrics
from .verify import Fault, is_complete, verify
from .write import begin_record, finish_record, seal, write_rows

__all__ = [
    "DONE",
    "RUNS",
    "Difference",
    "Fault",
    "begin_record",
    "build_metrics",
    "diff",
    "finish_record",
    "folders_with",
    "is_complete",
    "read_meta",
    "read_rows",
    "record_folder",
    "records_of",
    "run_folder",
    "seal",
    "set_aside",
    "verify",
    "write_rows",
]
