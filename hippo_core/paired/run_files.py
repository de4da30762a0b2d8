"""A run on the disk: a folder with `run.json`, which says what it rests on, and `results.jsonl`, a row a line. It is written once."""

import json
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.files import LabError, home, new_folder, read_object, sha256, write_json, write_text
from hippo_core.paired.settings import Settings, described
from hippo_core.paired.suite import Suite
from hippo_core.results.frames import Frame

SCHEMA = 1
KIND = "hippo-paired-run"
RUN, RESULTS = "run.json", "results.jsonl"
RUNS = "executed"  # from the lab's home


@dataclass(frozen=True)
class PairedRun:
    """A run that was read back: `about` is `run.json`, `rows` a line an answer."""

    folder: Path
    about: Mapping[str, Any]
    rows: Frame

    @property
    def conditions(self) -> list[str]:
        """Those that were run, as they were named."""
        return list(self.about["settings"]["conditions"])


def new_group_id() -> str:
    """An id for the repeats of one run: when it began, and four random bytes."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


def write_into(folder: Path, suite: Suite, settings: Settings, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Write a run's two files into a folder that has none yet. `about`: what else it rests on: model, versions, commit."""
    if (folder / RUN).exists():
        raise LabError(f"{folder} holds a run already, and runs are never written over; name another folder")
    lines = [json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False, allow_nan=False) for row in rows]
    write_text(folder / RESULTS, "\n".join(lines) + "\n")
    manifest = suite.manifest
    told = {
        "schema_version": SCHEMA,
        "kind": KIND,
        "run_group_id": about.get("run_group_id") or new_group_id(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **{name: value for name, value in about.items() if name != "run_group_id"},
        "suite": {"name": manifest.name, "version": manifest.version, "label_status": manifest.label_status, "folder": str(suite.folder)},
        "checksums": suite.checksums,
        "settings": described(settings),
        "rows": len(rows),
        "results_sha256": sha256(folder / RESULTS),
    }
    write_json(folder / RUN, told)


def write_run(folder: Path, suite: Suite, settings: Settings, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> Path:
    """Write a run as a new folder, whole or not at all. LabError where the folder is there."""
    if folder.exists():
        raise LabError(f"{folder} is there already, and runs are never written over; name another folder")
    with new_folder(folder) as made:
        write_into(made, suite, settings, rows, {**about, "run_group_id": folder.name})
    return folder


def read_run(place: str | Path) -> PairedRun:
    """The run in a folder, or the one below it; a plain name is looked for below `executed/`. LabError where there is none or several, and
    where its results are not those that were written."""
    folder = next((one for one in (Path(place), home() / RUNS / place, home() / RUNS / "paired" / place) if one.is_dir()), None)
    found = sorted(path.parent for path in folder.rglob(RUN)) if folder else []
    if len(found) != 1:
        listed = "; it holds " + ", ".join(str(one.relative_to(folder)) for one in found[:6]) if folder and found else ""
        raise LabError(f"no paired run at {place}: expected a folder with {RUN}, or one that holds one such{listed}")
    [folder] = found
    about = read_object(folder / RUN)
    if about.get("kind") != KIND or about.get("schema_version") != SCHEMA:
        got = f"kind {about.get('kind')!r}, schema_version {about.get('schema_version')!r}"
        raise LabError(f"{folder / RUN}: expected kind {KIND!r}, schema_version {SCHEMA}, got {got}")
    if sha256(folder / RESULTS) != about["results_sha256"]:
        raise LabError(f"{folder / RESULTS} is not what the run wrote (its SHA-256 differs); take the run from its archive, or run again")
    return PairedRun(folder, about, pd.read_json(folder / RESULTS, lines=True, dtype={"item": str, "world": str, "tags": str}))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
