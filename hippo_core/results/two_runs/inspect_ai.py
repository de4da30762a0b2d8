"""Logs of inspect_ai: an `.eval` file, a zip of `header.json` and `samples/ID_epoch_N.json`.

https://inspect.aisi.org.uk/eval-logs.html. A sample holds id, epoch, input, target, metadata, output and scores: of each scorer a value,
which is a number, also as text ("1"), a letter (C correct, I incorrect, P partly, N no answer; counted 1, 0, .5, 0 as inspect_ai's
value_to_float does), or several by name. An item's score is the mean over those of its epochs that have one, which the log's notes say. A
file that a run is still writing has no header; it is refused.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from backports.zstd import ZstdError, zipfile  # reads what is packed by zstd, as newer logs are

from hippo_core.errors import LabError
from hippo_core.results.two_runs import logs
from hippo_core.results.two_runs.logs import Log, id_of, need, part, text_of

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read(path: Path, cluster: str = "") -> Log:
    """The log of a finished evaluation; `cluster`: a key of the samples' metadata. LabError where it is damaged, unfinished, or a sample
    ended with an error."""
    if not path.is_file():
        raise LabError(f"no file {path}")
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise LabError(f"{path}: no .eval file of inspect_ai (a zip), or cut off") from None
    if "header.json" not in archive.namelist():
        raise LabError(f"{path}: no header.json in it; the evaluation is not finished, or this is another zip")
    header = _member(archive, path, archive.getinfo("header.json"))
    if (status := header.get("status")) != "success":
        raise LabError(f"{path}: the evaluation ended as {status!r}, not 'success'; compare finished ones")
    by_item: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)  # and epoch
    for where, sample in _samples(archive, path):
        row, epoch = _row(where, sample, cluster), id_of(sample.get("epoch", 1))
        epochs = by_item[row["item_id"]]
        if epoch in epochs:
            raise LabError(f"{where}: the item {row['item_id']} stands there twice in epoch {epoch}; expected each once: mend the log")
        first = next(iter(epochs.values()), row)
        for name in ("question", "answer"):
            if first[name] != row[name]:
                raise LabError(f"{where}: the item {row['item_id']} has another {name} than in its first epoch; ids must differ")
        epochs[epoch] = row
    items = [list(epochs.values()) for epochs in by_item.values()]
    metrics = _metrics(header, str(path), [row["scores"] for epochs in items for row in epochs])
    rows = logs.table([_mean(epochs, metrics) for epochs in items], str(path))
    lower, notes = frozenset(filter(logs.less_is_better, metrics)), tuple(_notes(items, metrics))
    return Log(str(path), "inspect_ai", rows, metrics, _about(header, str(path)), clustered=bool(cluster), lower=lower, notes=notes)


def _samples(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each sample stands, and the sample: the last entry of one that was logged again."""
    by_name: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
    for entry in archive.infolist():
        if entry.filename.startswith("samples/") and entry.filename.endswith(".json"):
            by_name[entry.filename].append(entry)
    for name, several in by_name.items():
        versions = [_member(archive, path, entry) for entry in several]
        if len(ids := dict.fromkeys(id_of(sample.get("id")) for sample in versions)) > 1:  # as 0 and "0", which share a name
            raise LabError(f"{path}: {name} holds two items, {' and '.join(ids)}; ids must differ as text")
        if versions[-1].get("error"):
            raise LabError(f"{path}: {name}: the sample ended with an error; run it again (inspect eval-retry)")
        yield f"{path}: {name}", versions[-1]


def _member(archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo) -> dict[str, Any]:
    where = f"{path}: {entry.filename}"
    try:
        data = archive.read(entry)
    except (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, NotImplementedError, RuntimeError) as error:  # the last two: encrypted
        raise LabError(f"{where} is damaged: {error}") from None
    return logs.parse_json(data, where)


def _row(where: str, sample: dict[str, Any], cluster: str) -> dict[str, Any]:
    item, scores = id_of(need(sample, "id", where)), part(sample, "scores", where)
    answers = [text_of(score.get("answer")) for score in scores.values() if isinstance(score, dict) and score.get("answer")]
    asked = sample.get("input")
    if isinstance(asked, list):  # the messages of a chat
        asked = "\n".join(text_of(message.get("content")) for message in asked if isinstance(message, dict))
    return {
        "item_id": item,
        "cluster": str(need(part(sample, "metadata", where), cluster, f"{where}: metadata")) if cluster else item,
        "question": text_of(asked),
        "answer": text_of(sample.get("target")),
        "pred": answers[0] if answers else text_of(part(sample, "output", where).get("completion")),
        "scores": {name: value for scorer, score in scores.items() for name, value in _values(where, scorer, score)},
    }


def _values(where: str, scorer: str, score: Any) -> Iterator[tuple[str, float | None]]:
    """Each metric of a sample that a scorer gives, None where it has no value."""
    value = score.get("value") if isinstance(score, dict) else score
    by_name = {f"{scorer}/{name}": own_value for name, own_value in value.items()} if isinstance(value, dict) else {scorer: value}
    for name, own_value in by_name.items():
        yield logs.metric_name(name), _of_text(own_value) if isinstance(own_value, str) else logs.number(own_value, f"{where}: {name}")


def _of_text(value: str) -> float | None:
    """What a letter, a word or a number as text counts; None for any other text."""
    if (known := LETTERS.get(value, WORDS.get(value.lower()))) is not None:
        return known
    try:
        written = float(value)
    except ValueError:
        return None
    return written if math.isfinite(written) else None


def _metrics(header: dict[str, Any], where: str, scores: list[dict[str, float | None]]) -> tuple[str, ...]:
    """All metrics, in the order in which the header names their scorers. A scorer that gives several by name is no metric itself."""
    scorers = [*logs.entries(part(header, "eval", where), "scorers"), *logs.entries(part(header, "results", where), "scores")]
    order = list(dict.fromkeys(logs.metric_name(str(scorer.get("scorer") or scorer.get("name"))) for scorer in scorers))
    every = logs.in_order([list(row) for row in scores])
    known = {name for row in scores for name, value in row.items() if value is not None}
    kept = [name for name in every if name in known or not any(other.startswith(f"{name}/") for other in every)]

    def position(metric: str) -> int:
        scorer = metric if metric in order else metric.rpartition("/")[0]
        return order.index(scorer) if scorer in order else len(order)

    return tuple(sorted(kept, key=position))


def _mean(rows: list[dict[str, Any]], metrics: tuple[str, ...]) -> dict[str, Any]:
    """One row of an item's epochs: the text of the first, the mean of each metric over those that have it."""
    known = {name: [row["scores"][name] for row in rows if row["scores"].get(name) is not None] for name in metrics}
    first = {name: value for name, value in rows[0].items() if name != "scores"}
    return first | {name: fmean(values) if values else None for name, values in known.items()}


def _notes(items: list[list[dict[str, Any]]], metrics: tuple[str, ...]) -> Iterator[str]:
    """What was averaged, and over how many."""
    counts = [len(epochs) for epochs in items]
    if (most := max(counts, default=1)) > 1:
        yield f"Each item's score is the mean over its epochs, {most} at most; {sum(count < most for count in counts):,} items have fewer."
    for name in metrics:
        have = [sum(row["scores"].get(name) is not None for row in epochs) for epochs in items]
        if some := sum(0 < known < count for known, count in zip(have, counts, strict=True)):
            yield f"{some:,} items have no {name} in some epoch; they are averaged over those that have one."


def _about(header: dict[str, Any], where: str) -> dict[str, str]:
    made = part(header, "eval", where)
    config = part(made, "config", where)
    known = {"task": made.get("task"), "model": made.get("model"), "model arguments": made.get("model_args") or None}
    known |= {"task arguments": made.get("task_args") or None, "data set": part(made, "dataset", where).get("name")}
    known |= {"limit": config.get("limit"), "epochs": config.get("epochs"), "commit": part(made, "revision", where).get("commit")}
    return logs.texts(known)
