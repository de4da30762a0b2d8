"""Per-sample logs of lm-evaluation-harness, as `--log_samples` writes them: `samples_TASK_DATE.jsonl`, a line a document and filter.

A line holds doc_id, doc, target, arguments, filtered_resps, filter, the names of its metrics and a value of each, and hashes of document,
prompt and target (lm_eval/evaluator.py and loggers/evaluation_tracker.py, 0.4.13). Perplexities are logged as the log-likelihood that they
are computed from, alone or with a number of words or bytes; here an item's value is what is lost a word or byte: less is better.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.results.two_runs import logs
from hippo_core.results.two_runs.logs import Log, need, part, text_of

NAME = re.compile(r"samples_(?P<task>.*?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl")


def read(path: Path, cluster: str = "", task: str = "", filter_name: str = "") -> Log:
    """The log of one task and filter. An item is told by the number of its document and the hash of that, whatever the prompt was made of
    it; `cluster`: a field of `doc`."""
    path, notes = _file(path, task)
    with path.open("rb") as file:
        numbered = [(f"{path}, line {number}", line) for number, line in enumerate(file, start=1) if line.strip()]
    lines = [(where, logs.parse_json(line, where)) for where, line in numbered]
    filters = list(dict.fromkeys(str(line.get("filter", "none")) for _, line in lines))
    if not filter_name and len(filters) > 1:
        raise LabError(f"{path}: answers through several filters; choose one with --filter: {', '.join(filters)}")
    chosen = filter_name or (filters[0] if filters else "")
    if lines and chosen not in filters:
        raise LabError(f"{path}: no filter {chosen!r}; there are: {', '.join(filters)}")
    lines = [(where, line) for where, line in lines if str(line.get("filter", "none")) == chosen]
    (task, _), results, where = _named(path), _results(path), f"results of {path}"
    configured = logs.entries(part(part(results, "configs", where), task, where), "metric_list")
    logged = logs.in_order(
        [_metrics(where, line) for where, line in lines], [str(entry["metric"]) for entry in configured if "metric" in entry]
    )
    rows = logs.table([_row(where, line, cluster, logged) for where, line in lines], str(path))
    higher = part(part(results, "higher_is_better", where), task, where)
    less = (name for name in logged if not (higher[name] if higher.get(name) is not None else not logs.less_is_better(name)))
    metrics, lower = tuple(map(logs.metric_name, logged)), frozenset(map(logs.metric_name, less))
    about = {"task": task, "filter": chosen, **_about(results, where)}
    kind = "lm-evaluation-harness"
    return Log(str(path), kind, rows, metrics, about, clustered=bool(cluster), lower=lower, by_document=True, notes=notes)


def _file(path: Path, task: str) -> tuple[Path, tuple[str, ...]]:
    """The newest log of one task of one model, and a note where others were older. LabError names the choices where there are several."""
    if path.is_file():
        return path, ()
    if not path.is_dir():
        raise LabError(f"no file {path}")
    paths = sorted(path.rglob("samples_*.jsonl"))
    tasks = sorted({_named(file)[0] for file in paths})
    if len(tasks) != 1 and task not in tasks:
        raise LabError(f"{path}: expected the samples of one task, found {', '.join(tasks) or 'none'}; choose one with --task")
    if task and task not in tasks:
        raise LabError(f"{path}: no samples of the task {task!r}; there are: {', '.join(tasks)}")
    files = [file for file in paths if _named(file)[0] == (task or tasks[0])]
    models = sorted({f"{file.parent} ({_model(file)})" for file in files})
    if len(models) != 1:
        raise LabError(f"{path}: holds logs of several models or runs: {', '.join(models)}; name one folder or one file")
    *older, newest = sorted(files, key=lambda file: _named(file)[1])
    return newest, (f"{newest.name} is the newest of {len(files)} logs of its task; the older are not read.",) if older else ()


def _model(path: Path) -> str:
    """Which model answered, and how it was asked: one model's adapters, shots and chat templates are runs of their own."""
    about = _about(_results(path), str(path))
    known = [f"{name} {about[name]}" for name in ("model arguments", "shots", "chat template") if name in about]
    return ", ".join([about.get("model", "model unknown"), *known])


def _named(path: Path) -> tuple[str, str]:
    """The task and the date of a log, from its name."""
    match = NAME.fullmatch(path.name)
    return (match["task"], match["date"] or "") if match else (path.stem, "")


def _results(path: Path) -> Mapping[str, Any]:
    """The results file of the same date, where it lies beside."""
    file = path.with_name(f"results_{_named(path)[1]}.json")
    return logs.parse_json(file.read_bytes(), str(file)) if file.is_file() else {}


def _about(results: Mapping[str, Any], where: str) -> dict[str, str]:
    config = part(results, "config", where)
    known = {"model": results.get("model_name") or config.get("model"), "model arguments": config.get("model_args")}
    known |= {"limit": config.get("limit"), "shots": results.get("n-shot"), "seed": config.get("random_seed")}
    return logs.texts(known | {"chat template": results.get("chat_template_sha"), "lm_eval": results.get("lm_eval_version")})


def _metrics(where: str, line: dict[str, Any]) -> list[str]:
    need(line, "doc", where)  # which a line of another kind lacks first
    names = need(line, "metrics", where)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise LabError(f"{where}: metrics: expected a list of names, found {text_of(names):.60}")
    return names


def _row(where: str, line: dict[str, Any], cluster: str, metrics: tuple[str, ...]) -> dict[str, Any]:
    doc, arguments, responses = line["doc"], line.get("arguments"), line.get("filtered_resps")
    request = next(iter(arguments.values()), {}) if isinstance(arguments, dict) else {}
    doc_hash = line.get("doc_hash") or hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest()
    item = f"{logs.id_of(need(line, 'doc_id', where))}/{str(doc_hash)[:12]}"
    return {
        "item_id": item,
        "cluster": str(need(doc, cluster, f"{where}: doc")) if cluster else item,
        "question": text_of(request.get("arg_0", "")) if isinstance(request, dict) else "",
        "answer": text_of(line.get("target")),
        "pred": text_of(responses[0] if isinstance(responses, list) and len(responses) == 1 else responses),
        **{logs.metric_name(name): _value(name, line.get(name), f"{where}: {name}") for name in metrics},
    }


def _value(metric: str, logged: Any, where: str) -> float | None:
    """A metric's value of an item; of a log-likelihood, or [log-likelihood, words or bytes], what is lost in nats or bits."""
    if not ("perplexity" in metric or metric == "bits_per_byte"):
        return logs.number(logged, where)
    parts = logged if isinstance(logged, list) else [logged, 1]
    if len(parts) != 2 or (value := logs.number(parts[0], where)) is None or not (size := logs.number(parts[1], where)):
        return None
    lost = -value / size if isinstance(logged, list) or value <= 0 else value
    return lost / math.log(2) if metric == "bits_per_byte" and isinstance(logged, list) else lost
