"""Two runs are paired item by item, whoever wrote them; what cannot be paired is refused, and what is said of the pairs is right."""

import json
import random
import zipfile

import pytest
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar
from typer.testing import CliRunner

from hippo_core.files import LabError
from hippo_core.lab.cli.commands import app
from hippo_core.results.two_runs import as_json, as_markdown, compare_runs, open_log
from tests.results import fake_records
from tests.results.two_runs.logs import harness_lines, inspect_header, inspect_samples, write_eval, write_harness

A = [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1] * 4
B = [1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0] * 4


@pytest.fixture(params=["harness", "inspect", "inspect json"])
def written(request, tmp_path):
    """A function that writes answers as a log and gives its path."""

    def write(name, right, **options):
        if request.param == "harness":
            return str(write_harness(tmp_path / name, harness_lines(right), **options))
        if request.param == "inspect":
            return str(write_eval(tmp_path / f"{name}.eval", inspect_samples(right), **options))
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(inspect_header(**options) | {"samples": inspect_samples(right)}))
        return str(path)

    return write


def test_the_difference_and_its_tests_are_those_of_the_pairs(written):
    found = compare_runs(open_log(written("a", A), "group"), open_log(written("b", B, model="other"), "group"))
    only_a, only_b = (sum(x > y for x, y in zip(*pair, strict=True)) for pair in ((A, B), (B, A)))
    assert (found.result.only_a, found.result.only_b, found.result.n) == (only_a, only_b, len(A))
    assert found.result.difference == pytest.approx((sum(A) - sum(B)) / len(A))
    both = [[sum(x == y == 1 for x, y in zip(A, B, strict=True)), only_a], [only_b, sum(x == y == 0 for x, y in zip(A, B, strict=True))]]
    assert found.result.p_mcnemar == pytest.approx(mcnemar(both, exact=True).pvalue)
    assert found.result.p_mcnemar == pytest.approx(binomtest(only_b, only_a + only_b).pvalue)
    assert found.result.n_worlds == len(A) // 2
    assert "model" in found.differs and "task" not in found.differs
    assert len(found.discordant) == only_a + only_b
    assert {"nobody"} == set(found.discordant[found.discordant["better"] == "a"]["pred_b"])


def test_swapped_sides_turn_the_signs(written):
    a, b = open_log(written("a", A)), open_log(written("b", B))
    one, two = compare_runs(a, b).result, compare_runs(b, a).result
    assert (one.difference, one.low, one.only_a) == (-two.difference, pytest.approx(-two.high), two.only_b)


def test_one_answer_more_is_one_discordant_pair_more(written):
    a, b = open_log(written("a", A)), open_log(written("b", B))
    other = open_log(written("c", [*B[:-1], 1]))
    assert compare_runs(a, b).result.only_a == compare_runs(a, other).result.only_a + 1


def test_the_order_of_lines_says_nothing(tmp_path):
    lines = harness_lines(B)
    shuffled = random.Random(1).sample(lines, len(lines))
    a = open_log(str(write_harness(tmp_path / "a", harness_lines(A))), "group")
    plain, mixed = (open_log(str(write_harness(tmp_path / name, some)), "group") for name, some in (("b", lines), ("c", shuffled)))
    assert compare_runs(a, plain).result == compare_runs(a, mixed).result


def test_runs_whose_items_differ_are_refused(written):
    a = open_log(written("a", A))
    with pytest.raises(LabError, match=r"same items: 2 of 48 only in .*Another seed, limit"):
        compare_runs(a, open_log(written("b", B[:-2])))


def test_the_same_number_with_another_question_is_another_item(tmp_path):
    lines = harness_lines(B)
    lines[3] = {**lines[3], "arguments": {"gen_args_0": {"arg_0": "Who bought lot 3?"}}}
    a, b = (open_log(str(write_harness(tmp_path / name, some))) for name, some in (("a", harness_lines(A)), ("b", lines)))
    with pytest.raises(LabError, match="question"):
        compare_runs(a, b)
    lines = harness_lines(B)
    lines[3] = {**lines[3], "doc_hash": "0" * 64}
    with pytest.raises(LabError, match="1 of 48 only in"):
        compare_runs(a, open_log(str(write_harness(tmp_path / "c", lines))))


def test_two_kinds_of_logs_are_no_pair(tmp_path):
    a = open_log(str(write_harness(tmp_path / "a", harness_lines(A))))
    b = open_log(str(write_eval(tmp_path / "b.eval", inspect_samples(B))))
    with pytest.raises(LabError, match="within one kind"):
        compare_runs(a, b)


def test_metrics_are_chosen_by_name(tmp_path):
    a, b = (open_log(str(write_harness(tmp_path / name, harness_lines(right)))) for name, right in (("a", A), ("b", B)))
    assert compare_runs(a, b, "f1").result.difference == pytest.approx(0.5 * compare_runs(a, b, "exact_match").result.difference)
    with pytest.raises(LabError, match="shared: exact_match, f1"):
        compare_runs(a, b, "acc")


def test_a_filter_and_a_task_are_asked_for_where_there_are_several(tmp_path):
    write_harness(tmp_path / "a", harness_lines(A, ("strict", "flexible")))
    with pytest.raises(LabError, match="--filter: strict, flexible"):
        open_log(str(tmp_path / "a"))
    assert open_log(str(tmp_path / "a"), filter_name="strict").rows["item_id"].is_unique
    write_harness(tmp_path / "a", harness_lines(A), task="others")
    with pytest.raises(LabError, match="--task"):
        open_log(str(tmp_path / "a"))
    assert open_log(str(tmp_path / "a"), task="others").about["task"] == "others"


def test_of_a_task_the_last_date_counts(tmp_path):
    write_harness(tmp_path, harness_lines(B), date="2026-11-22T10-00-00.000000")
    write_harness(tmp_path, harness_lines(A), date="2026-11-23T10-00-00.000000")
    assert open_log(str(tmp_path)).rows["exact_match"].mean() == sum(A) / len(A)


def test_epochs_of_a_sample_are_one_item(tmp_path):
    samples = inspect_samples(A, epochs=2)
    samples[0]["scores"]["match"]["value"] = "I"
    log = open_log(str(write_eval(tmp_path / "a.eval", samples)))
    assert len(log.rows) == len(A) and log.rows["match"][0] == 0.5
    assert set(log.metrics) == {"match", "graded/fluent", "graded/true"}


def test_a_sample_that_was_logged_again_counts_once(tmp_path):
    samples = inspect_samples(A)
    path = write_eval(tmp_path / "a.eval", samples)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        again = json.dumps({**samples[0], "scores": {"match": {"value": "I"}}})
        archive.writestr(f"samples/{samples[0]['id']}_epoch_1.json", again)
    log = open_log(str(path))
    assert log.rows["match"][0] == 0 and len(log.rows) == len(A)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), r"line 12, column \d+"),
        (lambda path: path.write_text('{"doc_id": 1}\n'), "line 1: no 'doc'"),
        (lambda path: path.write_text("[1]\n"), "line 1: expected an object"),
        (lambda path: path.write_text(""), "no items"),
        (lambda path: path.write_bytes(b'{"doc": "\xff"}'), "no JSON text"),
    ],
)
def test_a_damaged_log_of_the_harness_is_told_by_line(tmp_path, damage, told):
    path = write_harness(tmp_path, harness_lines(A[:12]))
    damage(path)
    with pytest.raises(LabError, match=told):
        open_log(str(path))


def test_a_damaged_or_unfinished_evaluation_is_refused(tmp_path):
    path = write_eval(tmp_path / "a.eval", inspect_samples(A))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(LabError, match="cut off"):
        open_log(str(path))
    with pytest.raises(LabError, match="'started'"):
        open_log(str(write_eval(tmp_path / "b.eval", inspect_samples(A), status="started")))
    failed = inspect_samples(A)
    failed[2]["error"] = {"message": "no answer"}
    with pytest.raises(LabError, match=r"lot 2_epoch_1.*ended with an error"):
        open_log(str(write_eval(tmp_path / "c.eval", failed)))
    with zipfile.ZipFile(tmp_path / "d.eval", "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(LabError, match=r"no header\.json"):
        open_log(str(tmp_path / "d.eval"))
    with pytest.raises(LabError, match="metadata: no 'topic'; there are: group"):
        open_log(str(write_eval(tmp_path / "e.eval", inspect_samples(A))), "topic")


def test_below_ten_clusters_there_is_no_interval(tmp_path):
    a, b = (open_log(str(write_harness(tmp_path / name, harness_lines(right[:16]))), "group") for name, right in (("a", A), ("b", B)))
    text = as_markdown(compare_runs(a, b))
    assert "No interval: 8 clusters are fewer than 10." in text and "Each item counts as independent" not in text


def test_what_is_written_holds_every_discordant_item_and_no_number_that_is_none(written):
    found = compare_runs(open_log(written("a", A)), open_log(written("b", B)))
    told = json.loads(as_json(found))
    assert len(told["discordant"]) == found.result.only_a + found.result.only_b
    assert told["comparison"]["difference"] == found.result.difference
    text = as_markdown(found, most=3)
    assert f"## A alone better: {found.result.only_a}, 3 of them" in text and text.count("Who sold lot") == 3 + min(3, found.result.only_b)
    assert "Each item counts as independent" in text
    metric = "f1" if "f1" in found.a.metrics else "graded/fluent"
    unlike = json.loads(as_json(compare_runs(found.a, found.b, metric)))
    assert unlike["comparison"]["p_mcnemar"] is None or metric == "graded/fluent"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of this lab with two conditions on two suites."""
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    place = tmp_path / "executed" / "mine"
    for suite in ("episodic", "semantic"):
        for preset in ("baselines/rag_bm25", "memory/hei_nw"):
            fake_records.add_record(place, suite, preset, "delayed", n=60)
    return place


def test_runs_of_this_lab_are_told_by_preset_and_suite(run):
    with pytest.raises(LabError, match=r"choose one, as RUN:PRESET: baselines/rag_bm25@episodic/delayed"):
        open_log("mine")
    both = compare_runs(open_log("mine:hei_nw"), open_log("mine:rag_bm25"))
    one = compare_runs(open_log("mine:memory/hei_nw@semantic"), open_log(f"{run}:rag_bm25@semantic/delayed"))
    assert (both.result.n, both.result.n_worlds, one.result.n) == (120, 24, 60)
    assert both.a.clustered and set(both.differs) == {"preset"}
    with pytest.raises(LabError, match="no rows of 'nothing'"):
        open_log("mine:nothing")
    with pytest.raises(LabError, match="no column 'colour'"):
        open_log("mine:hei_nw", "colour")
    assert compare_runs(open_log("mine:hei_nw", "rung"), open_log("mine:rag_bm25", "rung")).result.n_worlds < 24


def test_the_command_writes_both_forms_and_says_what_is_wrong(run, tmp_path):
    call = CliRunner().invoke
    told = call(app, ["compare", "mine:hei_nw", "mine:rag_bm25"])
    assert told.exit_code == 0 and "McNemar's exact p" in told.output
    file = tmp_path / "found.json"
    assert call(app, ["compare", "mine:hei_nw", "mine:rag_bm25", "--json", "--output", str(file)]).exit_code == 0
    assert json.loads(file.read_text())["kind"] == "this lab"
    wrong = call(app, ["compare", "mine:hei_nw", "nowhere"])
    assert isinstance(wrong.exception, LabError) and "samples_*.jsonl" in str(wrong.exception)
