"""What the notebook of the data sets shows agrees with the worlds themselves."""

import pytest

from hippo_core.files import root
from hippo_core.suites.datasets import overview
from hippo_core.suites.draw import worlds


@pytest.fixture
def folders(elsewhere):
    return overview.build_all(["episodic", "spatial", "babi"], "default", 20, 5, 512)


def test_the_table_counts_the_content_of_the_worlds(folders):
    table = overview.card_table(folders).set_index(["suite", "split"])
    chosen = list(worlds("spatial", "default", 20, 5, "val"))
    row = table.loc[("spatial", "val")]
    assert (row["worlds"], row["facts"], row["items"]) == (len(chosen), sum(len(world.facts) for world in chosen), 20)
    assert row["chance"] == pytest.approx(sum(item.chance for world in chosen for item in world.items) / 20)


def test_a_split_without_questions_has_no_chance(folders, monkeypatch):
    monkeypatch.setattr(overview, "load", lambda folder, split: [])
    assert overview.card_table(folders)["chance"].isna().all()


def test_rules_are_checked_and_the_sentence_reports_it(folders):
    table, broken = overview.card_table(folders), overview.broken_rules(folders, n_train=20)
    assert broken.empty
    assert "3 suites with 120 questions" in overview.sentence(table, broken)
    assert "all rules are kept" in overview.sentence(table, broken)


def test_the_example_names_the_facts_that_carry_the_answers(folders):
    world = next(worlds("spatial", "default", 20, 5, "test"))
    text = overview.example(folders[1])
    assert all(fact.text in text for fact in world.facts)
    assert all(f"{item.question}  ->  {item.answers[0]}" in text for item in world.items)


def test_the_table_is_kept_only_where_a_record_is_named(folders):
    table = overview.card_table(folders)
    overview.keep_table(table, "")
    overview.keep_table(table, "executed/x")
    assert (root() / "executed/x/datasets.csv").read_text().count("\n") == 7
