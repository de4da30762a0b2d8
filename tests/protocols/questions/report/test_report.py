"""The report: every number leads to its items, nothing unescaped, nothing made up, the same records give the same bytes."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.methods.presets import preset_names
from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.report import tables, warnings
from hippo_core.protocols.questions.report.runs import LISTED, load_run
from hippo_core.results import summaries
from hippo_core.results.conditions import ordered
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import probability, quantity, share, span
from hippo_core.results.verdicts import by_group
from tests.results import fake_records

SUITES = ("episodic", "episodic_cross")
NASTY = '<script>alert("x")</script> | & "quoted"'


class Page(HTMLParser):
    """The links, ids and balance of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.links, self.ids, self.open, self.scripts, self.loads = [], set(), [], 0, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.scripts += tag == "script"
        self.loads += [values[name] for name in ("src", "srcset", "data") if values.get(name)]
        if tag == "link":
            self.loads.append(values.get("href"))
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag not in ("meta", "br", "img", "input", "link", "circle", "line", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and tag in self.open:
            assert self.open.pop() == tag, f"</{tag}> closes something else"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = fake_records.build_run(tmp_path_factory.mktemp("executed") / "trial", SUITES)
    rows = fake_records.make_rows("episodic", "memory/hei_nw", "delayed")
    rows.loc[0, ["pred", "prompt", "score", "em_norm"]] = [NASTY, NASTY, 0.0, 0.0]
    rows.loc[:, "kv_mb"] = np.nan
    fake_records.add_record(folder, "episodic", "memory/hei_nw", "delayed", rows=rows)
    fake_records.add_record(folder, "episodic", "baselines/rag_bm25", "delayed", split="val")
    fake_records.add_record(folder, "episodic", "baselines/rag_bm25", "delayed", overrides=("k=5",))
    fake_records.add_record(folder, "episodic", "memory/smpd", "delayed", failed="LabError: no <map> here\n")
    return folder


@pytest.fixture(scope="module")
def out(run) -> Path:
    return write_report(run, run.parent.parent / "reports" / "trial").parent


def test_pages_are_whole_and_load_nothing_from_elsewhere(out):
    for path in [out / "index.html", *(out / "items").glob("*.html")]:
        page = Page(path)
        assert page.open == []
        assert [source for source in page.loads if not source.startswith("data:")] == []
        assert page.scripts == 1


def test_every_link_leads_somewhere(out):
    pages = {path: Page(path) for path in [out / "index.html", *(out / "items").glob("*.html")]}
    for path, page in pages.items():
        for link in page.links:
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.exists() or target.name == "notebook.failed.ipynb", link
            if anchor and target in pages and "=" not in anchor:
                assert unquote(anchor) in pages[target].ids, link


def test_a_score_leads_to_the_items_behind_it_in_two_clicks(out):
    links = Page(out / "index.html").links
    first = next(link for link in links if "memory--hei_nw" in link)
    rows = (out / first.partition("#")[0]).read_text(encoding="utf-8")
    assert rows.count("<tr id=") == 50 and "<summary>prompt" in rows


def test_links_to_differing_items_name_columns_that_are_there(out):
    text = (out / "items" / "episodic.html").read_text(encoding="utf-8")
    columns = set(re.findall(r'<th data-column="([^"]+)"', text))
    wanted = {unquote(name) for link in Page(out / "index.html").links for name in re.findall(r"episodic\.html#a=([^&]+)&b=", link)}
    assert wanted and wanted <= columns


def test_answers_are_escaped_everywhere(out):
    for path in [out / "index.html", *(out / "items").glob("*.html")]:
        assert "<script>alert" not in path.read_text(encoding="utf-8")
    assert any("&lt;script&gt;alert" in path.read_text(encoding="utf-8") for path in (out / "items").glob("*hei_nw*"))
    assert "no &lt;map&gt; here" in (out / "index.html").read_text(encoding="utf-8")


def test_what_was_not_measured_is_a_dash_and_never_nan(out):
    for path in [out / "index.html", out / "index.md", *out.glob("*/summary.md"), *(out / "items").glob("*.html")]:
        text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", path.read_text(encoding="utf-8"))
        assert not re.search(r"\b(nan|inf|None|NaT)\b", text, re.IGNORECASE if path.suffix == ".md" else 0), path
    summary = (out / "episodic" / "summary.md").read_text(encoding="utf-8")
    assert re.search(r"^\| core \|.*\| – \| – \|", summary, re.MULTILINE)


def test_markdown_tables_keep_their_columns(out):
    for path in [out / "index.md", *out.glob("*/summary.md")]:
        width = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not (width and bars) or bars == width, f"{path}: {line}"
            width = bars


def test_criteria_are_all_there_and_the_page_counts_them(out):
    criteria = json.loads((out / "criteria.json").read_text())["criteria"]
    counts = by_group(criteria)
    page = (out / "index.html").read_text(encoding="utf-8")
    for group, own in counts.items():
        line = page.split(f"criteria, {group}:")[1].split("</div>")[0]
        assert all(f"<b>{count}</b>{verdict}" in line for verdict, count in own.items())
    assert sum(sum(own.values()) for own in counts.values()) == len(criteria) > 0


def test_what_is_not_judged_is_one_line_a_question_and_reason(out):
    criteria = [
        criterion for criterion in json.loads((out / "criteria.json").read_text())["criteria"] if criterion["verdict"] == "not judged"
    ]
    [line] = [line for line in (out / "index.md").read_text(encoding="utf-8").splitlines() if "repeats its words?" in line]
    matches = [criterion for criterion in criteria if criterion["id"].startswith("rag_exact/")]
    assert [criterion["suite"] for criterion in matches] == ["episodic", "episodic_cross"] and line.endswith(matches[0]["reason"])
    assert line.startswith(f"- {matches[0]['question']} (episodic · delayed; episodic_cross · delayed): ")


def test_scores_on_validation_worlds_stand_apart_and_lead_nowhere(out):
    text = (out / "index.md").read_text(encoding="utf-8")
    table = text[text.index("On validation worlds") :].split("## ")[0]
    assert "| rag_bm25 |" in table and "hei_nw" not in table
    page = (out / "index.html").read_text(encoding="utf-8")
    there = page[page.index("<summary>On validation worlds") :].split("</details>")[0]
    assert "rag_bm25" in there and "href" not in there


def test_what_differs_in_a_number_stands_along_an_axis_and_one_condition_makes_a_report(tmp_path):
    folder = tmp_path / "run"
    for n in (8, 128, 512):
        fake_records.add_record(folder, "episodic", "memory/hei_nw", "delayed", overrides=(f"n_facts={n}",))
    page = write_report(folder, tmp_path / "report")
    assert "Presets without a record in this run" in page.read_text() and "seed 1337" in page.read_text()
    assert 'href="#sweeps"' in page.read_text() and (tmp_path / "report/figures/sweep_1_n_facts.png").is_file()
    text = (tmp_path / "report/index.md").read_text()
    assert "## episodic along n_facts" in text and "| answers right | | n_facts = 8 | interval | n_facts = 128 |" in text


def test_the_same_records_give_the_same_bytes_wherever_they_lie(run, out, tmp_path):
    copy = tmp_path / "elsewhere" / "executed" / "trial"
    copy.parent.mkdir(parents=True)
    copy.symlink_to(run)
    again = write_report(copy, tmp_path / "elsewhere" / "reports" / "trial").parent
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    links = re.compile(rb'href="(\.\./)+[^"]*"')
    assert [name for name in files if links.sub(b"", (out / name).read_bytes()) != links.sub(b"", (again / name).read_bytes())] == []


def test_an_empty_run_is_one_clear_error(tmp_path):
    with pytest.raises(LabError, match=r"no run at .* make grid"):
        write_report(tmp_path / "none", tmp_path / "report")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match="no finished record"):
        write_report(tmp_path / "empty", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_report_never_lies_among_the_records(run):
    with pytest.raises(LabError, match="name another folder"):
        write_report(run, run / "report")


def test_what_was_not_measured_names_presets_that_exist_and_no_others(out):
    page = (out / "index.md").read_text(encoding="utf-8")
    [line] = re.findall(r"Presets without a record in this run: (.*)\.$", page, re.MULTILINE)
    assert set(line.split(", ")) <= set(preset_names()) and "memory/hei_nw_gated" in line and "baselines/core" not in line


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({}, "EM norm"),
        ({"suite": "semantic"}, "EM raw"),
        ({"score": 0.5}, "the suite's own measure"),
        ({"score": 0.0, "em_raw": 0.0, "em_norm": 1.0}, "EM raw"),
        ({"score": 1.0, "em_norm": 0.0, "success": 1.0}, "success"),
        ({"score": 0.5, "em_norm": 0.0, "success": 1.0}, "the suite's own measure"),
    ],
)
def test_the_score_is_named_after_what_it_is(scores, words):
    rows = fake_records.make_rows("episodic", "baselines/core", "delayed", n=10)
    rows = rows.assign(suite="episodic", em_raw=rows["score"]).assign(**scores)
    assert tables.primary(rows) == words


def test_recall_of_a_control_is_marked_as_that_of_its_memory(tmp_path):
    folder = tmp_path / "run"
    rows = fake_records.make_rows("episodic", "baselines/rag_bm25", "delayed", n=10)
    for preset, control in (("memory/hei_nw", "none"), ("controls/empty_store", "empty"), ("mine/newest_shuffled", "shuffled")):
        fake_records.add_record(folder, "episodic", preset, "delayed", n=10, rows=rows, control=control)
    page = write_report(folder, tmp_path / "report").read_text(encoding="utf-8")
    summary = (tmp_path / "report/episodic/summary.md").read_text(encoding="utf-8").split("## Conditions")[1].split("\n## ")[0]
    marked = [line.split("|")[1].strip() for line in summary.splitlines() if "‡ |" in line]
    assert marked == ["empty_store", "newest_shuffled (control=shuffled)"]
    assert "‡ This control ranks facts as its memory does" in page and "‡ This control ranks facts as its memory does" in summary


def test_of_many_seeds_some_are_listed_and_the_others_counted(tmp_path):
    for seed in range(23):
        fake_records.add_record(tmp_path / "run", "babi", "baselines/core", "delayed", n=5, seed=seed)
    page = write_report(tmp_path / "run", tmp_path / "report")
    assert len(list((page.parent / "items").glob("*babi--*.html"))) == LISTED
    assert all((page.parent / link.partition("#")[0]).exists() for link in Page(page).links if link.startswith("items/"))
    text = page.read_text(encoding="utf-8")
    assert "seed 0 to 22 (23)" in text and f"Listed are {LISTED} of 23 records" in text and "115 answers" in text
    assert f"Listed are {LISTED} of 23 records" in (page.parent / "items" / "babi.html").read_text(encoding="utf-8")


def test_validation_worlds_belong_to_what_they_are_drawn_like_however_many_they_are(tmp_path):
    folder = tmp_path / "run"
    cells = [(100, 1, "test", ""), (20, 1, "test", ""), (20, 2, "test", ""), (10, 1, "val", ""), (100, 1, "test", "8"), (10, 1, "val", "9")]
    for n, seed, split, facts in cells:
        overrides = (f"n_facts={facts}",) if facts else ()
        fake_records.add_record(folder, "episodic", "baselines/rag_bm25", "delayed", n=n, seed=seed, split=split, overrides=overrides)
    run = load_run(folder)
    assert run.settings == ["episodic · n=20", "episodic · n=100", "episodic · n_facts=8 · n=100"]
    assert run.rows.groupby("setting")["cluster"].nunique().to_dict() == dict(zip(run.settings, (8, 20, 20), strict=True))
    assert [len(run.validation_of(setting)) for setting in run.settings] == [10, 10, 0]
    page = Page(write_report(folder, tmp_path / "report"))
    assert [link for link in page.links if link.startswith("items/") and not (tmp_path / "report" / link.partition("#")[0]).exists()] == []
    assert sum("items/" in link and "val" in link for link in page.links) == 0  # no page of worlds that nothing is said about


def test_a_run_on_the_models_own_vectors_says_so(out):
    verdicts = json.loads((out / "criteria.json").read_text())["criteria"]
    judged = next(verdict for verdict in verdicts if verdict["id"] == "rag_delayed/episodic")
    assert "rag with the model's own vectors" in judged["reason"]
    page = (out / "index.md").read_text(encoding="utf-8")
    assert "episodic · delayed · rag with the model's own vectors" in page and "Retrieval with a published encoder" in page


def test_warnings_fire_on_what_they_are_about_and_not_otherwise(run):
    calm = load_run(run).rows.query("setting == 'episodic_cross'").assign(flags="", refusal=0.0)
    assert not [text for text in warnings.warnings(calm, calm[:0]) if "oracle" not in text]
    loud = calm.assign(score=np.where(calm["condition"] == "controls/oracle", 0.0, 1.0), refusal=1.0, flags="truncated")
    joined = " ".join(warnings.warnings(loud, calm[:0]))
    due = ("Saturated", "refuses 100%", "oldest facts were left out", "without the facts, where chance", "oracle: 0.00")
    assert [words for words in due if words not in joined] == []


def test_a_cell_outside_the_range_of_its_validation_cell_is_named(run):
    rows = load_run(run).rows.query("setting == 'episodic_cross' and condition == 'baselines/core'")
    assert warnings.warnings(rows, rows) == []
    assert "below the range" in " ".join(warnings.warnings(rows.assign(score=0.0, chance=0.5), rows.assign(score=1.0)))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (share(float("nan")), "–"),
        (share(-0.049, sign=True), "−0.05"),
        (share(0.001, sign=True), "0.00"),
        (share(0.9412, 0.94, 0.945), "0.941"),
        (span(0.1, None), "–"),
        (probability(0.0004), "< 0.001"),
        (quantity(1234.5), "1,234"),
        (quantity(0.0), "0"),
        (quantity(9.521), "9.52"),
    ],
)
def test_numbers_have_the_digits_they_deserve(shown, expected):
    assert shown == expected


@pytest.fixture(scope="module")
def two_models(tmp_path_factory) -> Path:
    """A run in which only the rags say an encoder, worlds of three sizes are told apart, and a second model is asked one suite."""
    folder = tmp_path_factory.mktemp("executed") / "both"
    presets = ("baselines/span_short", "baselines/rag_bm25", "baselines/rag_dense", "baselines/rag_hybrid", "controls/oracle")
    for model, suite, overrides in (
        ("small", "episodic", ()),
        ("large", "episodic", ()),
        ("large", "episodic", ("n_facts=128",)),
        ("large", "episodic", ("n_facts=8",)),
        ("large", "babi", ()),
    ):
        for preset in presets:
            settings = overrides + ("encoder=minilm",) * (preset in fake_records.ENCODED)
            for split in ("test", "val") if "rag" in preset else ("test",):
                fake_records.add_record(folder, suite, preset, "delayed", split=split, overrides=settings, model=model)
    fake_records.add_record(folder, "babi", "baselines/rag_dense", "delayed", model="large")
    fake_records.add_record(folder, "babi", "baselines/rag_bm25", "delayed", overrides=("preset.k=5",), model="large")
    return folder


def test_models_and_world_sizes_are_told_apart_and_an_encoder_is_part_of_the_condition(two_models):
    run = load_run(two_models)
    large = ["episodic", "episodic · n_facts=8", "episodic · n_facts=128", "babi"]
    assert run.settings == [*(f"large · {name}" for name in large), "small · episodic"]
    assert list(run.settings_of("large").values()) == large
    rows = run.rows[run.rows["setting"] == "large · babi"]
    rags = [name for name in ordered(rows["condition"]) if "rag" in name]
    labels = ("rag_bm25", "rag_bm25 (k=5)", "rag_dense", "rag_dense (minilm)", "rag_hybrid (minilm)")
    assert rags == [f"baselines/{name}" for name in labels]
    assert len({style_of(name).colour for name in rags}) == 4  # a variant looks like its preset, another encoder does not


def test_the_best_rag_of_a_setting_has_a_published_encoder_or_none(two_models):
    run = load_run(two_models)
    rows = run.rows[run.rows["setting"] == "large · babi"]
    worst = rows.assign(score=rows["condition"].isin(["baselines/rag_dense", "baselines/rag_bm25 (k=5)"]).astype(float))
    assert summaries.best_rag(worst) == ("baselines/rag_bm25", False)
    assert summaries.best_rag(rows, run.validation_of("large · babi"))[1]
    assert not summaries.best_rag(rows, run.validation_of("small · episodic").query("preset != 'baselines/rag_hybrid'"))[1]
    own = rows[rows["condition"].isin(["baselines/rag_dense", "controls/oracle"])]
    assert summaries.best_rag(own) == ("baselines/rag_dense", False)
    assert summaries.best_rag(own.query("preset == 'controls/oracle'")) == (None, False)


def test_a_report_of_two_models_mixes_nothing(two_models, tmp_path):
    page = write_report(two_models, tmp_path / "report")
    text = page.read_text(encoding="utf-8")
    assert text.index("<h3>large</h3>") < text.index("<h3>small</h3>")
    assert len(re.findall(r'id="[^"]+"', text)) == len(set(re.findall(r'id="[^"]+"', text)))
    assert Page(page).open == []
    text = (tmp_path / "report" / "index.md").read_text(encoding="utf-8")
    assert "## Verdicts on small: " in text and "| small | episodic |" in text
    assert "| large | episodic | episodic · n_facts=8 | episodic · n_facts=128 | babi |" in text
    assert "- small: no record of the suites babi." in text
    assert "rag_dense (minilm)" in (tmp_path / "report" / "small-episodic" / "summary.md").read_text(encoding="utf-8")
    verdicts = json.loads((tmp_path / "report" / "criteria.json").read_text())["criteria"]
    counts = sorted((verdict["model"], verdict["n"]) for verdict in verdicts if verdict["id"] == "rag_delayed/episodic")
    assert counts == [("large", 50), ("small", 50)]
    assert {verdict["model"] for verdict in verdicts if verdict["suite"] == "babi"} == {"large"}
    assert not any("own vectors" in verdict["reason"] for verdict in verdicts)
