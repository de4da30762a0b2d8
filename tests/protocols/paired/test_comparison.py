"""Conditions are compared item by item, on the same suite byte by byte; repeats add no items, and shuffled labels make no difference."""

import json
import math
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from hippo_core.errors import LabError
from hippo_core.protocols.paired import archiving, page
from hippo_core.protocols.paired.comparison import PER_ITEM, compare_conditions, pairs_of, read_run_condition, run_condition
from hippo_core.protocols.paired.gate import Policy, judged
from hippo_core.protocols.paired.report import comparison_sentences, picture
from hippo_core.protocols.paired.rerun import reproduce
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.run_files import read_run, write_run
from hippo_core.protocols.paired.scoring import SCORES
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.protocols.paired.summary import by_condition
from hippo_core.results.formatting import html, probability, quantity, share
from hippo_core.results.statistics.paired import holm
from tests.protocols.paired import suites

SETTINGS = {"conditions": ("no-memory", "lexical", "random-memory", "full-context"), "encoder": "own"}


def make(path, folder, **changes):
    suite, settings = read_suite(folder), RunSettings(**{**SETTINGS, **changes})
    rows = run(suite, settings, "hippo-tiny", log=lambda line: None)
    return read_run(write_run(path, suite, settings, rows, {"model": "hippo-tiny"}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return suites.write(tmp_path_factory.mktemp("s"))


@pytest.fixture(scope="module")
def paired_run(tmp_path_factory, folder):
    return make(tmp_path_factory.mktemp("runs") / "one", folder)


@pytest.fixture(scope="module")
def thrice(tmp_path_factory, folder):
    return make(tmp_path_factory.mktemp("runs") / "thrice", folder, repeats=3)


def test_a_page_corrects_the_p_of_worlds_not_that_of_items():
    """All items of a world fare alike: in nine of twelve worlds the memory alone succeeds, in three of them word search alone."""
    items = pd.DataFrame({"item": [f"i{number:02}" for number in range(60)], "world": [f"w{number // 5:02}" for number in range(60)]})
    items = items.assign(type="", tags="", **dict.fromkeys((*SCORES, *PER_ITEM), 0.0))
    better = (items["world"] < "w09").astype(float)
    by_condition = {"full-memory": better, "lexical": 1 - better, "no-memory": 0 * better}
    pairs = pairs_of(pd.concat([items.assign(condition=name, success=right) for name, right in by_condition.items()], ignore_index=True))
    by_baseline = {pair["baseline"]: pair for pair in pairs}
    assert by_baseline["lexical"]["p_mid"] < 0.001 < 0.05 < by_baseline["lexical"]["p_permutation"]
    assert [pair["p_holm"] for pair in pairs] == pytest.approx(holm([pair["p_permutation"] for pair in pairs]))
    lexical, nothing = by_baseline["lexical"], by_baseline["no-memory"]
    assert lexical["p_holm"] == lexical["p_permutation"] > nothing["p_holm"] == 2 * nothing["p_permutation"]


def test_a_perfect_condition_against_none_and_against_one_that_ranks_nothing(paired_run):
    pair = compare_conditions(run_condition(paired_run, "no-memory"), run_condition(paired_run, "lexical"))
    assert (pair.success.n, pair.gained, pair.lost, pair.success.difference) == (26, 26, 0, 1.0)
    assert pair.p_mcnemar == pytest.approx(2 * 0.5**26) and pair.p_mid == pytest.approx(0.5**26)
    pair = compare_conditions(run_condition(paired_run, "full-context"), run_condition(paired_run, "lexical"))
    assert (pair.success.n, pair.success.n_unscored, pair.success.difference) == (13, 13, 0.0)


def test_a_page_says_what_share_the_candidate_harms_and_mid_p_beside_the_exact_one(paired_run):
    pair = compare_conditions(run_condition(paired_run, "lexical"), run_condition(paired_run, "random-memory"))
    worse = sum(pair.discordant["gained"] == 0)
    assert pair.lost == worse > 0 and pair.success.harmed == pytest.approx(worse / pair.success.n)
    text = page.markdown([pair])
    [line] = [row for row in text.splitlines() if row.startswith("| success |")]
    assert line.split("|")[-2].strip().startswith(share(pair.success.harmed))
    assert f"exact p {probability(pair.p_mcnemar)}, mid-p {probability(pair.p_mid)}: " in text


def test_repeats_add_no_items_and_no_certainty(paired_run, thrice):
    once, often = (
        compare_conditions(run_condition(run_, "random-memory"), run_condition(run_, "lexical")) for run_ in (paired_run, thrice)
    )
    assert (once.success.n, once.p_mcnemar, once.success.p_permutation) == (often.success.n, often.p_mcnemar, often.success.p_permutation)
    assert often.costs[1].tokens == 3 * once.costs[1].tokens and often.costs[1].per_success == once.costs[1].per_success


def test_costs_and_what_agents_passed_are_paired_and_a_silent_success_makes_no_token_cheaper(paired_run):
    rows = paired_run.rows.copy()
    ours, theirs = rows["condition"] == "lexical", rows["condition"] == "no-memory"
    for name, own in (("tokens_in", 10.0), ("tokens_out", 2.0), ("answer_s", 0.03), ("steps_passed", 0.75)):
        rows.loc[ours, name], rows.loc[theirs, name] = own, own / 2
    rows["recall_s"] = math.nan
    rows.loc[ours & (rows["world"] == "amber"), "answer_s"] = 0.04
    rows.loc[ours & (rows["item"] == "amber-g"), ["tokens_in", "tokens_out"]] = math.nan
    marked = type(paired_run)(paired_run.folder, paired_run.about, rows)
    pair = compare_conditions(run_condition(marked, "no-memory"), run_condition(marked, "lexical"))
    compared = {name: (each.n, each.n_unscored, each.difference) for name, each in pair.cost_metrics.items()}
    assert compared["tokens"] == (25, 1, 6.0) and compared["seconds"][:2] == (26, 0) and pair.metrics["steps_passed"].difference == 0.375
    assert (pair.costs[1].per_success, pair.costs[1].successes, pair.costs[1].unstated) == (12.0, 26, 1)
    assert math.isinf(pair.costs[0].per_success)
    seconds = pair.cost_metrics["seconds"]
    assert 0.014 < seconds.low < seconds.difference < seconds.high < 0.018  # no share, though within 0 and 1
    interval = f"+{quantity(seconds.low)} to +{quantity(seconds.high)}"
    text = page.markdown([pair])
    for line in ("| tokens | 25 | 6.00 | 12.0 | +6.00 |", "| steps_passed | 26 | 0.38 | 0.75 | +0.38 |", f"| +0.0158 | {interval} |"):
        assert line in text
    assert by_condition(rows).set_index("condition").loc["lexical", "tokens a success"] == "12"


def test_a_picture_leaves_no_figure_that_a_notebook_would_show_again():
    numbers = dict.fromkeys([*SCORES, *PER_ITEM], 0.0)
    asked = [{"item": f"i{world}", "world": f"w{world}", "type": "t", "tags": "", "success": float(world), **numbers} for world in range(2)]
    before = plt.get_fignums()
    rows = pd.DataFrame([{"condition": name, **item} for name in ("lexical", "full-memory") for item in asked])
    assert picture(rows).startswith(b"\x89PNG")
    assert plt.get_fignums() == before


@pytest.mark.parametrize("name", ["notes", "human"])
def test_runs_on_other_files_are_not_compared(tmp_path, paired_run, name):
    other = suites.write(tmp_path / "s")
    path = {"notes": "notes.jsonl", "human": "human_notes/amber.md"}[name]
    (other / path).open("a").write("\n")
    run_ = make(tmp_path / "run", other, conditions=("lexical",))
    with pytest.raises(LabError, match="not comparable"):
        compare_conditions(run_condition(paired_run, "lexical"), run_condition(run_, "lexical"))


def test_a_run_is_written_once_and_not_altered(tmp_path, paired_run, folder):
    suite = read_suite(folder)
    with pytest.raises(LabError, match="never written over"):
        write_run(paired_run.folder, suite, RunSettings(**SETTINGS), [], {})
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "run.json").write_bytes((paired_run.folder / "run.json").read_bytes())
    (copy / "results.jsonl").write_text((paired_run.folder / "results.jsonl").read_text().replace('"success": 0.0', '"success": 1.0', 1))
    with pytest.raises(LabError, match="not what the run wrote"):
        read_run(copy)


def test_a_run_is_reproduced_answer_by_answer(paired_run, folder):
    assert reproduce(paired_run, read_suite(folder), "hippo-tiny", lambda line: None) == []


def test_an_archive_is_complete_or_refused(tmp_path, paired_run, folder):
    target = tmp_path / "run.tar.gz"
    sums = archiving.archive(paired_run, read_suite(folder), target)
    assert {"run/results.jsonl", "suite/notes.jsonl", "suite/human_notes/amber.md"} <= sums.keys()
    assert archiving.verify(target) == sums
    archiving.archive(paired_run, read_suite(folder), tmp_path / "again.tar.gz")
    assert target.read_bytes() == (tmp_path / "again.tar.gz").read_bytes()
    target.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
    with pytest.raises(LabError, match="no archive, or cut off"):
        archiving.verify(target)


def test_a_gate_fails_on_floors_and_on_groups_that_are_not_there(paired_run):
    pair = compare_conditions(run_condition(paired_run, "no-memory"), run_condition(paired_run, "lexical"))
    assert all(rule.passed for rule in judged(pair, Policy(min_paired_items=26, max_mcnemar_p=0.01, min_candidate_success=1.0)))
    rules = judged(pair, Policy.model_validate({"min_paired_items": 27, "groups": {"tag:rare": {}}, "metrics": {"topic_recall": 0.0}}))
    assert [rule.name for rule in rules if not rule.passed] == ["paired items", "topic_recall, difference", "tag:rare"]


@pytest.mark.parametrize(
    "value",
    [
        "<script>alert(1)</script> | x",
        "![x](http://evil.test/x.png)",
        "[x](javascript:alert(1)) [y][z] [z]: http://evil.test",
        "<http://evil.test> &lt;img src=x&gt;",
        "` ![x](http://evil.test/x.png) `",
        "\\![x](http://evil.test/x.png) \\| \\<img src=x>",
        "\x1b]0;title\x07 \x1b[2J \x9b31m \r over \u202e turned",
    ],
)
@pytest.mark.parametrize("column", ["answer", "question", "tags"])
def test_pages_show_text_as_text(paired_run, value, column):
    rows = paired_run.rows.copy()
    rows.loc[rows["condition"] == "lexical", column] = value
    about = {**paired_run.about, "suite": {**paired_run.about["suite"], "version": value}, "run_group_id": value}
    marked = type(paired_run)(paired_run.folder, about, rows)
    shown = page.markdown([compare_conditions(run_condition(marked, "no-memory"), run_condition(marked, "lexical"))])
    assert "## lexical against no-memory" in shown and "26" in shown
    for text in (html(shown, value), MarkdownIt("commonmark", {"html": True}).enable("table").render(shown)):
        elements = Elements()
        elements.feed(text)
        assert elements.names <= PLAIN and not elements.attributes & {"src", "href", "onerror"}
    assert not [letter for letter in shown if letter != "\n" and not letter.isprintable()]


PLAIN = {*["html", "head", "meta", "title", "style", "body", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td"]}


class Elements(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self):
        super().__init__()
        self.names, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_condition_that_was_not_run_is_named(paired_run):
    with pytest.raises(LabError, match="no condition 'graph'; it holds: no-memory, lexical"):
        read_run_condition(f"{paired_run.folder}:graph")
    assert json.loads((paired_run.folder / "run.json").read_text())["run_group_id"] == paired_run.folder.name


def test_a_report_says_first_of_which_conditions_the_memory_is_clearly_ahead_and_behind():
    def pair(name, difference, p):
        values = dict.fromkeys(("p_mid", "p_mcnemar", "p_permutation", "p_holm"), p) | {"n": 50, "gained": 9, "lost": 1}
        means = {"mean_a": 0.5, "mean_b": 0.5 - difference, "difference": difference, "low": None, "high": None}
        return {"baseline": name, **values, **means}

    against, of_all = comparison_sentences([pair("lexical", 0.1, 0.3), pair("no-memory", 0.4, 0.001), pair("oracle-memory", -0.3, 0.002)])
    assert "lexical at 0.40: a difference of +0.10, 9 gained and 1 lost" in against
    clear = "clearly ahead of no-memory (+0.40); clearly behind oracle-memory (−0.30); not clearly different from lexical (+0.10)"
    assert of_all == f"Of all conditions, corrected for their number, full-memory is {clear}."
    assert comparison_sentences([]) == []
