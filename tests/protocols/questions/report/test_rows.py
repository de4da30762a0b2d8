"""The table of rows beside a report gives its tables of scores again, to the letter, and holds no text of any item."""

import gzip
import re
import shutil

import numpy as np
import pytest

from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.protocols.questions.report.writing import LARGE, write_rows_of
from tests.protocols.questions.report.rows_again import contradicted, read_run, tables_of
from tests.results import fake_records


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The report of a run with two models, two seeds, worlds of two kinds, validation cells, answers not scored, scores between 0 and 1,
    a score that never varies and one of another kind (paths)."""
    run = tmp_path_factory.mktemp("executed") / "many"
    for seed in (1, 2):
        for preset in ("baselines/span_short", "baselines/rag_bm25"):
            for regime in ("immediate", "delayed") if preset == "baselines/span_short" else ("delayed",):
                fake_records.add_record(run, "episodic", preset, regime, n=20, seed=seed)
    rows = fake_records.make_rows("episodic", "controls/oracle", "delayed", n=20, seed=1)
    rows.loc[rows["idx"] % 7 == 0, ["score", "em_norm", "recall_1"]] = np.nan
    fake_records.add_record(run, "episodic", "controls/oracle", "delayed", n=20, seed=1, rows=rows)
    rows = fake_records.make_rows("episodic", "memory/hei_nw", "delayed", n=20, seed=1).assign(score=1.0)
    rows["composed_by"] = np.where(rows["idx"] % 4 == 0, "model", "program, model copies")
    fake_records.add_record(run, "episodic", "memory/hei_nw", "delayed", n=20, seed=1, rows=rows)
    fake_records.add_record(run, "episodic", "baselines/rag_bm25", "delayed", n=15, seed=1, split="val")
    rows = fake_records.make_rows("spatial", "baselines/rag_bm25", "delayed", n=20)
    rows = rows.assign(score=(rows["idx"] % 4) / 3, success=(rows["idx"] % 4) / 3)
    fake_records.add_record(run, "spatial", "baselines/rag_bm25", "delayed", n=20, model="large", rows=rows)
    return write_report(run, tmp_path_factory.mktemp("reports")).parent


@pytest.fixture
def report(out, tmp_path):
    """A copy that may be altered."""
    for path in [out / "rows.csv", *out.rglob("*.md")]:
        (tmp_path / path.relative_to(out)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(out))
    return tmp_path


def test_a_report_is_what_its_rows_say(out):
    assert contradicted(out) == []
    files = [file for file, _ in tables_of(read_run(out))]
    summaries = sorted(path.relative_to(out).as_posix() for path in out.glob("*/summary.md"))
    assert sorted(set(files)) == sorted(["index.md", *summaries]) and len(summaries) == 2
    assert files.count("index.md") == 4  # each model, validation worlds, held-out words


def test_a_table_of_conditions_says_who_computed_the_answers(out):
    """Where one of its records knows it; of another there is a dash."""
    page, other = sorted((path.read_text(encoding="utf-8") for path in out.glob("*/summary.md")), key=lambda text: "hei_nw" not in text)
    lines = {line.split(" | ")[0]: line for line in page.split("## Conditions, delayed")[1].split("\n## ")[0].splitlines()}
    assert lines["| hei_nw"].endswith("| program, model copies 0.75 |") and lines["| rag_bm25"].endswith(" | – |")
    assert "answered by" in page and "answered by" not in other


def test_every_table_of_scores_is_tied(out):
    """In the sections that show scores by condition, rung or kind there is no line that the rows do not give."""
    given = {line for _, table in tables_of(read_run(out)) for line in table.splitlines()}
    page = (out / "index.md").read_text(encoding="utf-8")
    shown = [page.split(f"## {title}")[1].split("\n## ")[0] for title in ("At a glance", "Held-out words and names")]
    for path in out.glob("*/summary.md"):
        parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        shown += [part for part in parts if part.startswith(("Conditions", "By rung", "By kind", "Held-out"))]
    lines = [line for text in shown for line in text.splitlines() if line.startswith("|")]
    assert len(shown) == 10 and [line for line in lines if line not in given] == []


def test_a_number_altered_in_a_report_is_found(report):
    for path in report.rglob("*.md"):
        for section in ("## At a glance", "## Conditions, delayed", "## By rung", "## Held-out"):
            before = path.read_text(encoding="utf-8")
            head, mark, rest = before.partition(section)
            changed = re.sub(r"\| (0\.\d\d|1\.00) \|", "| 0.123 |", rest, count=1)
            if mark and changed != rest:
                path.write_text(head + mark + changed, encoding="utf-8")
                wrong = contradicted(report)
                assert wrong and all(line.startswith(path.relative_to(report).as_posix()) and "0.123" not in line for line in wrong)
                path.write_text(before, encoding="utf-8")


def test_the_rows_hold_no_text_of_items(out):
    text = (out / "rows.csv").read_text(encoding="utf-8")
    assert not any(words in text for words in ("Where did", *fake_records.WHERE, *fake_records.WHO, "I cannot say"))


def test_lines_are_sorted_and_each_stands_once(out):
    lines = (out / "rows.csv").read_text(encoding="utf-8").splitlines()[1:]
    keys = [line.split(",")[:12] for line in lines]
    assert keys == sorted(keys) and max(keys.count(key) for key in keys) <= 2  # twice: scored answers and others


def test_many_rows_are_packed_and_replace_what_was_there(tmp_path):
    fake_records.add_record(tmp_path / "run", "episodic", "baselines/rag_bm25", "delayed", n=20)
    small = write_rows_of(load_run(tmp_path / "run"), tmp_path)
    for preset in ("baselines/core", "controls/random_facts", "controls/oracle"):
        fake_records.add_record(tmp_path / "run", "episodic", preset, "delayed", n=1000)
    large = write_rows_of(load_run(tmp_path / "run"), tmp_path)
    assert (small.name, large.name) == ("rows.csv", "rows.csv.gz") and not small.exists()
    assert len(gzip.decompress(large.read_bytes())) > LARGE > large.stat().st_size
    assert len(read_run(tmp_path).rows) == 3020
