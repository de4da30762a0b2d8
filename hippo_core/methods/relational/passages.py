"""Passages that people wrote, joined where the text of one names the title of another, and what such a link is worth for a question.

    "Ed Wood is a film by Tim Burton."  ->  Tim Burton       a question about the film brings the passage about its director

A title is found as whole words, without what stands in brackets; the longest where several begin at one word. One word is found as it is
written, and not where it is a common word that a sentence begins with ("It"); several are found with other capitals and accents too, if any
has a capital. Links are read off a text when they are asked for, so that a passage is put in or taken out by its title alone.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from hippo_core.methods.base import Query
from hippo_core.methods.rag.rankers import Rag, RagSettings
from hippo_core.methods.relational.mentions import COMMON, begins
from hippo_core.methods.relational.settings import PassagesSection
from hippo_core.retrieval.bm25 import bm25_scores
from hippo_core.retrieval.encoders import dense_scores
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.ranking import ranked, standardised
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

WORD = re.compile(r"\w+")
BRACKETED = re.compile(r"\s*\([^()]*\)")
ROUNDS = 50  # of a walk; with damping .5 what is left by then is below 1e-15


def title_of(trace: Trace) -> str:
    """The title of a passage without its bracketed parts; "" where the text does not open with what its teller knew of the occasion."""
    title = trace.context_key
    return BRACKETED.sub("", title).strip() if title and trace.text.startswith(title) else ""


def are_passages(traces: Sequence[Trace]) -> bool:
    """Whether most of these open with a title of their own."""
    return 2 * sum(bool(title_of(trace)) for trace in traces) > len(traces)


@lru_cache(1 << 16)
def folded(word: str) -> str:
    """A word without case and accents."""
    return (
        word.lower()
        if word.isascii()
        else "".join(one for one in unicodedata.normalize("NFKD", word) if not unicodedata.combining(one)).casefold()
    )


class PassageGraph:
    """Passages by number, and which of them a text names: by the whole title, or by what stands before its comma ("Kiln, Kent") where
    that is no title itself."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.titles: dict[int, tuple[str, ...]] = {}
        self._about: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self._short: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self._names: dict[int, list[tuple[dict[tuple[str, ...], set[int]], tuple[str, ...]]]] = {}  # where each one's are kept
        self._lengths: dict[str, Counter[int]] = defaultdict(Counter)  # of names in words, by their first word
        self._holding: dict[str, set[int]] = defaultdict(set)  # the passages with a word
        self._links: dict[int, set[int]] = {}  # as they were read since the last change

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> "PassageGraph":
        """The graph of these traces, numbered as they stand."""
        graph = cls()
        for number, trace in enumerate(traces):
            graph.add(number, title_of(trace), trace.text)
        return graph

    def add(self, number: int, title: str, text: str) -> None:
        """Put a passage in, in the place of one that has its number."""
        if number in self.texts:
            self.remove(number)
        self.texts[number], self.titles[number] = text, tuple(WORD.findall(title))
        whole, short = (tuple(map(folded, WORD.findall(part))) for part in (title, title.partition(", ")[0]))
        self._names[number] = [(self._about, whole)] * bool(whole) + [(self._short, short)] * bool(short and short != whole)
        for kept, name in self._names[number]:
            kept[name].add(number)
            self._lengths[name[0]][len(name)] += 1
        for word in _words(text):
            self._holding[word].add(number)
        self._links.clear()

    def remove(self, number: int) -> None:
        """Take a passage out, with every link to it and from it; nothing where it is not there."""
        if (text := self.texts.pop(number, None)) is None:
            return
        del self.titles[number]
        for kept, name in self._names.pop(number):
            kept[name].discard(number)
            if not kept[name]:
                del kept[name]
            self._lengths[name[0]] -= Counter([len(name)])
        for word in _words(text):
            self._holding[word].discard(number)
        self._links.clear()

    def named(self, text: str) -> set[int]:
        """The passages whose titles a text names."""
        words, found, place = [*WORD.finditer(text)], set[int](), 0
        names = [folded(word.group()) for word in words]
        while place < len(words):
            step = 1
            for length in sorted(self._lengths.get(names[place], ()), reverse=True):
                name = tuple(names[place : place + length])
                passages = self._about.get(name) or self._short.get(name, ())
                if meant := self._meant(passages, words[place : place + length]):
                    found |= meant
                    step = length
                    break
            place += step
        return found

    def _meant(self, passages: Iterable[int], words: Sequence[re.Match[str]]) -> set[int]:
        """Of passages whose titles have these words, in whatever case and accents, those that are named by them."""
        written, first = tuple(word.group() for word in words), words[0]
        if len(words) > 1 and not all(word.islower() for word in written):
            return {*passages}
        if len(words) == 1 and folded(written[0]) in COMMON and begins(first.string, first.start()):
            return set()
        return {number for number in passages if self.titles[number][: len(written)] == written}

    def links(self, number: int) -> set[int]:
        """The other passages that a passage names."""
        if number not in self._links:
            self._links[number] = self.named(self.texts[number]) - {number}
        return self._links[number]

    def naming(self, number: int) -> set[int]:
        """The other passages that name a passage."""
        held = [set.intersection(*(self._holding.get(word, set()) for word in name)) for _, name in self._names[number]]
        return {other for other in set().union(*held) - {number} if number in self.links(other)}


def _words(text: str) -> set[str]:
    return {folded(word) for word in WORD.findall(text)}


def walk(pairs: Iterable[tuple[int, int]], size: int) -> csr_array:
    """The steps of a walk over these edges in both directions, columns adding up to 1, [size, size]."""
    rows, columns = np.array([*pairs], dtype=np.int64).reshape(-1, 2).T
    both = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    steps = csr_array((np.ones(len(both[0])), both), shape=(size, size))
    return csr_array(steps / np.maximum(steps.sum(0), 1.0))


def pagerank(steps: csr_array, start: np.ndarray, damping: float) -> np.ndarray:
    """How often a walk is at each node that starts again at `start` [N] and goes on with probability `damping`, [N]; where no step
    leads on, a walk is lost."""
    rank = start
    for _ in range(ROUNDS):
        rank = (1 - damping) * start + damping * (steps @ rank)
    return rank


class LinkedSettings(RagSettings):
    """`encoder`: minilm, whose cosines are where a ranking begins; None: pieces of words. `passages`: what names and links are worth."""

    encoder: Literal["minilm"] | None = "minilm"
    passages: PassagesSection = PassagesSection()


class LinkedPassages(Rag):
    """The k best passages by z + q [the question names it] + s / ((1 + fade rank) (1 + links)^h), where a seed of that rank names it.

    z is the likeness to the question, standardised, with BM25's score by the share `words`; seeds are the likest passages and those that
    the question names, ranked by the first two terms; `links` is how many passages a seed names. A passage that names a seed counts
    likewise, with `naming` for s and those that name the seed for `links`. Of several seeds and ways the best counts. With
    `search=pagerank` the last term is s times the personalised PageRank from the seeds, its largest value scaled to 1.
    """

    Settings = LinkedSettings

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        weights = self.settings.passages
        graph, numbers = index.once("passages", lambda: (PassageGraph.of(index.traces), number_of(index.traces)))
        places = [numbers[source] for source in query.taught]
        if self.settings.encoder:
            alike = dense_scores(index, query.taught, query.text, self.settings.encoder)
        else:
            alike = bm25_scores(index, query.taught, query.text, grams)
        score = np.full(len(index.traces), -np.inf)  # of what was not taught for this question
        if weights.words:
            alike = standardised(alike) + weights.words * standardised(bm25_scores(index, query.taught, query.text))
        score[places] = standardised(alike)
        asked = {number for number in graph.named(query.text) if np.isfinite(score[number])} if weights.named else set()
        likest = {places[position] for position in ranked(alike)[: weights.seeds]}
        score[[*asked]] += weights.named
        seeds = sorted(likest | asked, key=lambda number: (-score[number], number))
        if (weights.linked or weights.naming) and seeds:
            if weights.search == "pagerank":
                score += self._walked(index.once("walk", lambda: walk_of(graph)), seeds, len(score))
            else:
                score += self._linked(graph, seeds, len(score))
        return score[places]

    def _linked(self, graph: PassageGraph, seeds: Sequence[int], size: int) -> np.ndarray:
        weights, lift = self.settings.passages, np.zeros(size)
        for rank, seed in enumerate(seeds):
            for weight, joined in ((weights.linked, graph.links), (weights.naming, graph.naming)):
                if weight and (links := [*joined(seed)]):
                    lift[links] = np.maximum(lift[links], weight / (1 + weights.fade * rank) / (1 + len(links)) ** weights.hub)
        return lift

    def _walked(self, steps: csr_array, seeds: Sequence[int], size: int) -> np.ndarray:
        weights, start = self.settings.passages, np.zeros(size)
        start[[*seeds]] = 1 / (1 + weights.fade * np.arange(len(seeds)))
        rank = pagerank(steps, start / start.sum(), weights.damping)
        return weights.linked * rank / rank.max()


def number_of(traces: Sequence[Trace]) -> dict[str, int]:
    """The place of each source; of one that was told again, the last."""
    return {trace.source: number for number, trace in enumerate(traces)}


def walk_of(graph: PassageGraph) -> csr_array:
    """The walk over the links of a graph whose numbers go from 0 on."""
    pairs = {(min(number, link), max(number, link)) for number in graph.texts for link in graph.links(number)}
    return walk(sorted(pairs), len(graph.texts))
