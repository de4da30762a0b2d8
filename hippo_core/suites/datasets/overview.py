"""What the notebook of the data sets shows: their cards as a table, broken rules, an example world, what they are made of."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.files import root, write_text
from hippo_core.spoken import number_of
from hippo_core.suites import get_suite
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.build import load_dataset, write_dataset
from hippo_core.suites.datasets.validate import rules, shared_facts
from hippo_core.suites.draw import worlds
from hippo_core.suites.folder import is_own
from hippo_core.suites.types import Split, World

SHOWN = 200  # facts and questions of an example


def build_all(
    suites: Sequence[str], profile: str, n: int, seed: int, context_limit: int, overrides: Mapping[str, Any] | None = None
) -> list[Path]:
    """Build (or find) the data sets of several suites; their folders in the same order."""
    return [write_dataset(suite, profile, n, seed, context_limit, overrides) for suite in suites]


def load(folder: Path, split: Split) -> list[World]:
    """The worlds of a built data set; none where it has no such split."""
    meta = card.read_card(folder)
    if split not in meta["splits"]:
        return []
    return load_dataset(meta["suite"], meta["profile"], meta["n"], meta["seed"], split, meta["context_limit"] or 0, meta["overrides"])


def card_table(folders: Sequence[Path]) -> pd.DataFrame:
    """One row a data set and split, from the cards: how many worlds, facts and questions, and a guesser's mean accuracy."""
    rows = []
    for folder in folders:
        meta = card.read_card(folder)
        for split, counts in meta["splits"].items():
            chances = [item.chance for world in load(folder, split) for item in world.items]
            sizes = {name: counts[name] for name in ("worlds", "facts", "items")}
            chance = sum(chances) / len(chances) if chances else math.nan  # a suite may have no questions in a split
            rows.append({"suite": meta["suite"], "split": split, **sizes, "chance": chance, "primary": meta["primary"]})
    return pd.DataFrame(rows)


def broken_rules(folders: Sequence[Path], n_train: int = 200) -> pd.DataFrame:
    """All findings of the validator; for shared facts the first `n_train` questions of the train worlds stand for these."""
    rows = []
    for folder in folders:
        meta = card.read_card(folder)
        suite, least = get_suite(meta["suite"]), meta["settings"]["n_competitors"]
        splits = {split: load(folder, split) for split in meta["splits"]}
        findings = [(split, finding) for split, split_worlds in splits.items() for finding in rules(split_worlds, suite, least)]
        if not is_own(meta["suite"]):
            arguments = (meta["suite"], meta["profile"], n_train, meta["seed"], "train", meta["context_limit"] or 0, meta["overrides"])
            splits["train"] = list(worlds(*arguments))
        findings += [("all", finding) for finding in shared_facts(suite, **splits)]
        rows += [(meta["suite"], split, finding.rule, finding.world, finding.item, finding.message) for split, finding in findings]
    return pd.DataFrame(rows, columns=["suite", "split", "rule", "world", "item", "message"])


def example(folder: Path, number: int = 0) -> str:
    """A world of the test split as text: what is taught, what is asked, the answer and where it comes from."""
    world = load(folder, "test")[number]
    number_of = {fact.id: i for i, fact in enumerate(world.facts, 1)}
    fact_lines = [f"{number_of[fact.id]:3d}  {fact.text}" for fact in world.facts[:SHOWN]]
    item_lines = []
    for item in world.items[:SHOWN]:
        gold = ", ".join(str(number_of[fact]) for fact in item.gold_facts)
        item_lines.append(f"  ?  {item.question}  ->  {item.answers[0]}   ({item.kind}, {item.rung}; from {gold})")
    for lines, count in ((fact_lines, len(world.facts)), (item_lines, len(world.items))):
        lines += [f"     and {count - SHOWN:,} more"] if count > SHOWN else []
    return "\n".join([f"{card.read_card(folder)['suite']}, world {world.id}", "", *fact_lines, "", *item_lines])


def composition(folders: Sequence[Path]) -> pd.DataFrame:
    """How many test questions there are of each kind and on each rung: columns suite, by, name, items."""
    rows = []
    for folder in folders:
        meta = card.read_card(folder)
        for by in ("kinds", "rungs"):
            rows += [(meta["suite"], by, name, count) for name, count in meta["splits"]["test"][by].items()]
    return pd.DataFrame(rows, columns=["suite", "by", "name", "items"])


def sentence(table: pd.DataFrame, broken: pd.DataFrame) -> str:
    """What was built and whether it keeps the rules, in one sentence from the numbers."""
    suites, chance = len(set(table["suite"])), table["chance"].mean()
    verdict = (
        "all rules are kept" if broken.empty else f"{len(broken)} findings break rules in {', '.join(sorted(broken['suite'].unique()))}"
    )
    nouns = {"items": "question", "facts": "fact", "worlds": "world"}  # by their columns
    questions, facts, worlds = (number_of(sum(table[column].tolist()), noun) for column, noun in nouns.items())
    asked = f"{number_of(suites, 'suite')} with {questions} about {facts} in {worlds}"
    return f"{asked}: {verdict}; a blind guess is right in {chance:.0%} of the cases on average."


def keep_table(table: pd.DataFrame, record_dir: str) -> None:
    """Write the table as `datasets.csv` into a record's folder (from the repository's root); nothing where none is named."""
    if record_dir:
        write_text(root() / record_dir / "datasets.csv", table.to_csv(index=False))
