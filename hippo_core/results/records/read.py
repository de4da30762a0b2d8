"""Reading records: one frame of rows over all records of a run. The files are the only copy; nothing is cached."""

import io
import json
from collections.abc import Container
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.files import COMMAND, LabError, parse_yaml, read_yaml
from hippo_core.results.records.paths import ROWS, record_folders

if TYPE_CHECKING:
    import pandas as pd

TEXT = (
    *("item_id", "world", "stage", "kind", "rung", "slices", "question", "prompt", "answer", "pred"),
    *("shown", "recalled_texts", "flags", "scores"),
)
WHOLE = ("idx", "hops", "distance")
KEYS = (
    *("run_id", "suite", "preset", "model", "profile", "n", "seed", "split", "regime", "mode", "dry_run", "overrides"),
    *("encoder", "control", "preset_overrides", "suite_overrides", "cell", "record"),
)


def read_meta(record: Path) -> dict[str, Any]:
    """The `meta.json` of a record."""
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
    """The finished records of a run that hold rows, sorted by path: of one split (None: of all), without dry runs unless asked for."""
    return list(_origins(run, split, dry_run))


def prepared_of(run: Path, dry_run: bool = False) -> list[Path]:
    """The finished records of a run's cells that taught or replayed, sorted by path; without dry runs unless asked for."""
    records = [record for record in record_folders(run) if any((record / ROWS[mode]).is_file() for mode in ("teach", "replay"))]
    return [record for record in records if dry_run or not read_meta(record)["parameters"].get("dry_run", False)]


def _origins(run: Path, split: str | None, dry_run: bool) -> dict[Path, dict[str, Any]]:
    origins = {}
    for record in record_folders(run):
        if not (record / "metrics.csv").is_file():
            continue
        parameters = (meta := read_meta(record))["parameters"]
        if (split is None or parameters.get("split", "test") == split) and (dry_run or not parameters.get("dry_run", False)):
            origins[record] = meta
    return origins


def read_rows(run: Path, split: str | None = "test", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of a run's finished records, with the columns `KEYS` that say which cell each comes from.

    `cell` is its id, `record` the path of its folder below the run, `encoder` whose vectors the preset compares, `control` what stands in
    the place of what it retrieves (each empty for none); the other overrides stand apart in `preset_overrides` and `suite_overrides`,
    joined by ";". Text is text, all else is a number (NaN where not measured).
    """
    import pandas as pd

    origins = _origins(run, split, dry_run)
    if not origins:
        raise LabError(f"no finished record with rows at {run}; run a grid first: make grid")
    keys = [_key(record, meta, run) for record, meta in sorted(origins.items(), key=lambda one: _below(one[0], run))]
    by_header: dict[bytes, dict[int, bytes]] = {}
    for number, key in enumerate(keys):
        header, _, body = (run / key["record"] / "metrics.csv").read_bytes().partition(b"\n")
        by_header.setdefault(header, {})[number] = body
    try:
        table: Any = pd.concat([_table(header, bodies) for header, bodies in by_header.items()], ignore_index=True)
    except ValueError as error:
        raise LabError(f"a metrics.csv of {run} is damaged, `{COMMAND} records verify` finds it: {error}") from None
    for name in set(TEXT) & set(table):
        table[name] = table[name].fillna("")
    table = table.sort_values(["place", "idx"], kind="stable", ignore_index=True)
    known: Any = pd.DataFrame.from_records(keys, columns=list(KEYS))
    known = known.astype(dict.fromkeys(known.select_dtypes("str"), object))  # which is quick to go through, as the text of the rows is
    return pd.concat([table.drop(columns="place"), known.take(table["place"]).reset_index(drop=True)], axis=1)


def _table(header: bytes, bodies: dict[int, bytes]) -> "pd.DataFrame":
    """The rows below the same header of some records, each with its record's place. Nothing is guessed from the content."""
    import numpy as np
    import pandas as pd

    names = header.decode().split(",")
    types: Any = {name: "object" if name in TEXT else "int64" if name in WHOLE else "float64" for name in names}
    empty = {name: [""] for name in names if name not in TEXT}
    text = io.BytesIO(b"\n".join([header, b"".join(bodies.values())]))
    rows = pd.read_csv(text, dtype=types, na_values=empty, keep_default_na=False, lineterminator="\n")
    return rows.assign(place=np.repeat(list(bodies), list(map(_lines, bodies.values()))))


def _lines(text: bytes) -> int:
    """How many lines a CSV text has: line ends inside quotes do not count."""
    return sum(part.count(b"\n") for part in text.split(b'"')[::2])


def _below(record: Path, run: Path) -> str:
    return record.relative_to(run).as_posix()


def _key(record: Path, meta: dict[str, Any], run: Path) -> dict[str, Any]:
    key = key_of({**meta["parameters"], "mode": meta["mode"]}, read_resolved(record))
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
