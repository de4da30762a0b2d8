"""Batches of what people wrote, from which a key learns beside the lab's own: questions about articles, and sentences told in other words.

    article   sentences of some passages of one of SQuAD's training articles; a question is about the sentence that has its answer
    plain     sentences of stories (TinyStories) and of Wikipedia (WikiText-2); a cue is one of them with words exchanged, dropped and
              misspelt, or the sentence before or after it (the inverse cloze task: Lee, Chang and Toutanova 2019, arXiv 1906.00300)

Near misses: other sentences of the same article; of plain texts, sentences with words exchanged for others that are only akin to them.
Which words say nearly the same, and which are akin, is read off MiniLM's vectors of single words. Texts are read from the user's folder
and nothing of them is kept.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from hippo_core.models import minilm
from hippo_core.retrieval.lexicon import sentences, words
from hippo_core.suites.natural import squad
from hippo_core.suites.wording import misspell
from hippo_core.text_files import read_text
from hippo_core.training.stories import training_stories
from recipes.key import ContrastiveBatch, Draw, KeyRecipe, draw_batch

NATURAL = 0.6  # of the rooms; the others are the lab's
ARTICLES = 0.5  # of the natural ones
WIKITEXT = "wikitext2-train"  # of params/data.yaml
WORD = re.compile(r"(?<![\w'-])[a-z]{4,}(?![\w'-])")  # a word that can be exchanged: no name, no number
MIN_SYNONYM_COSINE, MAX_SYNONYMS = 0.7, 3  # of words that say the same
HARD_NEGATIVE_RANKS = (12, 45)  # of words that are akin
LEAST = 3  # times that a word stands in the plain texts
RUN = 6  # sentences in a row of one plain text
LENGTH = (25, 320)  # characters of a sentence
MISSES = 0.25  # of a plain room's facts: near misses
NEIGHBOURS = 0.2  # of the cues of plain rooms: the sentence before or after
PERTURBED = 0.5  # of the questions about articles
ASKING = ("what", "who", "where", "when", "which", "how", "did", "was")


class Exchanges(NamedTuple):
    """What a word can be exchanged for: synonyms, and related words of another meaning."""

    synonyms: tuple[str, ...]
    hard_negatives: tuple[str, ...]


@dataclass(frozen=True)
class PlainTexts:
    """What batches are drawn from: articles, each a list of passages with their sentences and questions; plain texts as sentences."""

    articles: tuple[tuple["ArticlePassage", ...], ...]
    plain: tuple[tuple[str, ...], ...]
    others: Mapping[str, Exchanges]


class ArticlePassage(NamedTuple):
    """The sentences of a passage, and questions, each with the number of the sentence that has its answer."""

    sentences: tuple[str, ...]
    questions: tuple[tuple[str, int], ...]


def load_texts(never: Collection[str] = ()) -> PlainTexts:
    """All texts, read once; `never`: words that are not exchanged. LabError where the user's folder lacks one of them."""
    articles = squad.of_split(squad.parse(read_text(squad.FILE)), "train")
    lines = [mended(line) for line in read_text(WIKITEXT).splitlines() if line.strip() and not line.startswith(" =")]
    plain = (_spoken(text) for text in [*training_stories(), *lines])
    long_enough = tuple(text for text in plain if len(text) >= 2)
    return PlainTexts(tuple(map(_passages, articles)), long_enough, others_of(long_enough, never))


def mended(line: str) -> str:
    """A line of WikiText-2 as it was before its marks were set apart."""
    line = re.sub(r" @(.)@ ", r"\1", line.strip())
    line = re.sub(r'" ([^"]*) "', r'"\1"', line)
    return re.sub(r" ([.,;:!?)'])", r"\1", line.replace("( ", "("))


def _spoken(text: str) -> tuple[str, ...]:
    return tuple(" ".join(sentence.split()) for sentence in sentences(text) if LENGTH[0] <= len(sentence) <= LENGTH[1])


def _passages(article: squad.Article) -> tuple[ArticlePassage, ...]:
    """The passages of an article; a question whose answer stands in several sentences is about the one that shares most words with it."""
    passages = []
    for text, questions in article.passages:
        parts = sentences(" ".join(text.split()))
        placed = []
        for question, answer in questions:
            indices = [index for index, part in enumerate(parts) if answer in part]
            if indices:
                asked = set(words(question))
                placed.append((question, max(indices, key=lambda index: (len(asked & set(words(parts[index]))), -index))))
        passages.append(ArticlePassage(tuple(parts), tuple(placed)))
    return tuple(passage for passage in passages if passage.questions)


def others_of(plain: Sequence[Sequence[str]], never: Collection[str] = ()) -> dict[str, Exchanges]:
    """What each ordinary word of some texts can be exchanged for, by the cosine of MiniLM's vectors of single words."""
    counts = Counter(word for text in plain for line_of_text in text for word in WORD.findall(line_of_text))
    known = sorted(word for word, count in counts.items() if count >= LEAST and word not in never)
    if len(known) <= HARD_NEGATIVE_RANKS[0]:
        return {}
    vectors = minilm.encode(known, batch_size=256)
    exchanges = {}
    for start in range(0, len(known), 512):
        nearest = (vectors[start : start + 512] @ vectors.T).topk(min(HARD_NEGATIVE_RANKS[1], len(known)))
        for row, (cosines, indices) in enumerate(zip(nearest.values.tolist(), nearest.indices.tolist(), strict=True)):
            word = known[start + row]
            near = [(known[index], cosine) for index, cosine in zip(indices, cosines, strict=True) if known[index] != word]
            exchanges[word] = Exchanges(
                tuple(other for other, cosine in near[:MAX_SYNONYMS] if cosine >= MIN_SYNONYM_COSINE),
                tuple(other for other, _ in near[HARD_NEGATIVE_RANKS[0] :]),
            )
    return exchanges


def exchanged(random: Random, text: str, others: Callable[[str], Sequence[str]], share: float) -> str:
    """The text with this share of the words that can be exchanged for others."""

    def other(match: re.Match[str]) -> str:
        pool = others(match[0])
        return random.choice(pool) if pool and random.random() < share else match[0]

    return WORD.sub(other, text)


def perturbed(random: Random, text: str, texts: PlainTexts) -> str:
    """The text with words exchanged for such as say nearly the same, dropped and misspelt, each in some cues only."""
    if random.random() < 0.7:
        text = exchanged(random, text, lambda word: texts.others[word].synonyms if word in texts.others else (), random.uniform(0.3, 0.9))
    dropped, slips = random.choice((0.0, 0.1, 0.3, 0.5)), random.choice((0.0, 0.0, 0.1, 0.3))
    kept = [word for word in text.split() if random.random() >= dropped] or text.split()
    return " ".join(misspell(random, word) if len(word) > 3 and random.random() < slips else word for word in kept)


def draw_article(random: Random, recipe: KeyRecipe, texts: PlainTexts) -> ContrastiveBatch:
    """Passages of one article, a sentence a fact. In half of the batches any sentence of the right passage will do: a passage counts as its
    best sentence."""
    article = random.choice(texts.articles)
    facts: list[str] = []
    asked: list[tuple[str, int, range]] = []
    for passage in random.sample(article, len(article)):
        if facts and len(facts) + len(passage.sentences) > recipe.facts:
            break
        own = range(len(facts), len(facts) + len(passage.sentences))
        facts += passage.sentences
        asked += [(question, own[index], own) for question, index in passage.questions]
    chosen, any_sentence = random.sample(asked, min(recipe.cues, len(asked))), random.random() < 0.5
    cues = tuple((perturbed(random, question, texts) if random.random() < PERTURBED else question, gold) for question, gold, _ in chosen)
    return ContrastiveBatch(tuple(facts), cues, tuple(_besides(own, gold) if any_sentence else () for _, gold, own in chosen))


def draw_plain(random: Random, recipe: KeyRecipe, texts: PlainTexts) -> ContrastiveBatch:
    """Sentences of several texts, and of some of them near misses."""
    facts: list[str] = []
    runs: list[range] = []
    most = round(recipe.facts * (1 - MISSES))
    while len(facts) < most:
        text = random.choice(texts.plain)
        start = random.randrange(max(1, len(text) - RUN + 1))
        part = [sentence for sentence in text[start : start + RUN][: most - len(facts)] if sentence not in facts]
        runs.append(range(len(facts), len(facts) + len(part)))
        facts += part
    for fact in random.sample(facts, min(len(facts), recipe.facts - most)):
        near_miss = exchanged(
            random, fact, lambda word: texts.others[word].hard_negatives if word in texts.others else (), random.uniform(0.2, 0.6)
        )
        facts += [near_miss] if near_miss != fact else []
    cues, extra_positives = [], []
    for _ in range(recipe.cues):
        own = random.choice([run for run in runs if run])
        index = random.choice(own)
        neighbours = [near for near in (index - 1, index + 1) if near in own]
        if neighbours and random.random() < NEIGHBOURS:
            gold = random.choice(neighbours)
            cues.append((perturbed(random, facts[index], texts), gold))
            extra_positives.append(_besides(own, gold))
        else:
            opening = f"{random.choice(ASKING)} " if random.random() < 0.5 else ""
            cues.append((opening + perturbed(random, facts[index], texts), index))
            extra_positives.append(())
    return ContrastiveBatch(tuple(facts), tuple(cues), tuple(extra_positives))


def _besides(own: range, gold: int) -> tuple[int, ...]:
    return tuple(index for index in own if index != gold)


def mixing(texts: PlainTexts) -> Draw:
    """What draws batches of the lab's worlds and of these texts."""

    def draw(random: Random, recipe: KeyRecipe) -> ContrastiveBatch:
        if random.random() >= NATURAL:
            return draw_batch(random, recipe)
        return (draw_article if random.random() < ARTICLES else draw_plain)(random, recipe, texts)

    return draw
