"""Reading records: one frame of rows over all records of a run. The files are the only copy; nothing is cached."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.files import LabError, read_yaml

from .paths import record_folders

if TYPE_CHECKING:
    import pandas as pd

TEXT = ("item_id", "world", "stage", "kind", "rung", "slices", "question", "prompt", "answer", "pred", "shown", "flags")
WHOLE = ("idx", "hops", "distance")
KEYS = (
    *("run_id", "suite", "preset", "model", "profile", "n", "seed", "split", "regime", "mode", "dry_run", "overrides"),
    *("encoder", "preset_overrides", "suite_overrides", "cell", "record"),
)


def read_meta(record: Path) -> dict[str, Any]:
    """The `meta.json` of a record."""
    try:
        return json.loads((record / "meta.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"{record} is no record: it has no meta.json") from None
    except json.JSONDecodeError:
        raise LabError(f"{record / 'meta.json'} is damaged: not valid JSON") from None


def read_config(record: Path) -> dict[str, Any]:
    """The `config_snapshot.yaml` of a record: everything it was told, resolved."""
    return read_yaml(record / "config_snapshot.yaml") or {}


def records_of(run: Path, split: str | None = "test", dry_run: bool = False) -> list[Path]:
    """The finished records of a run that hold rows, sorted by path: of one split (None: of all), without dry runs unless asked for."""
    found = []
    for record in record_folders(run):
        if not (record / "metrics.csv").is_file():
            continue
        told = read_meta(record)["parameters"]
        if (split is None or told.get("split", "test") == split) and (dry_run or not told.get("dry_run", False)):
            found.append(record)
    return found


def read_rows(run: Path, split: str | None = "test", dry_run: bool = False) -> "pd.DataFrame":
    """All rows of a run's finished records, with the columns `KEYS` that say which cell each comes from.

    `cell` is the id of the cell, `record` the path of its folder below the run. `encoder` says whose vectors the preset compares (empty
    where it compares none); the other overrides stand apart in `preset_overrides` and `suite_overrides`, each joined by ";". Text is
    text (empty where nothing was said), all else is a number (NaN where not measured). Columns that only some records have are NaN
    elsewhere.
    """
    import pandas as pd

    records = records_of(run, split, dry_run)
    if not records:
        raise LabError(f"no finished record with rows at {run}; run a grid first: make grid")
    by_header: dict[str, list[Path]] = {}
    for record in records:
        with (record / "metrics.csv").open(encoding="utf-8", newline="") as file:
            by_header.setdefault(file.readline(), []).append(record)
    table: Any = pd.concat([_table(header, alike) for header, alike in by_header.items()], ignore_index=True)
    rows = pd.concat([_typed(table.drop(columns="record")), _keys(table["record"], run)], axis=1)
    return rows.sort_values(["record", "idx"], kind="stable", ignore_index=True)


def _table(header: str, records: list[Path]) -> "pd.DataFrame":
    """The rows of records with the same header, as text, with the path of their record. Nothing is guessed from the content."""
    import duckdb

    columns = dict.fromkeys(header.rstrip("\n").split(","), "VARCHAR")
    told = {"files": [str(record / "metrics.csv") for record in records], "columns": columns}
    query = (
        "SELECT * REPLACE (file[:-13] AS file) FROM read_csv($files, columns=$columns, auto_detect=false, header=true,"
        " delim=',', quote='\"', escape='\"', new_line='\\n', max_line_size=16777216, filename='file')"
    )
    with duckdb.connect() as database:
        return database.execute(query, told).df().rename(columns={"file": "record"})


def _typed(table: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    for name in table.columns:
        if name in TEXT:
            table[name] = table[name].fillna("").astype(object)
        else:
            numbers: Any = pd.to_numeric(table[name], errors="raise")
            table[name] = numbers.astype("int64" if name in WHOLE else "float64")
    return table


def _keys(records: "pd.Series", run: Path) -> "pd.DataFrame":
    import pandas as pd

    known = {record: _key(Path(record), run) for record in records.unique()}
    return pd.DataFrame.from_records([known[record] for record in records], columns=list(KEYS), index=records.index)


def _key(record: Path, run: Path) -> dict[str, Any]:
    meta, config = read_meta(record), read_config(record)
    told = meta["parameters"]
    overrides = sorted(told.get("overrides") or [])
    key = {name: told.get(name) for name in KEYS}
    key |= {"mode": meta["mode"], "overrides": ";".join(overrides), "encoder": (config.get("preset") or {}).get("encoder") or ""}
    key |= _sides(overrides, set((config.get("suite") or {}).get("settings") or {}))
    return key | {"cell": record.name, "record": record.relative_to(run).as_posix()}


def _sides(overrides: list[str], of_suite: set[str]) -> dict[str, str]:
    """The overrides of the preset (but for its encoder) and those of the suite, which are those of the settings in `of_suite`."""
    sides: dict[str, list[str]] = {"preset_overrides": [], "suite_overrides": []}
    for text in overrides:
        plain = text.removeprefix("suite.").removeprefix("preset.")
        name = plain.split("=")[0].strip()
        if name in of_suite and not text.startswith("preset."):
            sides["suite_overrides"].append(plain)
        elif name != "encoder":
            sides["preset_overrides"].append(plain)
    return {side: ";".join(texts) for side, texts in sides.items()}
