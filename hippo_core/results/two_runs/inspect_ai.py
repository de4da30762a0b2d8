"""Logs of inspect_ai: an `.eval` file, a zip of `header.json` and `samples/ID_epoch_N.json`, or the same as one `.json`.

https://inspect.aisi.org.uk/eval-logs.html. A sample holds id, epoch, input, target, metadata, output and scores: of each scorer a value,
which is a number, also as text ("1"), a letter (C correct, I incorrect, P partly, N no answer; counted 1, 0, .5, 0 as inspect_ai's
value_to_float does), or several by name. An item's score is the mean over its epochs. A file that a run is still writing has no header; it
is refused.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from backports.zstd import ZstdError, zipfile  # reads what is packed by zstd, as newer logs are

from hippo_core.files import LabError
from hippo_core.results.two_runs.logs import Log, less_is_better, need, number, parse_json, table, text_of

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read(path: Path, cluster: str = "") -> Log:
    """The log of a finished evaluation; `cluster`: a key of the samples' metadata. LabError where it is damaged, unfinished, or a sample
    ended with an error."""
    if not path.is_file():
        raise LabError(f"no file {path}")
    header, samples = _zipped(path) if path.suffix == ".eval" else _plain(path)
    if (status := header.get("status")) != "success":
        raise LabError(f"{path}: the evaluation ended as {status!r}, not 'success'; compare finished ones")
    epochs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for where, sample in samples:
        if sample.get("error"):
            raise LabError(f"{where}: the sample ended with an error; run it again (inspect eval-retry)")
        epochs[str(need(sample, "id", where))].append(_row(where, sample, cluster))
    rows = [_mean(item, rows) for item, rows in epochs.items()]
    metrics = tuple(dict.fromkeys(key for row in rows for key in row if key not in FIXED))
    lower = frozenset(filter(less_is_better, metrics))
    return Log(str(path), "inspect_ai", table(rows, str(path)), metrics, _about(header), clustered=bool(cluster), lower=lower)


FIXED = ("item_id", "cluster", "question", "answer", "pred")


def _zipped(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise LabError(f"{path}: no .eval file of inspect_ai (a zip), or cut off") from None
    names = archive.namelist()
    if "header.json" not in names:
        raise LabError(f"{path}: no header.json in it; the evaluation is not finished, or this is another zip")
    last = {name: None for name in names if name.startswith("samples/") and name.endswith(".json")}  # of a name the last entry counts
    samples = ((f"{path}: {name}", _member(archive, path, name)) for name in last)
    return _member(archive, path, "header.json"), samples


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    try:
        data = archive.read(name)
    except (zipfile.BadZipFile, zlib.error, ZstdError) as error:
        raise LabError(f"{path}: {name} is damaged: {error}") from None
    return _object(parse_json(data, f"{path}: {name}"), f"{path}: {name}")


def _plain(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    log = _object(parse_json(path.read_bytes(), str(path)), str(path))
    need(log, "eval", f"{path} (a log of inspect_ai)")
    samples = enumerate(log.get("samples") or [])
    return log, ((f"{path}: sample {place}", _object(sample, f"{path}: sample {place}")) for place, sample in samples)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LabError(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _row(where: str, sample: dict[str, Any], cluster: str) -> dict[str, Any]:
    item = str(sample["id"])
    scores = _object(sample.get("scores") or {}, f"{where}: scores")
    answers = [text_of(score.get("answer")) for score in scores.values() if isinstance(score, dict) and score.get("answer")]
    return {
        "item_id": item,
        "cluster": str(need(sample.get("metadata") or {}, cluster, f"{where}: metadata")) if cluster else item,
        "question": _input(sample.get("input")),
        "answer": text_of(sample.get("target")),
        "pred": answers[0] if answers else text_of((sample.get("output") or {}).get("completion")),
        **{name: value for scorer, score in scores.items() for name, value in _values(scorer, score)},
    }


def _values(scorer: str, score: Any) -> Iterator[tuple[str, float]]:
    value = score.get("value") if isinstance(score, dict) else score
    parts = {f"{scorer}/{name}": part for name, part in value.items()} if isinstance(value, dict) else {scorer: value}
    for name, part in parts.items():
        known = _of_text(part) if isinstance(part, str) else number(part)
        if known is not None:
            yield name, known


def _of_text(value: str) -> float | None:
    """What a letter, a word or a number as text counts; None for any other text."""
    if (known := LETTERS.get(value, WORDS.get(value.lower()))) is not None:
        return known
    try:
        written = float(value)
    except ValueError:
        return None
    return written if math.isfinite(written) else None


def _input(value: Any) -> str:
    """The question: text, or what the messages of a chat say."""
    if isinstance(value, list):
        return "\n".join(text_of(message.get("content")) for message in value if isinstance(message, dict))
    return text_of(value)


def _mean(item: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of an item's epochs: the text of the first, the mean of each metric."""
    metrics = dict.fromkeys(key for row in rows for key in row if key not in FIXED)
    return {**{name: rows[0][name] for name in FIXED}, **{name: fmean(row[name] for row in rows if name in row) for name in metrics}}


def _about(header: dict[str, Any]) -> dict[str, str]:
    made = header.get("eval") or {}
    config = made.get("config") or {}
    known = {
        "task": made.get("task"),
        "model": made.get("model"),
        "model arguments": made.get("model_args") or None,
        "task arguments": made.get("task_args") or None,
        "data set": (made.get("dataset") or {}).get("name"),
        "limit": config.get("limit"),
        "epochs": config.get("epochs"),
        "commit": (made.get("revision") or {}).get("commit"),
    }
    return {name: text_of(value) for name, value in known.items() if value is not None}
