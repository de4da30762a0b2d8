"""Per-sample logs of lm-evaluation-harness, as `--log_samples` writes them: `samples_TASK_DATE.jsonl`, a line a document and filter.

A line holds doc_id, doc, target, arguments, filtered_resps, filter, the names of its metrics and a value of each, and hashes of document,
prompt and target (lm_eval/evaluator.py and loggers/evaluation_tracker.py, 0.4.13). Perplexities are logged as the log-likelihood that they
are computed from, alone or with a number of words or bytes; here an item's value is what is lost a word or byte: less is better.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippo_core.files import LabError
from hippo_core.results.two_runs.logs import Log, less_is_better, lines_of, need, number, parse_json, table, text_of


def read(path: Path, cluster: str = "", task: str = "", filter_name: str = "") -> Log:
    """The log of one task and filter. An item is told by the number of its document and the hash of that, whatever the prompt was made of
    it; `cluster`: a field of `doc`."""
    path = _file(path, task)
    lines = list(lines_of(path))
    filters = list(dict.fromkeys(str(line.get("filter", "none")) for _, line in lines))
    if not filter_name and len(filters) > 1:
        raise LabError(f"{path}: answers through several filters; choose one with --filter: {', '.join(filters)}")
    chosen = filter_name or (filters[0] if filters else "")
    if lines and chosen not in filters:
        raise LabError(f"{path}: no filter {chosen!r}; there are: {', '.join(filters)}")
    rows = [_row(where, line, cluster) for where, line in lines if str(line.get("filter", "none")) == chosen]
    metrics = tuple(name for name in dict.fromkeys(key for row in rows for key in row) if name not in FIXED)
    task, made = path.stem.removeprefix("samples_").rpartition("_")[0], _results(path)
    about = {"task": task, "filter": chosen, **_about(made)}
    told = (made.get("higher_is_better") or {}).get(task) or {}
    lower = frozenset(name for name in metrics if not (told[name] if told.get(name) is not None else not less_is_better(name)))
    kind, known = "lm-evaluation-harness", table(rows, str(path))
    return Log(str(path), kind, known, metrics, about, clustered=bool(cluster), lower=lower, by_document=True)


FIXED = ("item_id", "cluster", "question", "answer", "pred", "prompt_hash")


def _file(path: Path, task: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise LabError(f"no file {path}")
    files = sorted(one for one in path.rglob("samples_*.jsonl") if one.name.startswith(f"samples_{task}"))
    latest = {one.stem.rpartition("_")[0]: one for one in files}  # of a task the last date
    if len(latest) != 1:
        names = ", ".join(name.removeprefix("samples_") for name in latest) or "none"
        raise LabError(f"{path}: expected the samples of one task, found {names}; choose one with --task")
    return next(iter(latest.values()))


def _row(where: str, line: dict[str, Any], cluster: str) -> dict[str, Any]:
    doc, names = need(line, "doc", where), need(line, "metrics", where)
    first = next(iter((line.get("arguments") or {}).values()), {}) if isinstance(line.get("arguments"), dict) else {}
    known = line.get("doc_hash") or hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest()
    item = f"{need(line, 'doc_id', where)}/{str(known)[:12]}"
    values = {name: _value(name, line.get(name)) for name in names}
    return {
        "item_id": item,
        "cluster": str(need(doc, cluster, f"{where}: doc")) if cluster else item,
        "question": text_of(first.get("arg_0", "")) if isinstance(first, dict) else "",
        "answer": text_of(line.get("target")),
        "pred": text_of(_first(line.get("filtered_resps"))),
        **{name: value for name, value in values.items() if value is not None},
    }


def _value(metric: str, logged: Any) -> float | None:
    """A metric's value of an item; of a logged log-likelihood (never above 0) or [log-likelihood, words or bytes] what is lost, in nats,
    of `bits_per_byte` in bits."""
    if not ("perplexity" in metric or metric == "bits_per_byte"):
        return number(logged)
    parts = logged if isinstance(logged, list) else [logged, 1]
    if len(parts) != 2 or (value := number(parts[0])) is None or not (size := number(parts[1])):
        return None
    lost = -value / size if isinstance(logged, list) or value <= 0 else value
    return lost / math.log(2) if metric == "bits_per_byte" and isinstance(logged, list) else lost


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _results(path: Path) -> Mapping[str, Any]:
    """The results file of the same date, where it lies beside."""
    file = path.with_name(f"results_{path.stem.rpartition('_')[2]}.json")
    return parse_json(file.read_bytes(), str(file)) if file.is_file() else {}


def _about(made: Mapping[str, Any]) -> dict[str, str]:
    """What the results say of the run."""
    config = made.get("config") or {}
    known = {
        "model": made.get("model_name") or config.get("model"),
        "model arguments": config.get("model_args"),
        "limit": config.get("limit"),
        "shots": made.get("n-shot"),
        "seed": config.get("random_seed"),
        "chat template": made.get("chat_template_sha"),
        "lm_eval": made.get("lm_eval_version"),
    }
    return {name: text_of(value) for name, value in known.items() if value is not None}
