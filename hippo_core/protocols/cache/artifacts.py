"""What the cache protocol asks a run to leave, written from its records: `python -m hippo_core.protocols.cache.artifacts OUT RUN...`.

    task_metrics.json, stability_metrics.json, detection_metrics.json, train.jsonl, eval.jsonl
    table_main_results.tex, table_ablation_summary.tex
    figures: figA score along severity, figB cost, figC sensitivity, figD layers and heads; figE detection, figF bits, figG bits gone
    protocol_metrics.json, index.md   the other tables; the page of all of them

Each record holds its own logs, tables A to D and figures from the start (`of_record`); this joins those of a run.

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
from hippo_core.protocols.cache import figures as cache
from hippo_core.protocols.cache import report as protocol
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.table import STABILITY, TRAIN_LOG, kept, perplexity, plain, task_metrics
from hippo_core.results.figures import drawing
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, read_table, records_with

DIGITS = 6  # of the numbers that are written
FIGURES = {
    "figA": "Score kept",
    "figB": "What a defence costs",
    "figC": "Words that move",
    "figD": "Layers and heads",
    "figE": "Who notices",
    "figF": "Which bit matters",
    "figG": "Bits that are gone",
}
AREA = "area under the score kept from severity 0, undamaged caches included,"
TABLES = {
    "ahead": "Brought back where half of the score is lost; in brackets how far ahead of the best heuristic",
    "spans": "The worst spans first: damage recovered",
    "left_out": "A fault left out of the training: damage recovered",
    "contraction": f"With and without the loss that contracts: {AREA} of the learned repair",
    "ablations": f"All settings: {AREA} by setting",
}


def write(runs: Sequence[Path], out: Path) -> list[Path]:
    """Write all files of these runs into `out`; their paths. LabError where a run has no record of a step, or a record lacks a file."""
    measured = pd.concat([read_table(run, "cache", "measure") for run in runs], ignore_index=True)
    if len(models := sorted(set(measured["model"]))) > 1:
        raise LabError(f"these runs are of several models, {', '.join(models)}; write the files of one at a time")
    trained, removal = _table(runs, "train"), _table(runs, "remove")
    if trained is None and "learned" in set(measured["defence"]):
        raise LabError(f"no run of {', '.join(map(str, runs))} has a finished cell of cache, step train; add a run that has one")
    grouped = protocol.groups(measured)
    rows = protocol.main_of(grouped)
    records = [run / name for run in runs for name in sorted(set(rows["record"])) if (run / name).is_dir()]
    stability = _read(records[0], "stability_metrics.json")  # the others', of other faults, measured the same
    joined = [_read(record, "detection_metrics.json") for record in records]
    detection = {**joined[0], "lines": [line for metrics in joined for line in metrics["lines"]]}
    bits = protocol.bits_lost(grouped)
    tables = {
        "ahead": protocol.margin_over_heuristic(rows),
        "spans": protocol.spans(grouped),
        "left_out": protocol.left_out(grouped),
        "contraction": protocol.contraction(grouped),
        "ablations": protocol.ablations(grouped),
        "bits": protocol.bits_in_short(bits),
        "gone": pd.DataFrame() if removal is None else protocol.removed_bits(removal),
    }
    write_json(out / "task_metrics.json", plain(task_metrics(rows), DIGITS))
    write_json(out / "stability_metrics.json", stability)
    write_json(out / "detection_metrics.json", plain(detection, DIGITS))
    shown = {name: table.to_dict("records") for name, table in tables.items()}
    write_json(out / "protocol_metrics.json", {"made": _made(runs, rows), **shown})
    if trained is not None:
        write_text(out / "train.jsonl", train_log(trained))
    write_text(out / "eval.jsonl", eval_log(rows))
    write_text(out / "table_main_results.tex", _latex(protocol.main_results(rows)))
    write_text(out / "table_ablation_summary.tex", _latex(tables["ablations"]))
    figures = {
        "figA": cache.robustness(kept(rows)),
        "figB": cache.cost(rows, kept(rows)),
        "figC": cache.sensitivity(stability),
        "figD": cache.amplification(stability),
        "figE": cache.detected(detection),
        **({"figF": cache.bits(bits)} if len(bits) else {}),
        **({"figG": cache.removal(removal)} if removal is not None else {}),
    }
    for name, figure in figures.items():
        write_bytes(out / "figures" / f"{name}.png", drawing.png(figure))
    write_text(out / "index.md", page(out))
    return sorted(path for path in out.rglob("*") if path.is_file())


def of_record(parameters: CacheParameters, record: Path, rows: Frame) -> dict[str, bytes]:
    """The logs, tables and figures that every record of a measurement or a training holds, by path; a table has what its figure draws."""
    named = rows.assign(run_id=parameters.run_id, **{name: str(value) for name, value in parameters.values().items() if name not in rows})
    if parameters.step == "train":
        return {TRAIN_LOG: train_log(named).encode()}
    if parameters.step != "measure":
        return {}
    curves, stability, metrics = kept(rows), read_object(record / STABILITY), task_metrics(rows)
    lost = [{"task": task, "defence": name, "loss_added": own[name]["loss"], "score_lost": own[name]["score"], **metrics["overhead"][name]}
            for task, own in metrics["clean_regression"].items() for name in own]  # fmt: skip
    gains = [{"defence": name, "layer": layer, "head": head, "gain": gain} for name, lines in stability["amplification_map"].items()
             for layer, line in enumerate(lines) for head, gain in enumerate(line)]  # fmt: skip
    ablations = protocol.ablations(protocol.groups(named.assign(record=record.name)))
    figures = {
        "A_score_vs_eps": (cache.robustness(curves), curves),
        "B_clean_vs_overhead_pareto": (cache.cost(rows, curves), pd.DataFrame(lost)),
        "C_logit_sensitivity": (cache.sensitivity(stability), pd.DataFrame(stability["logit_sensitivity"])),
        "D_amplification_map": (cache.amplification(stability), pd.DataFrame(gains)),
    }
    return {
        "logs/eval.jsonl": eval_log(named).encode(),
        "tables/table_main_results.tex": _latex(protocol.main_results(rows)).encode(),
        "tables/table_ablation_summary.tex": _latex(ablations).encode(),
        **{f"figures/fig{name}.png": drawing.png(figure) for name, (figure, _) in figures.items()},
        **{f"tables/table{name}.csv": table.to_csv(index=False).encode() for name, (_, table) in figures.items()},
    }


def train_log(rows: Frame) -> str:
    """A line of JSON a step of a training: its losses, the fault, tokens a second, memory at its peak in MB, and seconds."""
    steps = [
        {"run_id": line["run_id"], "phase": "train", "cell": line.get("cell"), "step": line["number"],
         "loss_total": line.get("loss"), "loss_kd": line["distance"], "loss_id": line["identity"], "loss_contr": line["contraction"],
         "rho_median": line["rho"], "corruption": {"type": line["kind"], "severity": line["severity"]},
         "tokens_per_sec": line.get("tokens_per_s"), "peak_mb": line.get("peak_mb"), "gpu_peak_mb": line.get("gpu_peak_mb"),
         "step_wall_sec": line.get("seconds")}
        for line in rows.to_dict("records")
    ]  # fmt: skip
    return _lines(steps)


def eval_log(rows: Frame) -> str:
    """A line of JSON a task, fault, severity and defence: means of its probes, `n` of them; of texts the perplexity."""
    costs = [name for name in ("repair_ms", "tokens_per_s", "peak_mb", "gpu_peak_mb") if name in rows]
    by = rows.groupby(["run_id", "task", "kind", "severity", "defence"], sort=False)
    means = by[["score", "loss", *costs]].mean().assign(n=by.size()).reset_index().merge(perplexity(rows), how="left")
    return _lines([{"phase": "eval", **line} for line in means.to_dict("records")])


def _table(runs: Sequence[Path], step: str) -> Frame | None:
    """The rows of a step, of the runs that have it."""
    having = [read_table(run, "cache", step) for run in runs if records_with(run, False, "cache", step)]
    return pd.concat(having, ignore_index=True) if having else None


def _read(record: Path, name: str) -> dict[str, Any]:
    path = record / name
    if not path.is_file():
        raise LabError(f"{path} is not there; make the record again")
    return read_object(path)


def _lines(lines: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(plain(line, DIGITS), allow_nan=False) + "\n" for line in lines)


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
        "with 95% intervals by world where there are ten and something varies; of texts in nats a token, else in answers right. Written by "
        "`python -m hippo_core.protocols.cache.artifacts`."
    )


def page(folder: Path) -> str:
    """The page in Markdown, from the files of a folder; a figure that it lacks has no section."""
    tables = read_object(folder / "protocol_metrics.json")
    parts = ["# Reference: a broken cache", tables["made"]]
    files = [path.name for path in sorted(folder.iterdir()) if path.suffix in (".json", ".jsonl", ".tex")]
    parts.append(f"Beside it: {', '.join(f'[{name}]({name})' for name in files)}.")
    for name, title in FIGURES.items():
        if (folder / "figures" / f"{name}.png").is_file():
            parts += [f"## {title}", f"![{title}](figures/{name}.png)", *map(markdown, _tables(folder, name))]
    for name, title in TABLES.items():
        if tables[name]:
            parts += [f"## {title}", markdown(pd.DataFrame(tables[name]))]
    return "\n\n".join(parts) + "\n"


def _tables(folder: Path, figure: str) -> list[Frame]:
    """The tables below a figure."""
    if figure == "figA":
        metrics = read_object(folder / "task_metrics.json")
        return [protocol.scores_kept(metrics), protocol.score_lost(metrics), protocol.damage_recovered(metrics)]
    if figure == "figE":
        known = read_object(folder / "task_metrics.json")["overhead"]
        return [protocol.detection_rate(read_object(folder / "detection_metrics.json"), known)]
    part = {"figF": "bits", "figG": "gone"}.get(figure)
    return [pd.DataFrame(read_object(folder / "protocol_metrics.json")[part])] if part else []


def markdown(table: Frame) -> str:
    """A table in Markdown, numbers to the right."""
    heads = list(map(str, table.columns))
    lines = [f"| {' | '.join(line)} |" for line in [heads, *table.astype(str).to_numpy().tolist()]]
    return "\n".join([lines[0], "|---|" + "--:|" * (len(heads) - 1), *lines[1:]])


def main(arguments: Sequence[str]) -> None:
    if len(arguments) < 2:
        raise SystemExit("usage: python -m hippo_core.protocols.cache.artifacts OUT RUN...")
    try:
        for path in write([Path(name) for name in arguments[1:]], Path(arguments[0])):
            print(path)
    except LabError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
