"""A run on the disk: a folder with `run.json`, which says what it rests on, and `results.jsonl`, a row a line. It is written once.

`run.json` holds the SHA-256 of the results, and under `sealed` one of each value of its own, so that a reader can say what was altered. A
run of an earlier lab has no `sealed`; it is read as it is, for nothing that a record names is run without a flag (rerun.py).
"""

import hashlib
import json
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, create_model

from hippo_core.errors import LabError
from hippo_core.files import home, new_folder, read_object, sha256, write_json, write_text
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.conditions import AGENT_SCORES, COLUMNS, TEXTS
from hippo_core.protocols.paired.settings import RunSettings, restored
from hippo_core.protocols.paired.suite import PairedSuite
from hippo_core.results.frames import Frame
from hippo_core.suites.folder.lines import raw_lines, read_line
from hippo_core.text import SURROGATE

SCHEMA = 1
KIND = "hippo-paired-run"
RUN, RESULTS = "run.json", "results.jsonl"
RUNS = "executed"  # from the lab's home
SEALED = "sealed"
RESTORE = "take the run from its archive, or run again"
LARGEST = 1e100  # no score, count or time of a run is larger
NUMBERS = tuple(name for name in (*COLUMNS, *AGENT_SCORES) if name not in TEXTS)
REQUIRED = (*(name for name in TEXTS if name != "read"), "repeat", "place", "success")  # an earlier lab had no more


class _Form(BaseModel):
    """What is read must be of this form; what else stands there is not looked at."""

    model_config = ConfigDict(strict=True)


class _Suite(_Form):
    name: str
    version: str
    label_status: str
    folder: str


class _Agents(_Form):
    agent: str = ""
    sandbox: str = ""
    passed: list[str] = []


class _About(_Form):
    kind: Literal["hippo-paired-run"]
    schema_version: Literal[1]
    run_group_id: str
    model: str = ""
    suite: _Suite
    checksums: dict[str, str]
    settings: dict[str, Any]
    agents: _Agents = _Agents()
    rows: int
    results_sha256: str
    sealed: dict[str, str] = {}


Finite: Any = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
_TEXTS: Any = {name: (str | None, ... if name in REQUIRED else None) for name in TEXTS}
_NUMBERS: Any = {name: (Finite | None, ... if name in REQUIRED else None) for name in NUMBERS}
_Row: Any = create_model("_Row", __base__=_Form, **_TEXTS, **_NUMBERS)


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


def write_into(
    folder: Path, suite: PairedSuite, settings: RunSettings, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> None:
    """Write a run's two files into a folder that has none yet. `about`: what else it rests on: model, versions, commit."""
    if (folder / RUN).exists():
        raise LabError(f"{folder} holds a run already, and runs are never written over; name another folder")
    lines = [json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False, allow_nan=False) for row in rows]
    write_text(folder / RESULTS, "\n".join(lines) + "\n")
    record = {
        "schema_version": SCHEMA,
        "kind": KIND,
        "run_group_id": new_group_id(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **about,
        "suite": {**suite.manifest.model_dump(include={"name", "version", "label_status"}), "folder": str(suite.folder)},
        "checksums": suite.checksums,
        "settings": settings.model_dump(mode="json"),
        "rows": len(rows),
        "results_sha256": sha256(folder / RESULTS),
    }
    write_json(folder / RUN, record | {SEALED: _sums(record)})


def write_run(folder: Path, suite: PairedSuite, settings: RunSettings, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> Path:
    """Write a run as a new folder, whole or not at all. LabError where the folder is there."""
    if folder.exists():
        raise LabError(f"{folder} is there already, and runs are never written over; name another folder")
    with new_folder(folder) as made:
        write_into(made, suite, settings, rows, {**about, "run_group_id": folder.name})
    return folder


def read_run(source: str | Path) -> PairedRun:
    """The run in a folder, or below it; a plain name is looked for below `executed/`. LabError where there is none or several, where one is
    not of its form, and where it is not what was written; what differs is named."""
    places = (Path(source), home() / RUNS / source, home() / RUNS / "paired" / source)
    folders = next((sorted(file.parent for file in place.rglob(RUN)) for place in places if place.is_dir()), [])
    if len(folders) != 1:
        listed = "; it holds " + ", ".join(map(str, folders[:6])) if folders else ""
        raise LabError(f"no paired run at {source}: expected a folder with {RUN}, or one that holds one such{listed}")
    [folder] = folders
    path, results = folder / RUN, folder / RESULTS
    about = read_object(path)
    validated(_About, about, str(path))
    restored(about["settings"])
    if SEALED in about:
        known, actual = about[SEALED], _sums(about)
        if altered := [name for name in dict.fromkeys((*known, *actual)) if known.get(name) != actual.get(name)]:
            raise LabError(f"{path} is not what the run wrote: {', '.join(altered)} (SHA-256); {RESTORE}")
    if not results.is_file() or sha256(results) != about["results_sha256"]:
        raise LabError(f"{results} is not what the run wrote (its SHA-256 differs); {RESTORE}")
    lines = ((f"{results}:{number}", raw) for number, raw in enumerate(raw_lines(results), 1))
    answers = [validated(_Row, read_line(where, raw), where).model_dump() for where, raw in lines]
    if len(answers) != about["rows"]:
        raise LabError(f"{results}: expected {about['rows']} rows, found {len(answers)}; {RESTORE}")
    rows = pd.DataFrame(answers, columns=[*TEXTS, *NUMBERS])  # nothing is guessed from the content: "12" stays a text
    return PairedRun(folder, about, rows.astype(dict.fromkeys(NUMBERS, float)).fillna(dict.fromkeys(TEXTS, "")))


def _sums(about: Mapping[str, Any]) -> dict[str, str]:
    """A SHA-256 of each value of `run.json`; of an object one of each part."""
    parts = {name: {"": value} if not isinstance(value, dict) else value for name, value in about.items() if name != SEALED}
    values = {f"{name}.{key}" if key else name: value for name, part in parts.items() for key, value in part.items()}
    return {name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest() for name, value in values.items()}


def _plain(value: Any) -> Any:
    """A value as JSON holds it; half of a character, which a program may have said, becomes the replacement character."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
