"""Reading records: one frame of rows over all records of a run. The files are the only copy; nothing is kept but within `as_of_now`."""

import io
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.files import COMMAND, LabError, parse_yaml, read_yaml
from hippo_core.results.records.paths import record_folders

if TYPE_CHECKING:
    import pandas as pd

ITEM = "item_id"  # the unit of rows that are answers to questions
KEYS = (
    *("run_id", "suite", "preset", "model", "profile", "n", "seed", "split", "regime", "step", "dry_run", "overrides"),
    *("encoder", "control", "preset_overrides", "suite_overrides", "cell", "record"),
)


Metas = dict[Path, dict[str, Any]]
_NOW: ContextVar[tuple[Path | None, Metas]] = ContextVar("_NOW", default=(None, {}))


@contextmanager
def as_of_now(run: Path) -> Iterator[None]:
    """Within it, the finished records of a run are those of its beginning, and each `meta.json` is read once: a report of ten thousand
    goes through them nine times, and a cell that ends meanwhile is in none of its tables. What is read is not to be changed."""
    token = _NOW.set((run, {record: read_meta(record) for record in record_folders(run)}))
    try:
        yield
    finally:
        _NOW.reset(token)


def read_meta(record: Path) -> dict[str, Any]:
    """The `meta.json` of a record."""
    known = _NOW.get()[1].get(record)
    return _meta_of(record) if known is None else known


def _meta_of(record: Path) -> dict[str, Any]:
    try:
        return json.loads((record / "meta.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"{record} is no record: it has no meta.json") from None
    except json.JSONDecodeError:
        raise LabError(f"{record / 'meta.json'} is damaged: not valid JSON") from None


def read_metrics(record: Path) -> dict[str, Any]:
    """The `metrics.json` of a record."""
    return json.loads((record / "metrics.json").read_text(encoding="utf-8"))


def read_resolved(record: Path) -> dict[str, Any]:
    """The sections `preset` and `suite` of the `config_snapshot.yaml` of a record: what its parameters stood for."""
    return read_yaml(record / "config_snapshot.yaml", _last_sections) or {}


def _last_sections(text: str) -> Any:
    """The sections of a config snapshot from `preset` on: in the order of the alphabet, so that what differs between seeds comes before."""
    return _parsed(text[text.find("\npreset:") + 1 :])


_parsed = lru_cache(maxsize=1000)(parse_yaml)  # of many records few differ


def records_of(run: Path, split: str | None = "test", dry_run: bool = False) -> list[Path]:
    """The finished records of a run whose rows are items, by path: of one split (None: of all), without dry runs unless asked for."""
    return list(origins_of(run, split, dry_run))


def records_with(run: Path, dry_run: bool = False, experiment: str = "", step: str = "") -> list[Path]:
    """The finished records of a run with rows, sorted by path: of an experiment, or of a step, where it is named; without dry runs unless
    asked for."""

    return list(_metas_with(run, dry_run, experiment, step))


def origins_of(run: Path, split: str | None = "test", dry_run: bool = False) -> dict[Path, dict[str, Any]]:
    """The same records as `records_of`, each with its `meta.json`."""

    def wanted(meta: dict[str, Any]) -> bool:
        return meta["table"]["unit"] == ITEM and (split is None or meta["parameters"].get("split", "test") == split)

    return {record: meta for record, meta in _metas_with(run, dry_run).items() if wanted(meta)}


def _metas_with(run: Path, dry_run: bool, experiment: str = "", step: str = "") -> dict[Path, dict[str, Any]]:
    def wanted(meta: dict[str, Any]) -> bool:
        fits = experiment in ("", meta.get("experiment")) and step in ("", meta.get("step"))
        return "table" in meta and fits and (dry_run or not meta["parameters"].get("dry_run", False))

    of, metas = _NOW.get()
    records = metas if of == run else record_folders(run)
    return {record: meta for record in records if wanted(meta := read_meta(record))}


def read_rows(run: Path, split: str | None = "test", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of a run's finished records whose rows are items, with the columns `KEYS` that say which cell each comes from.

    `cell` is its id, `record` the path of its folder below the run, `encoder` whose vectors the preset compares, `control` what stands in
    the place of what it retrieves (each empty for none); the other overrides stand apart in `preset_overrides` and `suite_overrides`,
    joined by ";". Text is text, all else is a number (NaN where not measured).
    """
    origins = origins_of(run, split, dry_run)
    if not origins:
        raise LabError(f"no finished record with rows at {run}; run a grid first: make grid")
    return rows_of(run, origins)


def rows_of(run: Path, origins: Mapping[Path, dict[str, Any]]) -> "pd.DataFrame":
    """The rows of these records of a run alone, one or more, as `read_rows` gives them: each record with its `meta.json`."""
    import pandas as pd

    by_path = sorted(origins.items(), key=lambda one: _below(one[0], run))
    keys = [key_of_record(record, meta, run) for record, meta in by_path]
    table = _joined(run, by_path)
    known: Any = pd.DataFrame.from_records(keys, columns=list(KEYS))
    known = known.astype(dict.fromkeys(known.select_dtypes("str"), object))  # which is quick to go through, as the text of the rows is
    return pd.concat([table.drop(columns="place"), known.take(table["place"]).reset_index(drop=True)], axis=1)


def read_table(run: Path, experiment: str, step: str = "", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of an experiment's finished records in a run, of one step where it is named, with its parameters as columns (a parameter
    that a row has a column for stays that column) and `cell`, `record`. LabError where there are none."""
    import pandas as pd

    records = records_with(run, dry_run, experiment, step)
    origins = [(record, read_meta(record)) for record in records]
    if not origins:
        raise LabError(f"no finished record of {experiment}{f', step {step}' if step else ''} at {run}")
    table = _joined(run, origins)
    told = pd.DataFrame([{**meta["parameters"], "cell": record.name, "record": _below(record, run)} for record, meta in origins])
    told = told[[name for name in told if name not in table]]
    return pd.concat([table.drop(columns="place"), told.take(table["place"]).reset_index(drop=True)], axis=1)


def _joined(run: Path, origins: Sequence[tuple[Path, dict[str, Any]]]) -> "pd.DataFrame":
    """The rows of these records, one after another, each with its record's place among them. A record's own `meta.json` says which of its
    columns hold text."""
    import pandas as pd

    by_form: dict[tuple[bytes, tuple[str, ...], tuple[str, ...]], dict[int, bytes]] = {}
    texts: set[str] = set()
    for number, (record, meta) in enumerate(origins):
        form = meta["table"]
        header, _, body = (record / form["file"]).read_bytes().partition(b"\n")
        by_form.setdefault((header, tuple(form["text"]), tuple(form["whole"])), {})[number] = body
        texts |= set(form["text"])
    try:
        tables: Any = [_table(*form, bodies) for form, bodies in by_form.items()]
        table: Any = pd.concat(tables, ignore_index=True)
    except ValueError as error:
        raise LabError(f"a table of {run} is damaged, `{COMMAND} records verify` finds it: {error}") from None
    for name in texts & set(table):
        table[name] = table[name].fillna("")
    order = ["place", "idx"] if "idx" in table else ["place"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def _table(header: bytes, text_columns: Sequence[str], whole: Sequence[str], bodies: dict[int, bytes]) -> "pd.DataFrame":
    """The rows below the same header of some records, each with its record's place. Nothing is guessed from the content."""
    import numpy as np
    import pandas as pd

    names = header.decode().split(",")
    types: Any = {name: "object" if name in text_columns else "int64" if name in whole else "float64" for name in names}
    empty = {name: [""] for name in names if name not in text_columns}
    text = io.BytesIO(b"\n".join([header, b"".join(bodies.values())]))
    rows = pd.read_csv(text, dtype=types, na_values=empty, keep_default_na=False, lineterminator="\n")
    return rows.assign(place=np.repeat(list(bodies), list(map(_lines, bodies.values()))))


def _lines(text: bytes) -> int:
    """How many lines a CSV text has: line ends inside quotes do not count."""
    return sum(part.count(b"\n") for part in text.split(b'"')[::2])


def _below(record: Path, run: Path) -> str:
    return record.relative_to(run).as_posix()


def key_of_record(record: Path, meta: dict[str, Any], run: Path) -> dict[str, Any]:
    """The columns of KEYS for a record of a run with this `meta.json`."""
    key = key_of({**meta["parameters"], "step": meta["step"]}, read_resolved(record))
    return key | {"cell": record.name, "record": _below(record, run)}


def key_of(parameters: dict[str, Any], resolved: dict[str, Any]) -> dict[str, Any]:
    """The columns of KEYS for a cell of these parameters, as far as these say them; `resolved`: its sections `preset` and `suite`."""
    overrides = sorted(parameters.get("overrides") or [])
    of_suite = (resolved.get("suite") or {}).get("settings") or {}
    sides: dict[str, list[str]] = {"preset": [], "suite": []}
    for text in overrides:
        side, name = side_of(text.partition("=")[0].strip(), of_suite)
        if (side, name) != ("preset", "encoder"):  # which has a column of its own
            sides[side].append(text.removeprefix(f"{side}."))
    key = {name: parameters.get(name) for name in KEYS}
    preset = resolved.get("preset") or {}
    key |= {"overrides": ";".join(overrides), "encoder": preset.get("encoder") or ""}
    key["control"] = "" if preset.get("control") in (None, "none") else str(preset["control"])
    return key | {f"{side}_overrides": ";".join(texts) for side, texts in sides.items()}


def side_of(key: str, of_suite: Container[str]) -> tuple[str, str]:
    """Whether an override is one of the suite, whose settings are `of_suite`, or of the preset, and the name of the setting. `suite.` or
    `preset.` before a key says which is meant."""
    side, _, name = key.partition(".")
    return (side, name) if side in ("suite", "preset") else ("suite" if key in of_suite else "preset", key)
