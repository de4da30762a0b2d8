"""Which format a path holds, and its log."""

from pathlib import Path

from hippo_core.errors import LabError, shortened
from hippo_core.files import root
from hippo_core.results.records import records_of, records_with
from hippo_core.results.two_runs import inspect_ai, lab, lm_eval, tables
from hippo_core.results.two_runs.logs import Log


def open_log(source: str, cluster: str = "", task: str = "", filter_name: str = "", split: str = "", suite: str = "") -> Log:
    """The log at `source`: a run or a record of this lab (`RUN`, or `RUN:PRESET` where it holds several conditions), a `samples_*.jsonl` or
    the folder that holds it, a `.eval` or `.json` of inspect_ai. `cluster`: the field that says which items belong together; `task` and
    `filter_name` choose one of several; `split` (test unless given) and `suite` are of runs of this lab. LabError says what is wrong."""
    path = Path(source)
    try:
        ours = not (path.suffix in (".eval", ".json", ".jsonl") or (path.is_dir() and any(path.rglob("samples_*.jsonl"))))
        if (split or suite) and not ours:
            raise LabError(f"{source}: --split and --suite choose from runs of this lab; this is a log of another program")
        if path.suffix in (".eval", ".json"):
            return inspect_ai.read(path, cluster)
        if not ours:
            return lm_eval.read(path, cluster, task, filter_name)
        run, _, condition = source.partition(":")
        for folder in (Path(run), root() / "executed" / run):
            if folder.is_dir() and records_with(folder) and not records_of(folder, split=None):
                return tables.read(folder, condition)
            if folder.is_dir():
                return lab.read(folder, condition, cluster, split or "test", suite)
    except RecursionError:
        raise LabError(f"{source}: holds a value that is nested too deep; no log of this kind has one") from None
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise LabError(f"{shortened(source)} cannot be read: {error.strerror}; name a run or a log") from None
    raise LabError(
        f"no run at {source}: expected a run of this lab (its name below executed/, or a folder; RUN:PRESET where it holds several), "
        "samples_*.jsonl of lm-evaluation-harness (--log_samples) or the folder that holds them, or an .eval or .json file of inspect_ai"
    )
