"""Reading records: one frame of rows over all records of a run. The files are the only copy; nothing is kept but within `as_of_now`."""

import io
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hippo_core.errors import LabError, shortened
from hippo_core.files import COMMAND, parse_yaml, read_object, read_yaml
from hippo_core.results.records.paths import record_folders
from hippo_core.results.records.sealed import known_wrong_with

if TYPE_CHECKING:
    import pandas as pd

ITEM = "item_id"  # the unit of rows that are answers to questions
KEYS = (
    *("run_id", "suite", "preset", "model", "profile", "n", "seed", "split", "regime", "step", "dry_run", "overrides"),
    *("encoder", "control", "preset_overrides", "suite_overrides", "cell", "record"),
)


Metas = dict[Path, dict[str, Any]]


class _Finished(NamedTuple):
    """The finished records of a run that are what their seals say, each with its `meta.json`, and what is wrong with the others."""

    run: Path | None
    metas: Metas
    damaged: tuple[str, ...]


KINDS = {dict: "an object", list: "a list of strings", str: "a string"}
TABLE_FORM = {"file": str, "unit": str, "cluster": str, "text": list, "whole": list}
NOTHING = _Finished(None, {}, ())
_NOW: ContextVar[_Finished] = ContextVar("_NOW", default=NOTHING)


@contextmanager
def as_of_now(run: Path) -> Iterator[None]:
    """Within it, the finished records of a run are those of its beginning, and each `meta.json` is read once: a cell that ends meanwhile is
    in no table of a report. What is read is not to be changed."""
    token = _NOW.set(_finished(run))
    try:
        yield
    finally:
        _NOW.reset(token)


def _finished(run: Path) -> _Finished:
    """The records of a run, checked; those that are left out are said once on the terminal."""
    if _NOW.get().run == run:
        return _NOW.get()
    metas: Metas = {}
    damaged = []
    for record in record_folders(run):
        wrong = known_wrong_with(record)
        try:
            if not wrong:
                metas[record] = read_meta(record)
        except LabError as error:
            wrong = (str(error),)
        damaged += [f"{_below(record, run)}: {what}" for what in wrong]
    for fault in damaged:
        _warn_once(run, fault)
    return _Finished(run, metas, tuple(damaged))


@lru_cache(maxsize=10_000)
def _warn_once(run: Path, fault: str) -> None:
    print(f"left out, not counted: {run.name}/{fault}", file=sys.stderr, flush=True)


def damaged(run: Path) -> tuple[str, ...]:
    """Which finished records of a run are left out of all that is read of it: the path of each, and which file differs."""
    return _finished(run).damaged


def read_meta(record: Path) -> dict[str, Any]:
    """The `meta.json` of a record; LabError where it has another form."""
    if (known := _NOW.get().metas.get(record)) is not None:
        return known
    path = record / "meta.json"
    if not path.is_file():
        raise LabError(f"{record} is no record: it has no meta.json")
    meta = read_object(path)
    table = meta.get("table", {"file": "metrics.csv", "unit": "", "cluster": "", "text": [], "whole": []})
    parts = [("parameters", meta.get("parameters"), dict), ("table", table, dict)]
    parts += [(name, meta.get(name, ""), str) for name in ("experiment", "step")]
    parts += [(f"table.{name}", table.get(name), kind) for name, kind in TABLE_FORM.items()] if isinstance(table, dict) else []
    for name, value, kind in parts:
        if not isinstance(value, kind) or (kind is list and not all(isinstance(entry, str) for entry in value)):
            raise LabError(f"{path} is damaged: expected {name} to be {KINDS[kind]}, found {shortened(repr(value))}")
    if table["file"] != Path(table["file"]).name or not table["file"].endswith(".csv"):
        raise LabError(f"{path} is damaged: expected table.file to be the name of a CSV file, found {shortened(repr(table['file']))}")
    return meta


def read_metrics(record: Path) -> dict[str, Any]:
    """The `metrics.json` of a record."""
    return read_object(record / "metrics.json")


def read_resolved(record: Path) -> dict[str, Any]:
    """The sections `preset` and `suite` of the `config_snapshot.yaml` of a record: what its parameters stood for."""
    path = record / "config_snapshot.yaml"
    sections = read_yaml(path, _last_sections) or {}
    for name in ("preset", "suite"):
        if not isinstance(sections, dict) or not isinstance(sections.get(name) or {}, dict):
            raise LabError(f"{path} is damaged: expected keys and values under {name}")
    return sections


def _last_sections(text: str) -> Any:
    """The sections of a config snapshot from `preset` on: in the order of the alphabet, so that what differs between seeds comes before."""
    return _parsed(text[text.find("\npreset:") + 1 :])


_parsed = lru_cache(maxsize=1000)(parse_yaml)  # of many records few differ


def records_of(run: Path, split: str | None = "test", dry_run: bool = False) -> list[Path]:
    """The finished records of a run whose rows are items: of one split (None: of all), without dry runs unless asked for."""
    return list(origins_of(run, split, dry_run))


def records_with(run: Path, dry_run: bool = False, experiment: str = "", step: str = "") -> list[Path]:
    """The finished records of a run with rows, by path: of an experiment or step where it is named, without dry runs unless asked for."""
    return list(_metas_with(run, dry_run, experiment, step))


def origins_of(run: Path, split: str | None = "test", dry_run: bool = False) -> dict[Path, dict[str, Any]]:
    """The same records as `records_of`, each with its `meta.json`."""
    items = {record: meta for record, meta in _metas_with(run, dry_run).items() if meta["table"]["unit"] == ITEM}
    return {record: meta for record, meta in items.items() if split in (None, meta["parameters"].get("split", "test"))}


def _metas_with(run: Path, dry_run: bool, experiment: str = "", step: str = "") -> Metas:
    def wanted(meta: dict[str, Any]) -> bool:
        fits = experiment in ("", meta.get("experiment")) and step in ("", meta.get("step"))
        return "table" in meta and fits and (dry_run or not meta["parameters"].get("dry_run", False))

    return {record: meta for record, meta in _finished(run).metas.items() if wanted(meta)}


def read_rows(run: Path, split: str | None = "test", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of a run's finished records whose rows are items, with the columns `KEYS` that say which cell each comes from: its id
    (`cell`), the path of its folder below the run (`record`), the preset's `encoder` and `control` (empty for none), the other overrides
    joined by ";". Text is text, all else is a number (NaN where not measured)."""
    origins = origins_of(run, split, dry_run)
    if not origins:
        raise LabError(f"no finished record with rows at {run}{_but_damaged(run)}; run a grid first: make grid")
    return rows_of(run, origins)


def _but_damaged(run: Path) -> str:
    faults = damaged(run)
    return f", but {len(faults)} faults in its records, the first: {faults[0]}" if faults else ""


def rows_of(run: Path, origins: Mapping[Path, dict[str, Any]]) -> "pd.DataFrame":
    """The rows of these records of a run, each with its `meta.json`, as `read_rows` gives them."""
    import pandas as pd

    by_path = sorted(origins.items(), key=lambda origin: _below(origin[0], run))
    keys = [key_of_record(record, meta, run) for record, meta in by_path]
    table = _joined(run, by_path)
    known: Any = pd.DataFrame.from_records(keys, columns=list(KEYS))
    known = known.astype(dict.fromkeys(known.select_dtypes("str"), object))  # which is quick to go through, as the text of the rows is
    return pd.concat([table.drop(columns="place"), known.take(table["place"]).reset_index(drop=True)], axis=1)


def read_table(run: Path, experiment: str, step: str = "", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of an experiment's finished records in a run, or of one step of it, with its parameters (but for those that a column of the
    table is called like), `cell` and `record` as columns. LabError where there are none."""
    import pandas as pd

    records = records_with(run, dry_run, experiment, step)
    origins = [(record, read_meta(record)) for record in records]
    if not origins:
        raise LabError(f"no finished record of {experiment}{f', step {step}' if step else ''} at {run}{_but_damaged(run)}")
    table = _joined(run, origins)
    parameters = pd.DataFrame([{**meta["parameters"], "cell": record.name, "record": _below(record, run)} for record, meta in origins])
    parameters = parameters[[name for name in parameters if name not in table]]
    return pd.concat([table.drop(columns="place"), parameters.take(table["place"]).reset_index(drop=True)], axis=1)


def _joined(run: Path, origins: Sequence[tuple[Path, dict[str, Any]]]) -> "pd.DataFrame":
    """The rows of these records, one after another, each with its record's position among them."""
    import pandas as pd

    by_form: dict[tuple[bytes, tuple[str, ...], tuple[str, ...]], dict[int, bytes]] = {}
    texts: set[str] = set()
    for number, (record, meta) in enumerate(origins):
        if wrong := known_wrong_with(record):
            raise LabError(f"{_below(record, run)} of {run.name} cannot be read: {wrong[0]}")
        form = meta["table"]
        if not (record / form["file"]).is_file():
            raise LabError(f"{_below(record, run)} of {run.name} cannot be read: it has no {form['file']}")
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


def _table(header: bytes, text_columns: Sequence[str], integer_columns: Sequence[str], bodies: dict[int, bytes]) -> "pd.DataFrame":
    """The rows below the same header of some records, each with its record's position. Nothing is guessed from the content."""
    import numpy as np
    import pandas as pd

    names = header.decode().split(",")
    types: Any = {name: "object" if name in text_columns else "int64" if name in integer_columns else "float64" for name in names}
    empty = {name: [""] for name in names if name not in text_columns}
    text = io.BytesIO(b"\n".join([header, b"".join(bodies.values())]))
    rows = pd.read_csv(text, dtype=types, na_values=empty, keep_default_na=False, lineterminator="\n")
    counts = [sum(part.count(b"\n") for part in body.split(b'"')[::2]) for body in bodies.values()]  # line ends in quotes do not count
    return rows.assign(place=np.repeat(list(bodies), counts))


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
    by_owner: dict[str, list[str]] = {"preset": [], "suite": []}
    for text in overrides:
        owner, name = override_owner(text.partition("=")[0].strip(), of_suite)
        if (owner, name) != ("preset", "encoder"):  # which has a column of its own
            by_owner[owner].append(text.removeprefix(f"{owner}."))
    key = {name: parameters.get(name) for name in KEYS}
    preset = resolved.get("preset") or {}
    key |= {"overrides": ";".join(overrides), "encoder": preset.get("encoder") or ""}
    key["control"] = "" if preset.get("control") in (None, "none") else str(preset["control"])
    return key | {f"{owner}_overrides": ";".join(texts) for owner, texts in by_owner.items()}


def override_owner(key: str, of_suite: Container[str]) -> tuple[str, str]:
    """Whether an override is one of the suite, whose settings are `of_suite`, or of the preset, and its name. `suite.` or `preset.` before
    a key says which is meant."""
    owner, _, name = key.partition(".")
    return (owner, name) if owner in ("suite", "preset") else ("suite" if key in of_suite else "preset", key)
