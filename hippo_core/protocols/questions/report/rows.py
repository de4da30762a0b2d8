"""The table of rows beside a report: its run's answers summed by setting, condition and world; its tables of scores follow from it.

It lies where the report lies, small enough to be kept with it, so that its numbers do not rest on records that are not kept. It holds no
text of any item. A line is a sum over `items` answers that agree in KEYS and in what of MEASURES was measured.
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from hippo_core.files import write_bytes
from hippo_core.protocols.questions.report.runs import Run
from hippo_core.results.frames import Frame
from hippo_core.results.policies import ABSTAINED, SCORES
from hippo_core.results.summaries import ANSWERED_BY

KEYS = ["model", "suite", "place", "setting", "split", "condition", "regime", "seed", "world", "rung", "kind", "slices", "control"]
SHARES = ["score", *SCORES, "abstained", *ABSTAINED, "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5"]  # 0 to 1 for each answer
RETRIEVAL = ["recall_2", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5", "n_shown", "retrieval_ms"]
COSTS = ["prompt_tokens", "generated_tokens", "computed_tokens", "once_tokens", "latency_ms"]
MEASURES = [*SHARES, *RETRIEVAL, "chance", *COSTS, *ANSWERED_BY]
PLAIN, PACKED = "rows.csv", "rows.csv.gz"
LARGE = 300_000  # bytes from which on it is packed


def write_rows_of(run: Run, out: Path) -> Path:
    """Write the table of a run's rows beside its report, packed where it is large; the same rows give the same bytes."""
    sums = _summed(pd.concat([run.numbers, run.validation]) if len(run.validation) else run.numbers)
    text = sums.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()
    for name in (PLAIN, PACKED):
        (out / name).unlink(missing_ok=True)
    path = out / (PACKED if len(text) > LARGE else PLAIN)
    write_bytes(path, gzip.compress(text, mtime=0) if path.name == PACKED else text)
    return path


def _summed(rows: Frame) -> Frame:
    """A line for all answers that agree in KEYS and in what was measured, in the order of the keys."""
    rows = rows.assign(control=rows.get("control", "")).reindex(columns=[*KEYS, *MEASURES])
    measured = rows[MEASURES].notna().to_numpy() @ (2 ** np.arange(len(MEASURES)))
    groups = rows.groupby([*KEYS, measured], sort=True)
    sums = groups[MEASURES].sum(min_count=1)
    sums.insert(0, "items", groups.size())
    return sums.reset_index(KEYS).reset_index(drop=True)
