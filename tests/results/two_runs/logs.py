"""TEST DATA ONLY: small logs of invented answers in the forms of lm-evaluation-harness 0.4.13 (evaluator.py, loggers/evaluation_tracker.py)
and inspect_ai (https://inspect.aisi.org.uk/eval-logs.html). Nothing was measured."""

import hashlib
import json

from backports.zstd import zipfile

from hippo_core.results.two_runs import open_log


def harness_lines(right, filters=("none",), of_group=2):
    """Lines of samples_*.jsonl: document i is right where right[i]."""
    lines = []
    for number, is_right in enumerate(right):
        doc = {"question": f"Who sold lot {number}?", "answer": f"Carla {number}", "group": f"g{number // of_group}"}
        for name in filters:
            lines.append({
                "doc_id": number, "doc": doc, "target": doc["answer"],
                "arguments": {"gen_args_0": {"arg_0": f"{doc['question']}\nAnswer:", "arg_1": {"until": ["\n"]}}},
                "resps": [[doc["answer"] if is_right else "nobody"]], "filtered_resps": [doc["answer"] if is_right else "nobody"],
                "filter": name, "metrics": ["exact_match", "f1"],
                "doc_hash": hashlib.sha256(json.dumps(doc).encode()).hexdigest(),
                "prompt_hash": "p", "target_hash": "t", "exact_match": float(is_right), "f1": 0.5 + 0.5 * is_right,
            })  # fmt: skip
    return lines


def write_harness(folder, lines, task="lots", date="2026-11-23T10-00-00.000000", model="tiny", **results):
    """The samples of a task with the results file of the same date beside them, as --output_path lays them out."""
    model_folder = folder / "model"
    model_folder.mkdir(parents=True, exist_ok=True)
    path = model_folder / f"samples_{task}_{date}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {"model": "hf", "model_args": f"pretrained={model}", "limit": None, "random_seed": 0}
    (model_folder / f"results_{date}.json").write_text(json.dumps({"model_name": model, "config": config, "n-shot": {task: 0}} | results))
    return path


def harness_logs(folder, *runs, cluster="", **options):
    """The logs of several runs, each given by its lines, below a folder."""
    return [open_log(str(write_harness(folder / f"run {number}", lines, **options)), cluster) for number, lines in enumerate(runs)]


def inspect_samples(right, epochs=1, of_group=2):
    """Samples: the i-th is right in every epoch where right[i]."""
    return [
        {
            "id": f"lot {number}", "epoch": epoch + 1, "input": [{"role": "user", "content": f"Who sold lot {number}?"}],
            "target": [f"Carla {number}"], "metadata": {"group": f"g{number // of_group}"}, "output": {"completion": "said so"},
            "scores": {"match": {"value": "C" if is_right else "I", "answer": f"Carla {number}" if is_right else "nobody"},
                       "graded": {"value": {"fluent": 0.5, "true": bool(is_right)}}},
        }
        for number, is_right in enumerate(right) for epoch in range(epochs)
    ]  # fmt: skip


def inspect_header(model="tiny", status="success"):
    """What header.json says."""
    made = {"task": "lots", "model": model, "dataset": {"name": "lots"}, "config": {"limit": 12, "epochs": 1}}
    return {"version": 2, "status": status, "eval": made}


def write_eval(path, samples, packed=zipfile.ZIP_ZSTANDARD, **header):
    """An .eval file, packed as inspect_ai 0.3.285 packs it."""
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": inspect_header()["eval"]}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(inspect_header(**header)))
    return path
