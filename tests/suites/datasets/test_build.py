"""Data sets are the same every time, hold exactly n items, survive damage with a clear error, and clash with no other builder."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root, sha256
from hippo_core.suites import drawn_suites, get_suite, settings_for
from hippo_core.suites.babi import public
from hippo_core.suites.datasets import card, overview
from hippo_core.suites.datasets.build import dataset_folder, load_dataset, write_dataset
from hippo_core.suites.datasets.jsonl import FACT_FIELDS, ITEM_FIELDS
from hippo_core.suites.draw import worlds
from hippo_core.suites.splits import SPLITS
from tests.texts import needs


@pytest.mark.parametrize("suite", drawn_suites())
@pytest.mark.parametrize("split", SPLITS)
def test_the_same_arguments_give_the_same_worlds(suite, split):
    first, again = (list(worlds(suite, "default", 12, 7, split)) for _ in range(2))
    assert first == again
    assert sum(len(world.items) for world in first) == 12
    assert first != list(worlds(suite, "default", 12, 8, split))


@pytest.mark.parametrize("suite", drawn_suites())
def test_a_larger_n_begins_with_the_same_worlds(suite):
    few, many = (list(worlds(suite, "default", n, 7, "test")) for n in (20, 40))
    complete = few[:-1]
    assert many[: len(complete)] == complete


def test_train_worlds_stream_without_end():
    stream = worlds("spatial", "default", None, 1, "train")
    assert [world.id for world in islice(stream, 3)] == ["train-00000", "train-00001", "train-00002"]


@pytest.mark.parametrize(("suite", "profile"), [*((suite, "default") for suite in drawn_suites()), ("spatial", "explore_hard")])
def test_what_is_written_is_what_is_read(elsewhere, suite, profile):
    for split in ("val", "test"):
        assert load_dataset(suite, profile, 10, 3, split) == list(worlds(suite, profile, 10, 3, split))


def test_every_line_of_a_drawn_data_set_has_every_field(elsewhere):
    """Items have a truth where the facts do not score them."""
    without = tuple(name for name in ITEM_FIELDS if name != "truth")
    for profile, item_fields in (("default", without), ("paths_5", without), ("explore", ITEM_FIELDS)):
        folder = write_dataset("spatial", profile, n=5, overrides={"exits_share": 0, "neighbor_share": 0, "step_count_share": 0})
        for name, fields in (("facts", FACT_FIELDS), ("items", item_fields)):
            assert {tuple(json.loads(line)) for line in (folder / f"test/{name}.jsonl").open()} == {fields}


def test_the_folder_is_named_after_what_was_asked(elsewhere):
    base = elsewhere / "data/generated"
    assert dataset_folder("spatial", "hard", 50, 1337) == base / "spatial/hard/50_1337"
    assert dataset_folder("episodic_capacity", "default", 50, 1, 256) == base / "episodic_capacity/default/50_1_c256"
    assert dataset_folder("spatial", "default", 50, 1, 512, {"grid_size": 5}).name.startswith("50_1_")


def test_the_card_describes_the_data_set(elsewhere):
    content = card.read_card(write_dataset("babi", n=20))
    assert content["suite"] == "babi"
    assert content["splits"]["test"]["items"] == content["splits"]["val"]["items"] == 20
    assert set(content["exempt_from"]) == {"one gold", "answer told", "competitors", "no shared facts"}
    assert "this repository's" in content["licence"]
    assert sum(content["splits"]["test"]["kinds"].values()) == 20


@needs(*public.files(public.TASKS))
def test_the_card_of_public_stories_names_their_licence(elsewhere):
    content = card.read_card(write_dataset("babi", "public", n=20))
    assert "CC BY 3.0" in content["licence"]
    assert "public test files" in content["split_rule"]
    assert content["source"] != card.read_card(write_dataset("babi", n=20))["source"]


def test_the_card_has_the_command_to_build_it_again(elsewhere):
    folder = write_dataset("spatial", n=5, overrides={"grid_size": 3})
    code = card.read_card(folder)["rebuild"].removeprefix('python -c "').removesuffix('"')
    before = (folder / "test/facts.jsonl").read_bytes()
    folder.rename(elsewhere / "aside")
    exec(code, {})
    assert (folder / "test/facts.jsonl").read_bytes() == before


def test_a_data_set_is_built_again_where_it_is_of_other_code_or_settings(elsewhere):
    folder = write_dataset("spatial", n=5)
    before, content = folder.stat().st_ino, card.read_card(folder)
    assert write_dataset("spatial", n=5).stat().st_ino == before
    outdated(folder)
    assert load_dataset("spatial", n=5)
    assert card.read_card(folder) == content


def outdated(folder):
    """Makes a data set one that was built from something else."""
    (folder / card.CARD).write_text(json.dumps({**card.read_card(folder), "source": "older"}))
    sums = json.loads((folder / card.CHECKSUMS).read_text())
    (folder / card.CHECKSUMS).write_text(json.dumps({**sums, card.CARD: sha256(folder / card.CARD)}))


@pytest.mark.parametrize("own", ["notes.txt", "test/mine.jsonl", "more/facts.jsonl", "test/items.jsonl"])
def test_an_outdated_data_set_with_a_file_of_the_users_is_not_deleted(elsewhere, own):
    folder = write_dataset("spatial", n=5)
    outdated(folder)
    (folder / own).parent.mkdir(exist_ok=True)
    (folder / own).write_text("mine")
    with pytest.raises(LabError, match="in the place of a data set and holds none as it was built"):
        load_dataset("spatial", n=5)
    assert (folder / own).read_text() == "mine"


@pytest.mark.parametrize("left", [(), ("test/facts.jsonl",), ("test/facts.jsonl", "val/items.jsonl", "dataset_card.json")])
def test_a_list_of_checksums_that_leaves_a_file_out_is_refused(elsewhere, left):
    folder = write_dataset("spatial", n=5)
    sums = json.loads((folder / card.CHECKSUMS).read_text())
    (folder / card.CHECKSUMS).write_text(json.dumps({name: sums[name] for name in left}))
    with pytest.raises(LabError, match=r"is not in checksums\.json"):
        load_dataset("spatial", n=5)


@pytest.mark.parametrize("renewed", [False, True])
def test_builders_at_the_same_time_do_not_clash(elsewhere, renewed):
    if renewed:
        outdated(write_dataset("spatial", n=40))
    with ThreadPoolExecutor(4) as pool:
        [folder] = set(pool.map(lambda _: write_dataset("spatial", n=40), range(8)))
    assert len(load_dataset("spatial", n=40)) == 8
    assert [path.name for path in folder.parent.iterdir()] == ["40_1337"]


def test_damage_is_named_with_its_remedy(elsewhere):
    remedy = "move the folder .*away.*make datasets"
    for name in ("val/facts.jsonl", "val/items.jsonl", "test/facts.jsonl", "test/items.jsonl", "checksums.json", "dataset_card.json"):
        path = write_dataset("spatial", n=5) / name
        original = path.read_bytes()
        path.write_bytes(original.replace(b"north", b"south", 1) + b"\n" if path.suffix == ".jsonl" else b"{")
        with pytest.raises(LabError, match=f"{name} (has another checksum|is not valid JSON).*{remedy}"):
            load_dataset("spatial", n=5)
        path.unlink()
        with pytest.raises(LabError, match=f"{name} is missing; {remedy}"):
            load_dataset("spatial", n=5)
        path.write_bytes(original)


def test_nothing_is_left_of_a_build_that_fails(elsewhere):
    with pytest.raises(LabError):
        write_dataset("spatial", n=5, overrides={"n_items": 200})
    assert not list((elsewhere / "data").glob("generated/spatial/default/*"))
    assert not list((elsewhere / "data").glob("generated/spatial/default/.*"))


def test_an_unknown_name_lists_the_legal_names():
    with pytest.raises(LabError, match=r"unknown suite 'spacial'; legal: .*spatial"):
        get_suite("spacial")
    with pytest.raises(LabError, match=r"unknown profile of suite spatial 'easy'; legal: base, default, explore, .*hard, .*paths_9"):
        settings_for("spatial", "easy")
    with pytest.raises(LabError, match=r"unknown setting of suite spatial 'gridsize'; legal: .*grid_size"):
        settings_for("spatial", "default", {"gridsize": 3})
    with pytest.raises(LabError, match=r"grid_size: .*integer.*got 'big'"):
        settings_for("spatial", "default", {"grid_size": "big"})
    with pytest.raises(LabError, match=r"unknown split 'dev'; legal: test, train, val"):
        worlds("spatial", split="dev")
    with pytest.raises(LabError, match="at least 1, got 0"):
        worlds("spatial", n=0)
    with pytest.raises(LabError, match="train worlds are streamed"):
        load_dataset("spatial", split="train")


def test_the_context_limit_reaches_the_suites_that_use_it():
    short, long = (next(worlds("episodic_capacity", n=1, context_limit=limit)) for limit in (128, 512))
    assert len(short.facts) < len(long.facts)
    assert next(worlds("spatial", n=1, context_limit=128)) == next(worlds("spatial", n=1, context_limit=512))


# What the notebook of the data sets shows


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
