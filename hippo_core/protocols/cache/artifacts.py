"""What the cache protocol asks a run to leave, written from its records: `python -m hippo_core.protocols.cache.artifacts OUT RUN...`.

    task_metrics.json, stability_metrics.json, detection_metrics.json, train.jsonl, eval.jsonl
    table_main_results.tex, table_ablation_summary.tex
    figures: figA score along severity, figB cost, figC sensitivity, figD layers and heads; figE detection, figF bits, figG bits gone
    protocol_metrics.json, index.md   the other tables; the page of all of them (page.py)

Nothing stands in for what is missing: a learned repair without the record of its training, or a record without its stability, is an error.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_bytes, write_json, write_text
from hippo_core.protocols.cache import ablations
from hippo_core.protocols.cache import bit_figures as cache_bits
from hippo_core.protocols.cache import figures as cache
from hippo_core.protocols.cache import outcomes as protocol
from hippo_core.protocols.cache.page import page
from hippo_core.protocols.cache.table import kept, task_metrics
from hippo_core.results.figures import drawing
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, read_table, records_with

USAGE = "usage: python -m hippo_core.protocols.cache.artifacts OUT RUN..."


def write(runs: Sequence[Path], out: Path) -> list[Path]:
    """Write all files of these runs into `out`; their paths. LabError where a run has no record of a step, or a record lacks a file."""
    measured = pd.concat([read_table(run, "cache", "measure") for run in runs], ignore_index=True)
    if len(models := sorted(set(measured["model"]))) > 1:
        raise LabError(f"these runs are of several models, {', '.join(models)}; write the files of one at a time")
    trained = _tables(runs, "train", needed="learned" in set(measured["defence"]))
    removed = _tables(runs, "remove", needed=False)
    found = protocol.groups(measured)
    rows = protocol.main_of(found)
    records = [run / name for run in runs for name in sorted(set(rows["record"])) if (run / name).is_dir()]
    stability, detection = _one(records, "stability_metrics.json"), _joined(records, "detection_metrics.json")
    write_json(out / "task_metrics.json", _plain(task_metrics(rows)))
    write_json(out / "stability_metrics.json", stability)
    write_json(out / "detection_metrics.json", _plain(detection))
    if trained:
        write_text(out / "train.jsonl", _lines(_training(pd.concat(trained, ignore_index=True))))
    write_text(out / "eval.jsonl", _lines(_evaluation(rows)))
    bits, settings = protocol.bits_lost(found), ablations.ablations(found)
    gone = pd.concat(removed, ignore_index=True) if removed else None
    told = {"ahead": ablations.margin_over_heuristic(rows), "spans": ablations.spans(found), "left_out": ablations.left_out(found)}
    told |= {"contraction": ablations.contraction(found), "ablations": settings, "bits": protocol.bits_in_short(bits)}
    told["gone"] = protocol.removed_bits(gone) if gone is not None else pd.DataFrame()
    write_json(out / "protocol_metrics.json", {"made": _made(runs, rows), **{name: one.to_dict("records") for name, one in told.items()}})
    write_text(out / "table_main_results.tex", _latex(protocol.main_results(rows)))
    write_text(out / "table_ablation_summary.tex", _latex(settings))
    figures = {
        "figA": cache.robustness(kept(rows)),
        "figB": cache.cost(rows, kept(rows)),
        "figC": cache.sensitivity(stability),
        "figD": cache.amplification(stability),
        "figE": cache.detected(detection),
        **({"figF": cache_bits.bits(bits)} if len(bits) else {}),
        **({"figG": cache_bits.removal(gone)} if gone is not None else {}),
    }
    for name, figure in figures.items():
        write_bytes(out / "figures" / f"{name}.png", drawing.png(figure))
    write_text(out / "index.md", page(out))
    return sorted(path for path in out.rglob("*") if path.is_file())


def _tables(runs: Sequence[Path], step: str, needed: bool) -> list[Frame]:
    having = [run for run in runs if records_with(run, False, "cache", step)]
    if needed and not having:
        raise LabError(f"no run of {', '.join(map(str, runs))} has a finished cell of cache, step {step}; add a run that has one")
    return [read_table(run, "cache", step) for run in having]


def _read(record: Path, name: str) -> dict[str, Any]:
    path = record / name
    if not path.is_file():
        raise LabError(f"{path} is not there; make the record again")
    return read_object(path)


def _one(records: Sequence[Path], name: str) -> dict[str, Any]:
    """The content of the first record's file; the others', of other faults, measured the same."""
    return _read(records[0], name)


def _joined(records: Sequence[Path], name: str) -> dict[str, Any]:
    """The lines of all records' files together."""
    read = [_read(record, name) for record in records]
    return {**read[0], "lines": [line for one in read for line in one["lines"]]}


def _training(rows: Frame) -> list[dict[str, Any]]:
    """A line a step of each training."""
    return [
        {"run_id": line["run_id"], "phase": "train", "cell": line["cell"], "step": line["number"], "loss_kd": line["distance"],
         "loss_id": line["identity"], "loss_contr": line["contraction"], "rho_median": line["rho"],
         "corruption": {"type": line["kind"], "severity": line["severity"]}}
        for line in rows.to_dict("records")
    ]  # fmt: skip


def _evaluation(rows: Frame) -> list[dict[str, Any]]:
    """A line a task, fault, severity and defence."""
    by = ["run_id", "task", "kind", "severity", "defence"]
    means = rows.groupby(by, sort=False)[["score", "loss"]].mean().reset_index()
    return [{"phase": "eval", **line} for line in means.to_dict("records")]


def _lines(lines: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(_plain(line), allow_nan=False) + "\n" for line in lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return None if value != value else round(value, 6)
    return value.item() if hasattr(value, "item") else value


def _latex(table: Frame) -> str:
    return str(table.astype(str).replace("−", "-", regex=True).replace("–", "--", regex=True).to_latex(index=False, escape=True))


def _made(runs: Sequence[Path], rows: Frame) -> str:
    records = [record for run in runs for record in records_with(run, False, "cache")]
    commits = sorted({read_meta(record)["git_sha"][:7] for record in records})
    seeds, probes = ", ".join(map(str, sorted(set(rows["seed"])))), rows.groupby("task")["probe"].nunique()
    counts = ", ".join(f"{count} of `{task}`" for task, count in probes.items())
    return (
        f"Runs {', '.join(f'`{run.name}`' for run in runs)}, commit {', '.join(commits)}; seed {seeds}; probes: {counts}. "
        "All layers, heads and tokens of a context may be hit, keys and values. Score kept: what damaged caches keep of the score above "
        "chance, mean over severities above 0. Damage recovered: (corrupt - repaired) / (corrupt - clean) on the same caches and damage, "
        "with 95% "
        "intervals by world where there are ten and something varies; of texts in nats a token, else in answers right. Written by "
        "`python -m hippo_core.protocols.cache.artifacts`."
    )


def main(told: Sequence[str]) -> None:
    """The command."""
    if len(told) < 2:
        raise SystemExit(USAGE)
    try:
        for path in write([Path(one) for one in told[1:]], Path(told[0])):
            print(path)
    except LabError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
