"""Conditions are compared item by item, on the same suite byte by byte; repeats add no items, and shuffled labels make no difference."""

import json
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from hippo_core.errors import LabError
from hippo_core.protocols.paired import archiving, page
from hippo_core.protocols.paired.comparison import PER_ITEM, compare_sides, pairs_of, read_side, side
from hippo_core.protocols.paired.figures import picture
from hippo_core.protocols.paired.gate import Policy, judged
from hippo_core.protocols.paired.report import found_of
from hippo_core.protocols.paired.rerun import reproduce
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.run_files import read_run, write_run
from hippo_core.protocols.paired.scoring import SCORES
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.results.formatting import probability, share
from hippo_core.results.markdown import html
from hippo_core.results.statistics.paired import holm
from tests.protocols.paired import suites

TOLD = {"conditions": ("no-memory", "lexical", "random-memory", "full-context"), "encoder": "own"}


def make(place, folder, **told):
    suite, settings = read_suite(folder), RunSettings(**{**TOLD, **told})
    rows = run(suite, settings, "hippo-tiny", say=lambda line: None)
    return read_run(write_run(place, suite, settings, rows, {"model": "hippo-tiny"}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return suites.write(tmp_path_factory.mktemp("s"))


@pytest.fixture(scope="module")
def one(tmp_path_factory, folder):
    return make(tmp_path_factory.mktemp("runs") / "one", folder)


@pytest.fixture(scope="module")
def thrice(tmp_path_factory, folder):
    return make(tmp_path_factory.mktemp("runs") / "thrice", folder, repeats=3)


def test_a_page_corrects_the_p_of_worlds_not_that_of_items():
    """All items of a world fare alike: in nine of twelve worlds the memory alone succeeds, in three of them word search alone."""
    items = pd.DataFrame({"item": [f"i{number:02}" for number in range(60)], "world": [f"w{number // 5:02}" for number in range(60)]})
    items = items.assign(type="", tags="", **dict.fromkeys((*SCORES, *PER_ITEM), 0.0))
    ahead = (items["world"] < "w09").astype(float)
    sides = {"full-memory": ahead, "lexical": 1 - ahead, "no-memory": 0 * ahead}
    pairs = pairs_of(pd.concat([items.assign(condition=name, success=right) for name, right in sides.items()], ignore_index=True))
    told = {pair["baseline"]: pair for pair in pairs}
    assert told["lexical"]["p_mid"] < 0.001 < 0.05 < told["lexical"]["p_permutation"]
    assert [pair["p_holm"] for pair in pairs] == pytest.approx(holm([pair["p_permutation"] for pair in pairs]))
    lexical, nothing = told["lexical"], told["no-memory"]
    assert lexical["p_holm"] == lexical["p_permutation"] > nothing["p_holm"] == 2 * nothing["p_permutation"]


def test_a_perfect_condition_against_none(one):
    pair = compare_sides(side(one, "no-memory"), side(one, "lexical"))
    assert (pair.success.n, pair.gained, pair.lost, pair.success.difference) == (26, 26, 0, 1.0)
    assert pair.p_mcnemar == pytest.approx(2 * 0.5**26) and pair.p_mid == pytest.approx(0.5**26)


def test_a_page_says_what_share_the_candidate_harms_and_mid_p_beside_the_exact_one(one):
    pair = compare_sides(side(one, "lexical"), side(one, "random-memory"))
    worse = sum(pair.discordant["gained"] == 0)
    assert pair.lost == worse > 0 and pair.success.harmed == pytest.approx(worse / pair.success.n)
    text = page.markdown([pair])
    [line] = [row for row in text.splitlines() if row.startswith("| success |")]
    assert line.split("|")[-2].strip().startswith(share(pair.success.harmed))
    assert f"exact p {probability(pair.p_mcnemar)}, mid-p {probability(pair.p_mid)}: " in text


def test_repeats_add_no_items_and_no_certainty(one, thrice):
    once, often = (compare_sides(side(found, "random-memory"), side(found, "lexical")) for found in (one, thrice))
    assert (once.success.n, once.p_mcnemar, once.success.p_permutation) == (often.success.n, often.p_mcnemar, often.success.p_permutation)
    assert often.spent[1].tokens == 3 * once.spent[1].tokens and often.spent[1].per_success == once.spent[1].per_success


def test_what_one_side_gives_no_value_to_is_left_out(one):
    pair = compare_sides(side(one, "full-context"), side(one, "lexical"))
    assert (pair.success.n, pair.success.n_unscored, pair.success.difference) == (13, 13, 0.0)


def test_a_picture_leaves_no_figure_that_a_notebook_would_show_again():
    numbers = dict.fromkeys([*SCORES, *PER_ITEM], 0.0)
    asked = [{"item": f"i{world}", "world": f"w{world}", "type": "t", "tags": "", "success": float(world), **numbers} for world in range(2)]
    before = plt.get_fignums()
    rows = pd.DataFrame([{"condition": name, **one} for name in ("lexical", "full-memory") for one in asked])
    assert picture(rows).startswith(b"\x89PNG")
    assert plt.get_fignums() == before


@pytest.mark.parametrize("name", ["notes", "items", "suite", "human"])
def test_runs_on_other_files_are_not_compared(tmp_path, one, name):
    other = suites.write(tmp_path / "s")
    path = {"notes": "notes.jsonl", "items": "items.jsonl", "suite": "suite.yaml", "human": "human_notes/amber.md"}[name]
    (other / path).open("a").write("\n")
    run_ = make(tmp_path / "run", other, conditions=("lexical",))
    with pytest.raises(LabError, match="not comparable"):
        compare_sides(side(one, "lexical"), side(run_, "lexical"))


def test_a_run_is_written_once_and_not_altered(tmp_path, one, folder):
    suite = read_suite(folder)
    with pytest.raises(LabError, match="never written over"):
        write_run(one.folder, suite, RunSettings(**TOLD), [], {})
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "run.json").write_bytes((one.folder / "run.json").read_bytes())
    (copy / "results.jsonl").write_text((one.folder / "results.jsonl").read_text().replace('"success": 0.0', '"success": 1.0', 1))
    with pytest.raises(LabError, match="not what the run wrote"):
        read_run(copy)


def test_a_run_is_reproduced_answer_by_answer(one, folder):
    assert reproduce(one, read_suite(folder), "hippo-tiny", lambda line: None).differing == ()


def test_an_archive_is_whole_or_refused(tmp_path, one, folder):
    target = tmp_path / "run.tar.gz"
    sums = archiving.archive(one, read_suite(folder), target)
    assert {"run/results.jsonl", "suite/notes.jsonl", "suite/human_notes/amber.md"} <= sums.keys()
    assert archiving.verify(target) == sums
    archiving.archive(one, read_suite(folder), tmp_path / "again.tar.gz")
    assert target.read_bytes() == (tmp_path / "again.tar.gz").read_bytes()
    target.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
    with pytest.raises(LabError, match="no archive, or cut off"):
        archiving.verify(target)


def test_a_gate_fails_on_floors_and_on_groups_that_are_not_there(one):
    pair = compare_sides(side(one, "no-memory"), side(one, "lexical"))
    assert all(rule.passed for rule in judged(pair, Policy(min_paired_items=26, max_mcnemar_p=0.01, min_candidate_success=1.0)))
    rules = judged(pair, Policy.model_validate({"min_paired_items": 27, "groups": {"tag:rare": {}}, "metrics": {"topic_recall": 0.0}}))
    assert [rule.name for rule in rules if not rule.passed] == ["paired items", "topic_recall, difference", "tag:rare"]


@pytest.mark.parametrize(
    "said",
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
def test_pages_show_text_as_text(one, said, column):
    rows = one.rows.copy()
    rows.loc[rows["condition"] == "lexical", column] = said
    about = {**one.about, "suite": {**one.about["suite"], "version": said}, "run_group_id": said}
    marked = type(one)(one.folder, about, rows)
    shown = page.markdown([compare_sides(side(marked, "no-memory"), side(marked, "lexical"))])
    assert "## lexical against no-memory" in shown and "26" in shown
    for text in (html(shown, said), MarkdownIt("commonmark", {"html": True}).enable("table").render(shown)):
        found = Elements()
        found.feed(text)
        assert found.names <= PLAIN and not found.attributes & {"src", "href", "onerror"}
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


def test_a_condition_that_was_not_run_is_named(one):
    with pytest.raises(LabError, match="no condition 'graph'; it holds: no-memory, lexical"):
        read_side(f"{one.folder}:graph")
    assert json.loads((one.folder / "run.json").read_text())["run_group_id"] == one.folder.name


def test_a_report_says_first_of_which_conditions_the_memory_is_clearly_ahead_and_behind():
    def pair(name, difference, p):
        told = dict.fromkeys(("p_mid", "p_mcnemar", "p_permutation", "p_holm"), p) | {"n": 50, "gained": 9, "lost": 1}
        means = {"mean_a": 0.5, "mean_b": 0.5 - difference, "difference": difference, "low": None, "high": None}
        return {"baseline": name, **told, **means}

    against, of_all = found_of([pair("lexical", 0.1, 0.3), pair("no-memory", 0.4, 0.001), pair("oracle-memory", -0.3, 0.002)])
    assert "lexical at 0.40: a difference of +0.10, 9 gained and 1 lost" in against
    clear = "clearly ahead of no-memory (+0.40); clearly behind oracle-memory (−0.30); not clearly different from lexical (+0.10)"
    assert of_all == f"Of all conditions, corrected for their number, full-memory is {clear}."
    assert found_of([]) == []
