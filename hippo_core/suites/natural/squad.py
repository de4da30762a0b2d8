"""SQuAD 1.1, development set: 2,067 passages of 48 Wikipedia articles and 10,570 questions, one answer each (Rajpurkar et al. 2016).

    taught   a passage of about 120 words, up to some 500
    asked    Which NFL team represented the AFC at Super Bowl 50?     gold: Denver Broncos

A world is an article; pooled, all passages of all articles are one. Articles are split, because passages of one article are similar: in the
order of the SHA-256 of their titles the first 30 are for training, 6 for validation, 12 for the test.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from random import Random

from hippo_core.errors import LabError
from hippo_core.suites.natural.passages import RUNG, PassageSettings, asked, asked_worlds, by_passage, facts_of, holding
from hippo_core.suites.types import Item, Split, Suite, World
from hippo_core.text_files import read_text

FILE = "squad"
TRAINED, VALIDATED = 30, 6  # articles; the rest is tested


class SquadSettings(PassageSettings):
    """`pooled`: one world of all passages; `single`: each passage is one; `every_article`: all are asked, whatever the split."""

    pooled: bool = False
    single: bool = False
    every_article: bool = False


@dataclass(frozen=True, slots=True)
class Article:
    """A Wikipedia article: its passages in order, each with its questions and their answers."""

    title: str
    passages: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    @property
    def id(self) -> str:
        """Its title as a name."""
        return "squad-" + re.sub(r"\W+", "-", self.title.lower()).strip("-")


@cache
def parse(text: str) -> tuple[Article, ...]:
    """The articles of a file's text, in its order."""
    by_title: dict[str, list[tuple[str, tuple[tuple[str, str], ...]]]] = {}
    for passage in json.loads(text):
        questions = tuple((question["question"].strip(), question["answer"]) for question in passage["questions"])
        by_title.setdefault(passage["title"], []).append((passage["context"], questions))
    return tuple(Article(title, tuple(passages)) for title, passages in by_title.items())


def of_split(articles: tuple[Article, ...], split: Split) -> tuple[Article, ...]:
    """The articles of a split, in the order of their titles' SHA-256."""
    ordered = sorted(articles, key=lambda article: sha256(article.title.encode()).hexdigest())
    cut = {"train": slice(TRAINED), "val": slice(TRAINED, TRAINED + VALIDATED), "test": slice(TRAINED + VALIDATED, None)}[split]
    return tuple(ordered[cut])


def world_of(articles: tuple[Article, ...], asking: tuple[Article, ...], settings: SquadSettings, name: str) -> World:
    """A world of the passages of some articles, and all questions about some of them."""
    rows, items = [], []
    for article in articles:
        rows += [(f"{article.id}.p{number}", article.title, text) for number, (text, _) in enumerate(article.passages)]
    facts = facts_of(name, rows, settings.chunk_words)
    parts_of = by_passage(facts)
    taught = tuple(fact.id for fact in facts)
    for article in asking:
        for number, (_, questions) in enumerate(article.passages):
            parts = parts_of[f"{article.id}.p{number}"]
            for count, (question, answer) in enumerate(questions):
                gold = parts[0].id if len(parts) == 1 else next(iter(holding(answer, parts)), parts[0].id)
                items.append(Item(f"{article.id}.q{number}.{count}", name, question, (answer,), (gold,), "span", rung=RUNG, taught=taught))
    return World(name, tuple(facts), tuple(items))


def stream(settings: SquadSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
    """The articles of a split in the seed's order, or all passages as one world; the questions are spread over the articles."""
    articles = parse(read_text(FILE))
    asking = articles if settings.every_article else of_split(articles, split)
    random = Random(f"squad/order/{seed}/{split}")
    asking = tuple(random.sample(asking, len(asking)))
    if settings.single:
        yield from single_passages(random, asking, settings, n)
        return
    if settings.pooled:
        worlds = [world_of(articles, asking, settings, "squad")]
    else:
        worlds = [world_of((article,), (article,), settings, article.id) for article in asking]
    yield from asked_worlds(worlds, n, "squad", seed, split)


def single_passages(random: Random, articles: tuple[Article, ...], settings: SquadSettings, n: int | None) -> Iterator[World]:
    """Each passage as a world: one of each article in turn, as `random` draws them. LabError where they have fewer than n questions."""
    most = sum(len(questions) for article in articles for _, questions in article.passages)
    if n is not None and n > most:
        raise LabError(f"squad has {most:,} questions about single passages of this split; {n:,} were asked for: lower n")
    article_worlds = [world_of((article,), (article,), settings, article.id) for article in articles]
    drawn = [random.sample(range(len(article.passages)), len(article.passages)) for article in articles]
    for indices in zip_longest(*drawn):
        for article, index in zip(article_worlds, indices, strict=True):
            if index is not None:
                name = f"{article.id}.p{index}"
                facts = [replace(fact, world=name) for fact in by_passage(article.facts)[name]]
                taught, own = tuple(fact.id for fact in facts), f"{article.id}.q{index}."
                items = [replace(item, world=name, taught=taught) for item in article.items if item.id.startswith(own)]
                yield World(name, asked(facts, items), tuple(items))


SQUAD = Suite(
    "squad",
    "questions of SQuAD about passages of Wikipedia",
    SquadSettings,
    answer_budget=16,
    has_window=False,
    stream=stream,
    files=lambda settings: (FILE,),
    split_rule="by article, in order of the SHA-256 of the titles: train 30, val 6, test 12",
)
