"""Two runs are paired item by item, whoever wrote them; what cannot be paired is refused, and what is said of the pairs is right.

The logs are invented, in the forms of lm-evaluation-harness 0.4.13 (evaluator.py, loggers/evaluation_tracker.py) and inspect_ai
(https://inspect.aisi.org.uk/eval-logs.html). Nothing was measured.
"""

import hashlib
import json
import math
import re

import pandas as pd
import pytest
from backports.zstd import zipfile
from statsmodels.stats.contingency_tables import mcnemar
from typer.testing import CliRunner

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.cli.commands import app
from hippo_core.results.records import Table, begin_record, finish_record, seal
from hippo_core.results.two_runs import as_json, as_markdown, compare_runs, compare_suites, open_log
from tests.results import fake_records

A = [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1] * 4
B = [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0] * 4


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
    return [log_of(write_harness(folder / f"run {number}", lines, **options), cluster) for number, lines in enumerate(runs)]


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


def write_eval(path, samples, packed=zipfile.ZIP_ZSTANDARD, model="tiny", **header):
    """An .eval file, packed as inspect_ai 0.3.285 packs it."""
    made = {"task": "lots", "model": model, "dataset": {"name": "lots"}, "config": {"limit": 12, "epochs": 1}}
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": made}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": made} | header))
    return path


def log_of(path, *arguments, **options):
    return open_log(str(path), *arguments, **options)


@pytest.fixture(params=["harness", "inspect"])
def written(request, tmp_path):
    """A function that writes answers as a log and gives its path."""

    def write(name, right, **options):
        if request.param == "harness":
            return write_harness(tmp_path / name, harness_lines(right), **options)
        return write_eval(tmp_path / f"{name}.eval", inspect_samples(right), **options)

    return write


def test_the_difference_and_its_tests_are_those_of_the_pairs(written):
    comparison = compare_runs(log_of(written("a", A), "group"), log_of(written("b", B, model="other"), "group"))
    only_a, only_b = (sum(x > y for x, y in zip(*pair, strict=True)) for pair in ((A, B), (B, A)))
    assert (comparison.result.only_a, comparison.result.only_b, comparison.result.n) == (only_a, only_b, len(A))
    assert comparison.result.difference == pytest.approx((sum(A) - sum(B)) / len(A))
    both = [[sum(x == y == 1 for x, y in zip(A, B, strict=True)), only_a], [only_b, sum(x == y == 0 for x, y in zip(A, B, strict=True))]]
    assert comparison.result.p_mcnemar == pytest.approx(mcnemar(both, exact=True).pvalue)
    assert comparison.result.n_worlds == len(A) // 2
    assert "model" in comparison.differs and "task" not in comparison.differs
    assert len(comparison.discordant) == only_a + only_b
    assert {"nobody"} == set(comparison.discordant[comparison.discordant["better"] == "a"]["pred_b"])


def test_a_log_is_read_however_it_is_packed(tmp_path):
    packed = {kind: write_eval(tmp_path / f"{kind}.eval", inspect_samples(A), kind) for kind in (0, 8, 93)}  # not, deflated, by zstd
    read = [log_of(path).rows for path in packed.values()]
    assert read[0].equals(read[1]) and read[0].equals(read[2])
    for path in packed.values():
        with zipfile.ZipFile(path) as archive, path.open("r+b") as file:
            file.seek(archive.getinfo("header.json").header_offset + 60)
            file.write(bytes(40))
        with pytest.raises(LabError, match="is damaged"):
            log_of(path)


def test_runs_whose_items_differ_are_refused(written):
    a = log_of(written("a", A))
    with pytest.raises(LabError, match=r"same items: 2 of 48 only in .*Another seed, limit"):
        compare_runs(a, log_of(written("b", B[:-2])))


@pytest.mark.parametrize("hashed", [True, False])
def test_the_same_number_with_another_document_is_another_item(tmp_path, hashed):
    ours, theirs = harness_lines(A), harness_lines(B)
    theirs[3] = {**theirs[3], "doc": {**theirs[3]["doc"], "question": "Who bought lot 3?"}, "doc_hash": "0" * 64}
    if not hashed:
        ours, theirs = ([{key: line[key] for key in line if key != "doc_hash"} for line in lines] for lines in (ours, theirs))
    a, b = harness_logs(tmp_path, ours, theirs)
    with pytest.raises(LabError, match="1 of 48 only in"):
        compare_runs(a, b)


def test_the_same_documents_in_another_chat_template_are_the_same_items(tmp_path):
    lines = harness_lines(B)
    wrapped = [{**line, "arguments": {"gen_args_0": {"arg_0": f"<|user|>{line['doc']['question']}<|assistant|>"}}} for line in lines]
    a, plain, chat = (
        log_of(write_harness(tmp_path / name, some, chat_template_sha=sha))
        for name, some, sha in (("a", harness_lines(A), None), ("b", lines, None), ("c", wrapped, "abc"))
    )
    assert compare_runs(a, chat).result == compare_runs(a, plain).result
    assert compare_runs(a, chat).differs["prompts"][1] == "48 of 48 are not A's"
    assert "chat template" in compare_runs(a, chat).differs and "prompts" not in compare_runs(a, plain).differs


def losses(right, metric, logged):
    return [{**line, "metrics": [metric], metric: logged(is_right)} for line, is_right in zip(harness_lines(right), right, strict=True)]


@pytest.mark.parametrize(
    ("metric", "logged", "options", "values"),
    [
        ("loss", lambda right: 3.0 - right, {}, (2, 3)),
        ("perplexity", lambda right: -3.0 + right, {}, (2, 3)),  # the harness logs log-likelihoods
        ("word_perplexity", lambda right: [-30.0 + 10 * right, 10], {}, (2, 3)),
        ("bits_per_byte", lambda right: [(-3.0 + right) * math.log(2) * 4, 4], {}, (2, 3)),
        ("distance", lambda right: 3.0 - right, {"higher_is_better": {"lots": {"distance": False}}}, (2, 3)),
        ("distance", lambda right: 3.0 - right, {}, None),
        ("loss", lambda right: 3.0 - right, {"higher_is_better": {"lots": {"loss": True}}}, None),
    ],
)
def test_where_less_is_better_the_side_with_less_is_the_better(tmp_path, metric, logged, options, values):
    plain = compare_runs(*harness_logs(tmp_path / "plain", harness_lines(A), harness_lines(B)))
    a, b = harness_logs(tmp_path, *(losses(right, metric, logged) for right in (A, B)), **options)
    comparison = compare_runs(a, b)
    lower = values is not None
    assert comparison.higher_is_better != lower and comparison.metric == metric
    counts, due = (comparison.result.only_a, comparison.result.only_b), (plain.result.only_a, plain.result.only_b)
    assert counts == (due if lower else due[::-1])
    assert comparison.result.harmed == pytest.approx(counts[1] / len(A)) and comparison.result.harmed_low <= comparison.result.harmed
    assert list(comparison.discordant["better"]).count("a") == counts[0]
    text = as_markdown(comparison)
    assert f"{metric}: {'lower is better; A' if lower else 'higher is better; B'} has the better mean." in text
    assert f"## A alone better: {counts[0]}" in text and json.loads(as_json(comparison))["higher_is_better"] != lower
    if lower:
        assert comparison.result.difference == pytest.approx(-plain.result.difference)
        assert sorted(set(a.rows[metric])) == pytest.approx(values)


TEXTS = {"1": 1, "0": 0, "0.25": 0.25, "C": 1, "I": 0, "P": 0.5, "N": 0, "yes": 1} | dict.fromkeys(
    ("well done", "nan", "inf", ""), math.nan
)


@pytest.mark.parametrize(("text", "counts"), TEXTS.items())
def test_scores_of_inspect_may_be_text_and_count_as_inspect_has_them(tmp_path, text, counts):
    samples = inspect_samples(A)
    samples[0]["scores"]["match"]["value"] = text
    assert log_of(write_eval(tmp_path / "a.eval", samples)).rows["match"][0] == pytest.approx(counts, nan_ok=True)


def judged(tmp_path, kind, drop=()):
    """Two logs of a kind; of A the items `drop` have no value of the main metric."""
    paths = []
    for name, right in (("a", A), ("b", B)):
        if kind == "harness":
            lines = harness_lines(right)
            for number in drop if name == "a" else ():
                lines[number] |= {"exact_match": None}
            paths.append(write_harness(tmp_path / name, lines))
        else:
            samples = inspect_samples(right)
            for number in drop if name == "a" else ():
                samples[number]["scores"]["match"]["value"] = None
                if kind == "no scorer":
                    del samples[number]["scores"]["match"]
            paths.append(write_eval(tmp_path / f"{name}.eval", samples))
    return [log_of(path) for path in paths]


@pytest.mark.parametrize("kind", ["harness", "no value", "no scorer"])
def test_an_item_without_a_value_does_not_change_the_metric(tmp_path, kind):
    comparison = compare_runs(*judged(tmp_path, kind, drop=(0, 5)))
    assert comparison.metric == ("exact_match" if kind == "harness" else "match")
    assert comparison.result.n == len(A) - 2 and comparison.unscored == (2, 0)
    assert f"2 items left out: A to 2 gives no {comparison.metric}." in as_markdown(comparison).replace("\\", "")
    assert json.loads(as_json(comparison))["unscored"] == [2, 0]


@pytest.mark.parametrize("kind", ["harness", "no value"])
def test_a_main_metric_without_any_value_is_an_error_that_names_the_others(tmp_path, kind):
    with pytest.raises(LabError, match=r"no item has a value of (exact_match|match) in both runs; .*--metric: (f1|graded/fluent)"):
        compare_runs(*judged(tmp_path, kind, drop=range(len(A))))


def test_the_order_of_metrics_is_that_of_the_configuration(tmp_path):
    config = {"configs": {"lots": {"metric_list": [{"metric": "f1"}, {"metric": "exact_match"}]}}}
    assert log_of(write_harness(tmp_path / "a", harness_lines(A), **config)).metrics == ("f1", "exact_match")
    path = write_eval(tmp_path / "a.eval", inspect_samples(A), eval={"scorers": [{"name": "graded"}, {"name": "match"}]})
    assert log_of(path).metrics == ("graded/fluent", "graded/true", "match")


def test_runs_that_are_judged_by_other_metrics_first_are_not_compared_unasked(tmp_path):
    swapped = [{**line, "metrics": ["f1", "exact_match"]} for line in harness_lines(B)]
    by_f1 = [{**line, "metrics": ["f1"]} for line in harness_lines(B)]
    a, b, c = harness_logs(tmp_path, harness_lines(A), swapped, by_f1)
    for other in (b, c):
        with pytest.raises(LabError, match=r"judged by exact_match first, .* by f1; choose one of both with --metric"):
            compare_runs(a, other)
        assert compare_runs(a, other, "f1").metric == "f1"
        with pytest.raises(LabError, match=r"shared: .*f1"):
            compare_runs(a, other, "acc")


ADAPTER = {"config": {"model": "hf", "model_args": "pretrained=tiny,peft=mine"}}
OTHER_RUNS = {
    "model": ({"model": "second"}, "a"),
    "folder": ({}, "b"),
    "adapter": (ADAPTER, "a"),
    "shots": ({"n-shot": {"lots": 5}}, "a"),
    "template": ({"chat_template_sha": "0123"}, "a"),
}


@pytest.mark.parametrize(("other", "folder"), OTHER_RUNS.values(), ids=OTHER_RUNS)
def test_logs_of_several_models_or_folders_are_told_apart(tmp_path, other, folder):
    """One model that was asked in two ways is two runs."""
    write_harness(tmp_path / "a", harness_lines(A), date="2026-11-24T10-00-00.000000")
    path = write_harness(tmp_path / folder, harness_lines(B), **other)
    with pytest.raises(LabError, match=r"several models or runs: .*; name one folder or one file") as error:
        log_of(tmp_path)
    assert "/a/model (tiny," in str(error.value) and f"/{folder}/model ({other.get('model', 'tiny')}," in str(error.value)
    assert len(log_of(path).rows) == len(B)


@pytest.mark.parametrize("kind", ["harness", "inspect"])
@pytest.mark.parametrize("name", ["answer", "item_id", "cluster", "better", "difference", "b"])
def test_a_metric_may_be_called_as_a_column_is(tmp_path, kind, name):
    logs = []
    for name_of_log, right in (("a", A), ("b", B)):
        if kind == "harness":
            path = write_harness(
                tmp_path / name_of_log, [{**line, "metrics": [name], name: line["exact_match"]} for line in harness_lines(right)]
            )
        else:
            samples = [{**sample, "scores": {name: sample["scores"]["match"]}} for sample in inspect_samples(right)]
            path = write_eval(tmp_path / f"{name_of_log}.eval", samples)
        logs.append(log_of(path))
    comparison = compare_runs(*logs)
    assert comparison.metric == f"{name} (score)"
    assert comparison.result.difference == pytest.approx((sum(A) - sum(B)) / len(A))
    assert {(item["a"], item["b"]) for item in json.loads(as_json(comparison))["discordant"]} == {(1, 0), (0, 1)}


def test_a_task_is_chosen_by_its_whole_name(tmp_path):
    for task, right in (("arc", A), ("arc_easy", B)):
        write_harness(tmp_path, harness_lines(right), task=task)
    for task, right in (("arc", A), ("arc_easy", B)):
        assert log_of(tmp_path, task=task).rows["exact_match"].mean() == sum(right) / len(right)
    for task in ("", "ar", "arc_e"):
        with pytest.raises(LabError, match=r"found arc, arc_easy; choose one with --task"):
            log_of(tmp_path, task=task)


def test_older_logs_of_a_task_are_mentioned(tmp_path):
    write_harness(tmp_path, harness_lines(B), date="2026-11-22T10-00-00.000000")
    write_harness(tmp_path, harness_lines(A))
    log = log_of(tmp_path)
    [note] = log.notes
    assert log.rows["exact_match"].mean() == sum(A) / len(A)
    assert "2026-11-23T10-00-00.000000.jsonl is the newest of 2 logs" in note


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e200, 10**400], ids=["inf", "-inf", "large", "whole"])
@pytest.mark.parametrize("kind", ["harness", "inspect", "inspect part"])
def test_infinite_scores_are_refused_in_a_line(tmp_path, kind, value):
    if kind == "harness":
        lines = harness_lines(A)
        lines[3]["f1"] = value
        path = write_harness(tmp_path, lines)
    else:
        samples = inspect_samples(A)
        samples[3]["scores"]["match" if kind == "inspect" else "graded"]["value"] = value if kind == "inspect" else {"fluent": value}
        path = write_eval(tmp_path / "a.eval", samples)
    with pytest.raises(LabError, match=r"(line 4: f1|lot 3_epoch_1.json: (match|graded/fluent)): an infinite score"):
        log_of(path)


def test_ids_keep_their_type(tmp_path):
    samples = [{**sample, "id": own_id} for sample, own_id in zip(inspect_samples(A[:3]), (0, "0", "null"), strict=True)]
    assert list(log_of(write_eval(tmp_path / "a.eval", samples[1:])).rows["item_id"]) == ['"0"', '"null"']
    with pytest.warns(UserWarning, match="Duplicate name"), pytest.raises(LabError, match=r'holds two items, 0 and "0"; ids must differ'):
        log_of(write_eval(tmp_path / "b.eval", samples))
    lines = harness_lines(A[:2])
    lines[1] |= {"doc_id": "0", "doc_hash": lines[0]["doc_hash"]}
    assert len(set(log_of(write_harness(tmp_path, lines)).rows["item_id"])) == 2


@pytest.mark.parametrize("again", [{"epoch": 1}, {"epoch": 2, "input": "Who bought it?"}, {"epoch": 2, "target": "Nobody"}])
def test_an_id_that_stands_for_two_samples_is_refused(tmp_path, again):
    path = write_eval(tmp_path / "a.eval", samples := inspect_samples(A))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/again.json", json.dumps({**samples[0], **again}))
    with pytest.raises(LabError, match=r"the item lot 0 (stands there twice in epoch 1|has another (question|answer))"):
        log_of(path)


def test_a_document_that_stands_twice_is_refused(tmp_path):
    lines = harness_lines(A)
    with pytest.raises(LabError, match=r"the item 0/.* stands there twice"):
        log_of(write_harness(tmp_path, [*lines, lines[0]]))


@pytest.mark.parametrize("missing", [math.nan, None, "well done"])
def test_epochs_are_averaged_over_those_that_have_a_value(tmp_path, missing):
    samples = inspect_samples(A, epochs=2)
    samples[0]["scores"]["match"]["value"] = missing
    samples[6]["scores"]["match"]["value"] = "C"  # of the fourth item, which is wrong in its other epoch
    log = log_of(write_eval(tmp_path / "a.eval", samples[:-1]))
    assert log.rows["match"][0] == A[0] and log.rows["match"].notna().all() and log.rows["match"][3] == 0.5
    assert len(log.rows) == len(A) and set(log.metrics) == {"match", "graded/fluent", "graded/true"}
    assert "2 at most; 1 items have fewer" in log.notes[0] and log.notes[1].startswith("1 items have no match in some epoch")
    assert f"A: {log.notes[0]}" in as_markdown(compare_runs(log, log))


@pytest.mark.parametrize("name", ["doc", "target", "exact_match"])
@pytest.mark.parametrize("depth", [900, 100_000])
def test_values_that_are_nested_deep_end_in_no_traceback(tmp_path, name, depth):
    text = json.dumps({**harness_lines(A[:1])[0], name: "HERE"}).replace('"HERE"', '{"a":' * depth + "1" + "}" * depth)
    path = write_harness(tmp_path, harness_lines(A[:1]))
    path.write_text(text + "\n")
    try:
        log_of(path)
    except LabError as error:
        assert "nested too deep" in str(error)


@pytest.mark.parametrize("section", ["eval", "results"])
@pytest.mark.parametrize("value", [[1], "text", 7, {"config": [1], "dataset": 3, "scorers": 1, "scores": {}}])
def test_a_header_of_another_form_is_told_in_a_line(tmp_path, section, value):
    path = write_eval(tmp_path / "a.eval", inspect_samples(A), **{section: value})
    if section == "results" and isinstance(value, dict):
        return log_of(path)  # which says nothing of its scorers
    with pytest.raises(LabError, match="expected an object"):
        log_of(path)


def test_what_a_log_says_is_text_on_the_page(tmp_path):
    lines = harness_lines(A)
    for line in lines:
        line["arguments"]["gen_args_0"]["arg_0"] = "![x](http://evil.test/x.png) <img src=y> \x1b[2J\x9bm\u202e\ud800"
    a, b = harness_logs(tmp_path, lines, harness_lines(B))
    text = as_markdown(compare_runs(a, b))
    assert r"!\[x\](http://evil.test/x.png) \<img src=y\> " in text and "\x1b" not in text
    text.encode()
    written = as_json(compare_runs(a, b))
    assert not [letter for letter in written if letter != "\n" and not letter.isprintable()]
    assert json.loads(written)["discordant"][0]["question"].endswith("\x1b[2J\x9bm\u202e\ufffd")


def test_a_cluster_of_more_than_a_quarter_of_the_items_is_warned_of(tmp_path):
    def compared(of_group):
        lines = (harness_lines(right, of_group=of_group) for right in (A, B))
        return compare_runs(*harness_logs(tmp_path / str(of_group), *lines, cluster="group"))

    assert compared(13).largest == ("g0", 13 / 48) and "Warning: the cluster g0 holds 27% of the items" in as_markdown(compared(13))
    assert compared(12).largest[1] == 0.25 and "Warning" not in as_markdown(compared(12))


def test_two_kinds_of_logs_are_no_pair(tmp_path):
    a = log_of(write_harness(tmp_path / "a", harness_lines(A)))
    b = log_of(write_eval(tmp_path / "b.eval", inspect_samples(B)))
    with pytest.raises(LabError, match="within one kind"):
        compare_runs(a, b)


def test_a_filter_is_asked_for_where_there_are_several(tmp_path):
    write_harness(tmp_path / "a", harness_lines(A, ("strict", "flexible")))
    with pytest.raises(LabError, match="--filter: strict, flexible"):
        log_of(tmp_path / "a")
    assert log_of(tmp_path / "a", filter_name="strict").rows["item_id"].is_unique


def test_a_sample_that_was_logged_again_counts_once(tmp_path):
    samples = inspect_samples(A)
    path = write_eval(tmp_path / "a.eval", samples)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        again = json.dumps({**samples[0], "scores": {"match": {"value": "I"}}})
        archive.writestr(f"samples/{samples[0]['id']}_epoch_1.json", again)
    log = log_of(path)
    assert log.rows["match"][0] == 0 and len(log.rows) == len(A)


def with_field(**fields):
    return lambda path: path.write_text(json.dumps(harness_lines(A[:1])[0] | fields) + "\n")


DAMAGES = [
    (lambda path: path.write_bytes(path.read_bytes()[:-40]), r"line 12, column \d+"),
    (lambda path: path.write_text('{"doc_id": 1}\n'), "line 1: no 'doc'"),
    (lambda path: path.write_text("[1]\n"), "line 1: expected an object"),
    (lambda path: path.write_text(""), "no items"),
    (lambda path: path.write_bytes(b'{"doc": "\xff"}'), "no JSON text"),
    (lambda path: path.write_text('{"doc_id": ' + "9" * 5000 + "}\n"), "line 1: no JSON text"),
    (with_field(doc="question"), "line 1: doc: expected an object"),
    (with_field(metrics="exact_match"), "line 1: metrics: expected a list of names"),
    (with_field(metrics=[["f1"]]), "line 1: metrics: expected a list of names"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_a_damaged_log_of_the_harness_is_told_by_line(tmp_path, damage, message):
    path = write_harness(tmp_path, harness_lines(A[:12]))
    damage(path)
    with pytest.raises(LabError, match=message):
        log_of(path, "group")


def test_arguments_and_answers_of_another_form_are_read_as_text(tmp_path):
    path = write_harness(tmp_path, [line | {"arguments": 7, "filtered_resps": {"a": [None]}} for line in harness_lines(A)])
    assert set(log_of(path).rows["question"]) == {""} and set(log_of(path).rows["pred"]) == {'{"a": [null]}'}


def test_a_damaged_or_unfinished_evaluation_is_refused(tmp_path):
    path = write_eval(tmp_path / "a.eval", inspect_samples(A))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(LabError, match="cut off"):
        log_of(path)
    with pytest.raises(LabError, match="'started'"):
        log_of(write_eval(tmp_path / "b.eval", inspect_samples(A), status="started"))
    failed = inspect_samples(A)
    failed[2]["error"] = {"message": "no answer"}
    with pytest.raises(LabError, match=r"lot 2_epoch_1.*ended with an error"):
        log_of(write_eval(tmp_path / "c.eval", failed))
    with zipfile.ZipFile(tmp_path / "d.eval", "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(LabError, match=r"no header\.json"):
        log_of(tmp_path / "d.eval")
    with pytest.raises(LabError, match="metadata: no 'topic'; there are: group"):
        log_of(write_eval(tmp_path / "e.eval", inspect_samples(A)), "topic")


def test_below_ten_clusters_there_is_no_interval(tmp_path):
    a, b = harness_logs(tmp_path, harness_lines(A[:16]), harness_lines(B[:16]), cluster="group")
    text = as_markdown(compare_runs(a, b))
    assert "No interval: 8 clusters are fewer than 10." in text and "Each item counts as independent" not in text


def test_what_is_written_holds_every_discordant_item_and_no_number_that_is_none(written):
    comparison = compare_runs(log_of(written("a", A)), log_of(written("b", B)))
    content = json.loads(as_json(comparison))
    assert len(content["discordant"]) == comparison.result.only_a + comparison.result.only_b
    assert content["comparison"]["difference"] == comparison.result.difference
    text = as_markdown(comparison, most=3)
    assert f"## A alone better: {comparison.result.only_a}, 3 of them" in text and text.count("Who sold lot") == 3 + min(
        3, comparison.result.only_b
    )
    assert "Each item counts as independent" in text
    metric = "f1" if "f1" in comparison.a.metrics else "graded/fluent"
    unlike = json.loads(as_json(compare_runs(comparison.a, comparison.b, metric)))
    assert unlike["comparison"]["p_mcnemar"] is None or metric == "graded/fluent"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of this lab with two conditions on two suites."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    folder = tmp_path / "executed" / "mine"
    for suite in ("episodic", "semantic"):
        for preset in ("baselines/rag_bm25", "memory/hei_nw"):
            fake_records.add_record(folder, suite, preset, "delayed", n=60)
    return folder


def test_runs_of_this_lab_are_told_by_preset_and_suite(run):
    with pytest.raises(LabError, match=r"choose one, as RUN:PRESET: baselines/rag_bm25@episodic/delayed"):
        open_log("mine")
    both = compare_suites(open_log("mine:hei_nw"), open_log("mine:rag_bm25")).compared
    single = compare_runs(open_log("mine:memory/hei_nw@semantic"), open_log(f"{run}:rag_bm25@semantic/delayed"))
    assert [(two.suite, two.result.n, two.result.n_worlds) for two in both] == [("episodic", 60, 12), ("semantic", 60, 12)]
    assert both[1].result == single.result and both[0].a.clustered and set(both[0].differs) == {"preset"}
    with pytest.raises(LabError, match="no rows of 'nothing'"):
        open_log("mine:nothing")
    with pytest.raises(LabError, match="no column 'colour'"):
        open_log("mine:hei_nw", "colour")
    by_rung = compare_suites(open_log("mine:hei_nw", "rung"), open_log("mine:rag_bm25", "rung")).compared
    assert by_rung[0].result.n_worlds == 4
    with pytest.raises(LabError, match="holds several suites: episodic, semantic"):
        compare_runs(open_log("mine:hei_nw"), open_log("mine:rag_bm25"))


def test_only_items_of_one_split_are_compared(run):
    for preset in ("baselines/rag_bm25", "memory/hei_nw"):
        fake_records.add_record(run, "episodic", preset, "delayed", n=40, split="val")
    for options, n in (({}, 60), ({"split": "test"}, 60), ({"split": "val"}, 40)):
        logs = (open_log(f"mine:{name}", suite="episodic", **options) for name in ("hei_nw", "rag_bm25"))
        comparison = compare_runs(*logs)
        assert comparison.result.n == n and set(comparison.a.rows["split"]) == {options.get("split", "test")}
    with pytest.raises(LabError, match="no rows of the split 'valid'; there are: test, val"):
        open_log("mine:hei_nw", split="valid")
    with pytest.raises(LabError, match="no rows of the suite 'babi'; there are: episodic, semantic"):
        open_log("mine:hei_nw", suite="babi")


def test_profiles_of_a_suite_are_compared_apart(run):
    for preset in ("baselines/rag_bm25", "memory/hei_nw"):
        fake_records.add_record(run, "episodic", preset, "delayed", n=60, profile="hard")
    comparison = compare_suites(*(open_log(f"mine:{name}", suite="episodic") for name in ("hei_nw", "rag_bm25")))
    assert {two.suite: two.result.n for two in comparison.compared} == {"episodic": 60, "episodic (hard)": 60}


def test_split_and_suite_are_refused_for_other_logs(tmp_path):
    path = str(write_harness(tmp_path / "a", harness_lines(A)))
    for wrong in ({"split": "val"}, {"suite": "episodic"}):
        with pytest.raises(LabError, match="choose from runs of this lab"):
            open_log(path, **wrong)


def test_the_example_of_the_manual_works_on_a_run_of_the_grid_smoke(tmp_path, monkeypatch):
    manual = (root() / "docs/report.md").read_text()
    examples = re.findall(r"hippo (compare smoke:[^#\n]*)", manual)
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    folder = fake_records.build_run(tmp_path / "executed" / "smoke")
    for suite in fake_records.SUITES:
        for preset in ("baselines/span_short", "baselines/rag_bm25", "baselines/rag_dense", "baselines/rag_hybrid"):
            fake_records.add_record(folder, suite, preset, "delayed", split="val")
        if suite.startswith("episodic"):
            fake_records.add_memory(folder, suite)
    assert len(examples) >= 2
    for line in examples:
        output = CliRunner().invoke(app, line.split())
        assert output.exit_code == 0, output.exception
        assert "score of 50 items: A" in output.output and "semantic" not in re.sub(
            r"Only B holds, and so not compared: .*", "", output.output
        )
    text = CliRunner().invoke(app, examples[0].split()).output
    assert text.count("score of 50 items: A") == 4 and "Only B holds, and so not compared: babi, semantic, spatial." in text
    assert "4 suites, each compared apart; no p is corrected for their number." in text
    output = json.loads(CliRunner().invoke(app, [*examples[0].split(), "--json"]).output)
    assert [two["suite"] for two in output["suites"]] == sorted(name for name in fake_records.SUITES if name.startswith("episodic"))


def test_the_command_writes_both_forms_and_says_what_is_wrong(run, tmp_path):
    call = CliRunner().invoke
    output = call(app, ["compare", "mine:hei_nw", "mine:rag_bm25"])
    assert output.exit_code == 0 and "McNemar's exact p" in output.output
    file = tmp_path / "found.json"
    assert call(app, ["compare", "mine:hei_nw", "mine:rag_bm25", "--json", "--output", str(file)]).exit_code == 0
    assert {two["kind"] for two in json.loads(file.read_text())["suites"]} == {"this lab"}
    assert call(app, ["compare", "mine:hei_nw", "mine:rag_bm25", "--suite", "semantic", "--json", "--output", str(file)]).exit_code == 0
    assert json.loads(file.read_text())["suite"] == "semantic"
    wrong = call(app, ["compare", "mine:hei_nw", "nowhere"])
    assert isinstance(wrong.exception, LabError) and "samples_*.jsonl" in str(wrong.exception)


TABLE = Table(columns=("layer", "text", "perplexity"), unit="layer", cluster="text", measures=("perplexity",), text=("text",))


@pytest.fixture
def tables(tmp_path):
    """Two cells that differ in a share, which makes what they measure larger by it."""
    for share in (0.0, 0.5):
        folder = tmp_path / f"zeroed/test/tiny_1/cell-{int(10 * share)}"
        parameters = {"run_id": "run", "model": "tiny", "seed": 1, "share": share}
        meta = {"parameters": parameters, "experiment": "mine:ZEROED", "step": "test", "table": TABLE.described()}
        begin_record(folder, {"parameters": parameters}, meta)
        rows = [{"layer": n, "text": f"t{text}", "perplexity": text + n / 10 + share} for text in range(12) for n in range(3)]
        finish_record(folder, pd.DataFrame(rows), {"metrics": {}}, {"seconds": 1.0})
        seal(folder)
    return tmp_path


def test_cells_of_a_run_are_compared_by_unit_within_clusters_and_less_is_better(tables):
    comparison = compare_runs(open_log(f"{tables}:share=0.5"), open_log(f"{tables}:share=0"))
    assert (comparison.metric, comparison.higher_is_better) == ("perplexity", False)
    assert comparison.result.difference == pytest.approx(0.5) and comparison.result.n == 36 and comparison.result.n_worlds == 12
    assert (comparison.result.only_a, comparison.result.only_b) == (0, 36)
    assert comparison.differs == {"share": ("0.5", "0.0")}


@pytest.mark.parametrize(
    ("chosen", "says"), [("", "differ in share; choose one, as RUN:share=VALUE"), (":share=7", "nothing is"), (":core", "share=0.05")]
)
def test_what_is_not_one_condition_is_one_line(tables, chosen, says):
    with pytest.raises(LabError) as error:
        open_log(f"{tables}{chosen}")
    assert says in str(error.value) and "\n" not in str(error.value)
