"""Records: the folder that a cell leaves, how it is named, written, checked, read and compared.

A record is `executed/<run>/<preset>/<suite>/<n>_<seed>/<cell id>/` with

    config_snapshot.yaml   everything the cell was told, resolved; written before it runs
    meta.json              code, versions, checksums, seeds; written before it runs, times added after
    metrics.csv            one row an item and stage; teach.csv, one a told fact; replay.csv, one a replayed trace and cycle
    metrics.json           means with intervals, and what they cost; of a cell that teaches or replays, its telemetry
    drawings.json          of a memory's test: how it came to one answer, as SVG
    store/                 what a cell that teaches or replays leaves to others: `<algorithm>/<session>/...`
    notebook.ipynb         the executed notebook
    DONE                   last: the SHA-256 of each file above. Without it there is no record

This package needs neither torch nor pandas until rows are read.
"""

from hippo_core.results.records.diff import diff
from hippo_core.results.records.paths import DONE, RUNS, clear_record, folders_with, run_folder, run_names, set_aside, suite_folder
from hippo_core.results.records.read import (
    as_of_now,
    damaged,
    key_of,
    key_of_record,
    origins_of,
    read_meta,
    read_metrics,
    read_rows,
    read_table,
    records_of,
    records_with,
    rows_of,
)
from hippo_core.results.records.sealed import is_complete, seal, verify
from hippo_core.results.records.table import Table
from hippo_core.results.records.write import begin_record, finish_record, write_rows
