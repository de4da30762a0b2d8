"""Passages that people wrote, joined where the text of one names the title of another, and what such a link is worth for a question.

    "Ed Wood is a film by Tim Burton."  ->  Tim Burton       a question about the film brings the passage about its director

A title is found as whole words, without what stands in brackets; the longest where several begin at one word. One word is found as it is
written, and not where it is a common word that a sentence begins with ("It"); several are found with other capitals and accents too, if any
has a capital. Links are read when they are asked for.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from hippo_core.methods.base import Query
from hippo_core.methods.rag.rankers import Rag, RagSettings
from hippo_core.methods.relational.mentions import COMMON, begins
from hippo_core.methods.relational.settings import PassagesSection
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.ranking import ranked, standardised
from hippo_core.retrieval.scores import bm25_scores, dense_scores
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.retrieval.minilm import Vectors

WORD = re.compile(r"\w+")
BRACKETED = re.compile(r"\s*\([^()]*\)")
END = ""  # of a name, where names are kept word by word
Branches: TypeAlias = "dict[str, Branches]"


def title_of(trace: Trace) -> str:
    """The title of a passage without its bracketed parts; "" where the text does not open with its `context_key`."""
    title = trace.context_key
    if not (title and trace.text.startswith(title)):
        return ""
    return (BRACKETED.sub("", title) if "(" in title else title).strip()


def are_passages(traces: Sequence[Trace]) -> bool:
    """Whether most of these open with a title of their own."""
    return 2 * sum(bool(title_of(trace)) for trace in traces) > len(traces)


@lru_cache(1 << 16)
def folded(word: str) -> str:
    """A word without case and accents."""
    return (
        word.lower()
        if word.isascii()
        else "".join(character for character in unicodedata.normalize("NFKD", word) if not unicodedata.combining(character)).casefold()
    )


class PassageGraph:
    """Passages by number, and which of them a text names: by the whole title, or by what stands before its comma ("Kiln, Kent") where
    that is no title itself."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.titles: dict[int, tuple[str, ...]] = {}
        self._by_title: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self._by_short_title: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self._names: dict[int, list[tuple[dict[tuple[str, ...], set[int]], tuple[str, ...]]]] = {}  # where each one's are kept
        self._name_tree: Branches = {}  # every name ever added, word by word
        self._by_word: dict[str, set[int]] = defaultdict(set)  # the passages with a word
        self._links: dict[int, set[int]] = {}  # as they were read, but for those that a change may have touched

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> "PassageGraph":
        """The graph of these traces, numbered as they stand."""
        graph = cls()
        for number, trace in enumerate(traces):
            graph.add(number, title_of(trace), trace.text)
        return graph

    @property
    def size(self) -> int:
        """One more than the highest number."""
        return max(self.texts, default=-1) + 1

    def add(self, number: int, title: str, text: str) -> None:
        """Add a passage, replacing one that has its number."""
        if number in self.texts:
            self.remove(number)
        self.texts[number], self.titles[number] = text, tuple(WORD.findall(title))
        full, short = (tuple(map(folded, WORD.findall(part))) for part in (title, title.partition(", ")[0]))
        self._names[number] = [(self._by_title, full)] * bool(full) + [(self._by_short_title, short)] * bool(short and short != full)
        for kept, name in self._names[number]:
            kept[name].add(number)
            branches = self._name_tree
            for word in (*name, END):
                branches = branches.setdefault(word, {})
        for word in {*_names(text)}:
            self._by_word[word].add(number)
        self._forget_links(number)

    def remove(self, number: int) -> None:
        """Take a passage out, with every link to it and from it; nothing where it is not there."""
        if (text := self.texts.pop(number, None)) is None:
            return
        self._forget_links(number)
        del self.titles[number]
        for kept, name in self._names.pop(number):
            kept[name].discard(number)
            if not kept[name]:
                del kept[name]
        for word in {*_names(text)}:
            self._by_word[word].discard(number)

    def named(self, text: str) -> set[int]:
        """The passages whose titles a text names."""
        words, names, matches, end = WORD.findall(text), _names(text), set[int](), 0
        for index in [index for index, name in enumerate(names) if name in self._name_tree]:
            if index < end:  # within a name that is found
                continue
            for behind in self._ends(names, index):
                name = tuple(names[index:behind])
                passages = self._by_title.get(name) or self._by_short_title.get(name, ())
                if passages and (matching := self._matching(passages, tuple(words[index:behind]), text, index)):
                    matches |= matching
                    end = behind
                    break
        return matches

    def _ends(self, names: Sequence[str], index: int) -> list[int]:
        """Where the names end that begin at an index, the longest first."""
        ends, branches = list[int](), self._name_tree
        while index < len(names) and (branches := branches.get(names[index])):
            index += 1
            if END in branches:
                ends.append(index)
        return ends[::-1]

    def _matching(self, passages: Iterable[int], written: tuple[str, ...], text: str, index: int) -> set[int]:
        """Of passages whose titles have these words, in whatever case and accents, those that are named by them, as a text's from its word
        number `index` on."""
        if len(written) > 1 and not all(word.islower() for word in written):
            return {*passages}
        if len(written) == 1 and folded(written[0]) in COMMON:
            [first] = islice(WORD.finditer(text), index, index + 1)
            if begins(text, first.start()):
                return set()
        return {number for number in passages if self.titles[number][: len(written)] == written}

    def _forget_links(self, number: int) -> None:
        """Forget the links of a passage, and of those whose texts have the words of its names, the only ones that name it."""
        self._links.pop(number, None)
        for other in self._with_name_of(number, self._links.keys()):
            del self._links[other]

    def _with_name_of(self, number: int, among: Collection[int] | None = None) -> set[int]:
        """The passages whose texts have all words of one of a passage's names."""
        holders = set[int]()
        for _, name in self._names[number]:
            with_words = [self._by_word.get(word, frozenset()) for word in name] + ([] if among is None else [among])
            holders |= {other for other in min(with_words, key=len) if all(other in passages for passages in with_words)}
        return holders

    def links(self, number: int) -> set[int]:
        """The other passages that a passage names."""
        if number not in self._links:
            self._links[number] = self.named(self.texts[number]) - {number}
        return self._links[number]

    def naming(self, number: int) -> set[int]:
        """The other passages that name a passage."""
        return {other for other in self._with_name_of(number) - {number} if number in self.links(other)}


def _names(text: str) -> list[str]:
    """The words of a text without case and accents, in order."""
    return WORD.findall(text.lower()) if text.isascii() else [*map(folded, WORD.findall(text))]


class Passages:
    """The passages of a world as they stand, each read and encoded once: `graph`, and `numbers`, where it has each source; of one that was
    told again, the last."""

    def __init__(self) -> None:
        self.graph, self.numbers = PassageGraph(), dict[str, int]()
        self._kept: dict[tuple[str, str, str], int] = {}

    @cached_property
    def vectors(self) -> "Vectors":
        """What an index compares of its passages without encoding them again."""
        from hippo_core.retrieval.minilm import Vectors

        return Vectors()

    def follow(self, traces: Iterable[Trace]) -> None:
        """Add what is new among these, and remove what is not among them, so that the graph is that of these; free numbers are reused."""
        given = {(trace.source, title_of(trace), trace.text): trace.source for trace in traces}
        for removed in self._kept.keys() - given.keys():
            self.graph.remove(self._kept.pop(removed))
        free = iter(sorted({*range(len(given))} - {*self._kept.values()}))
        for key in given:
            if key not in self._kept:
                self._kept[key] = next(free)
                self.graph.add(self._kept[key], *key[1:])
        self.numbers = {source: self._kept[key] for key, source in given.items()}


class LinkedSettings(RagSettings):
    """`encoder`: minilm, whose cosines are where a ranking begins; None: pieces of words. `passages`: what names and links are worth."""

    encoder: Literal["minilm"] | None = "minilm"
    passages: PassagesSection = PassagesSection()


class LinkedPassages(Rag):
    """The k best passages by z + q [the question names it] + s / ((1 + fade rank) (1 + links)^h), where a seed of that rank names it.

    z is the likeness to the question, standardised, with BM25's score by the share `words`; seeds are the likest passages and those that
    the question names, ranked by the first two terms; `links` is how many passages a seed names. A passage that names a seed counts
    likewise, with `naming` for s and those that name the seed for `links`. Of several seeds and ways the best counts.
    """

    Settings = LinkedSettings

    _passages: Passages | None = None
    _read: WorldIndex | None = None  # whose passages these are

    def forget(self) -> None:
        super().forget()
        self._passages = self._read = None

    def _known(self, index: WorldIndex) -> Passages:
        """The passages of an index; what was read of one for another index is not read again."""
        known = self._passages = self._passages or Passages()
        if self._read is not index:
            known.follow(index.traces)
            if self.settings.encoder:
                known.vectors.give(index)
            self._read = index
        return known

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        weights, known = self.settings.passages, self._known(index)
        graph, numbers = known.graph, [known.numbers[source] for source in query.taught]
        if self.settings.encoder:
            similarity = dense_scores(index, query.taught, query.text, self.settings.encoder)
        else:
            similarity = bm25_scores(index, query.taught, query.text, grams)
        score = np.full(graph.size, -np.inf)  # of what was not taught for this question
        if weights.words:
            similarity = standardised(similarity) + weights.words * standardised(bm25_scores(index, query.taught, query.text))
        score[numbers] = standardised(similarity)
        asked = {number for number in graph.named(query.text) if np.isfinite(score[number])} if weights.named else set()
        likest = {numbers[position] for position in ranked(similarity)[: weights.seeds]}
        score[[*asked]] += weights.named
        seeds = sorted(likest | asked, key=lambda number: (-score[number], number))
        if (weights.linked or weights.naming) and seeds:
            score += self._linked(graph, seeds, len(score))
        return score[numbers]

    def _linked(self, graph: PassageGraph, seeds: Sequence[int], size: int) -> np.ndarray:
        weights, lift = self.settings.passages, np.zeros(size)
        for rank, seed in enumerate(seeds):
            for weight, joined in ((weights.linked, graph.links), (weights.naming, graph.naming)):
                if weight and (links := [*joined(seed)]):
                    lift[links] = np.maximum(lift[links], weight / (1 + weights.fade * rank) / (1 + len(links)) ** weights.hub)
        return lift
