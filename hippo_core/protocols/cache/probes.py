"""What is read from a cache to see whether it is whole. Each probe is a context, kept as keys and values, and tokens that read it.

    text       how likely the rest of a paragraph of Python's manual is, behind its first tokens
    wikitext2  the same of articles of Wikipedia (public text, read by path: params/data.yaml)
    sst2       whether a review of a film is positive (public text, likewise)
    choice     which of four answers is the likeliest, behind the eight facts of a world
    needle     the answer to a question about one fact among the lines of a text, in four places of it
    cloze      the fact of a needle begun again: which of four answers goes on; for a model that was never taught to answer
    long_context  the value of a needle among so many tokens, in words; "NEEDLE: the_key = violet-57." and all of it are parameters
    traces     the answer behind the keys and values of the traces that the episodic memory recalls (trace_probes.py)

Texts of different splits share no topic of the manual and no fact.
"""

import hashlib
from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from random import Random
from typing import Any

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import prefix_of
from hippo_core.models.prompt import split as pieces_of
from hippo_core.models.score import opener
from hippo_core.plugins import imported
from hippo_core.protocols.cache.names import TRACE_PROBES, USUAL
from hippo_core.protocols.cache.probe import Probe
from hippo_core.suites import settings_for
from hippo_core.suites.draw import drawn_worlds
from hippo_core.suites.splits import Split
from hippo_core.suites.types import Fact, Item, World
from hippo_core.training import language

TASKS = ("text", "choice", "needle", "traces")
CONTEXT = 128  # tokens of a text that are kept
SCORED = {"text": 32, "wikitext2": 64}  # tokens behind them, which are scored
PREFIX = "Read the text and answer the question.\n"  # before a long context
NEEDLE_DEPTHS = (0.1, 0.35, 0.65, 0.9)  # of a needle
NEEDLE_CONTEXT = 160  # tokens of the lines around a needle, at most
LABELS = 4
VALIDATION_ARTICLES = 4  # of Wikipedia's training articles, the last, for validation


def probes(lm: LanguageModel, task: str, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """`n` probes of a task, or as many as its text has. `settings`: what has the fields of `ContextSettings`. LabError for one that is
    longer than `max_seq_len`, and where there is none."""
    made = MAKERS[task](lm, n, seed, split, settings)
    if not made:
        raise LabError(
            f"no text of {task} has as many tokens as a window; lower max_seq_len={settings.max_seq_len} or scored={settings.scored}"
        )
    longest, most = max(probe.start + max(map(len, probe.reads)) for probe in made), settings.max_seq_len
    if most and longest > most:
        raise LabError(f"a probe of {task} has {longest} tokens, more than max_seq_len={most}; raise it, or leave {task} out")
    return made


def asked_probes(cell: Any, say: Callable[[str], None]) -> dict[str, list[Probe]]:
    """The test probes of a cell's tasks; says before anything runs how many there are, and warns where more were asked for."""
    parameters, drawn = cell.parameters, dict[str, list[Probe]]()
    for task in parameters.tasks:
        drawn[task] = probes(cell.language_model, task, parameters.items, parameters.seed, "test", parameters)
        if (there := len(drawn[task])) < parameters.items:
            cell.warn(f"{task}: {parameters.items:,} probes were asked for, its text has {there:,}; n is {there:,}")
    say("probes: " + ", ".join(f"{len(own):,} of {task}" for task, own in drawn.items()))
    return drawn


def manual(split: Split) -> dict[str, list[str]]:
    """The manual's paragraphs of plain English, by topic: four tenths of the topics for training, one for validation, the rest
    for the test."""
    plain, by_topic = set(language.manual()), dict[str, list[str]]()
    for topic in sorted(topics):
        bucket = int(hashlib.sha256(topic.encode()).hexdigest(), 16) % 10
        paragraphs = [" ".join(text.splitlines()) for text in topics[topic].split("\n\n")]
        own = [text for text in dict.fromkeys(paragraphs) if text in plain]
        plain -= set(own)  # what topics share counts to the first of them, whatever its split
        if own and split == ("train" if bucket < 4 else "val" if bucket < 5 else "test"):
            by_topic[topic] = own
    return by_topic


def windows(lm: LanguageModel, split: Split, width: int) -> list[tuple[str, list[int]]]:
    """Rows of `width` tokens of the manual with their topics; none overlaps another."""
    return [row for topic, paragraphs in manual(split).items() for row in _cut(lm, topic, "\n".join(paragraphs), width)]


def _cut(lm: LanguageModel, topic: str, text: str, width: int) -> list[tuple[str, list[int]]]:
    """A text as rows of this width, each opened as a text is."""
    tokens, step = lm.encode(text), width - 1
    return [(topic, [opener(lm), *tokens[at : at + step]]) for at in range(0, len(tokens) - step + 1, step)]


def texts(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """Windows of the manual, in an order of the seed's own."""
    scored, width = _scored("text", settings)
    return _continued("text", windows(lm, split, width), n, f"cache/{seed}/{split}", split, scored)


def _scored(task: str, settings: Any) -> tuple[int, int]:
    """How many tokens of a window are scored, and how many it has."""
    scored = settings.scored or SCORED[task]
    return scored, settings.max_seq_len or CONTEXT + scored


def articles(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """Windows of WikiText-2's articles; the test is of all that its validation file has."""
    scored, width = _scored("wikitext2", settings)
    loaded = language.wikipedia("valid", whole=True) if split == "test" else language.wikipedia("train")
    own = loaded if split == "test" else loaded[-VALIDATION_ARTICLES:] if split == "val" else loaded[:-VALIDATION_ARTICLES]
    rows = [row for number, article in enumerate(own) for row in _cut(lm, f"article {number}", article, width)]
    return _continued("wikitext2", rows, n, f"cache/wikitext2/{seed}/{split}", split, scored)


def _continued(task: str, rows: list[tuple[str, list[int]]], n: int, order: str, split: Split, scored: int) -> list[Probe]:
    """How likely the last `scored` tokens of rows are behind those before, of which the last is the first that reads."""
    Random(order).shuffle(rows)
    made = []
    for number, (topic, row) in enumerate(rows[:n]):
        before, after = tuple(row[: -scored - 1]), tuple(row[-scored - 1 :])
        made.append(Probe(f"{task}/{split}/{number}", topic, task, before[:1], (before[1:],), (after,), (1,)))
    return made


def reviews(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """SST-2 without examples; it has no sentences to train on. The last token of the prompt is the first that reads."""
    made = []
    for number, (sentence, positive) in enumerate(language.reviews("calibration" if split == "val" else "test")[:n]):
        row = [opener(lm), *lm.encode(language.PROMPT.format(sentence=sentence))]
        reads = tuple((row[-1], *lm.encode(label)) for label in language.LABELS)
        name = f"sst2/{split}/{number}"
        made.append(Probe(name, name, "sst2", tuple(row[:1]), (tuple(row[1:-1]),), reads, (1, 1), int(positive), chance=0.5))
    return made


def worlds(seed: int, split: Split, count: int) -> list[World]:
    """So many worlds of eight facts."""
    stream = drawn_worlds("episodic", "base", count, seed, split, settings_for("episodic", "base"))
    return [next(stream) for _ in range(count)]


def choices(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """One question a world, all facts in the context."""
    made, drawn = [], worlds(seed, split, n)
    for number, world in enumerate(drawn):
        item = item_of(world, number)
        pieces = pieces_of(lm, [fact.text for fact in world.facts], item.question, "short")
        block = [token for line in pieces.blocks for token in line]
        compared = multiple_choice(lm, item, world, drawn, pieces.tail)
        made.append(Probe(item.id, world.id, "choice", tuple(pieces.prefix), (tuple(block),), **compared))
    return made


def needles(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """One fact of a world among lines of the manual, in each of PLACES in turn; the question is answered in words."""
    drawn = worlds(seed + 1, split, n)
    return [in_words(lm, item_of(world, at), world, "needle", [hidden(lm, at, world, seed, split)]) for at, world in enumerate(drawn)]


def hidden(lm: LanguageModel, number: int, world: World, seed: int, split: Split) -> list[str]:
    """The lines of a needle's context, the fact among them."""
    fact, random = fact_of(world, item_of(world, number)), Random(f"cache/needle/{seed}/{number}")
    lines, hay = sentences(split), list[str]()
    budget = NEEDLE_CONTEXT - len(lm.encode(fact.text))
    for line in random.sample(lines, len(lines)):
        if (used := len(lm.encode(f"{line}.\n"))) <= budget:
            hay, budget = [*hay, f"{line}."], budget - used
        if budget < 16:
            break
    index = round(NEEDLE_DEPTHS[number % len(NEEDLE_DEPTHS)] * len(hay))
    return [*hay[:index], fact.text, *hay[index:]]


def sentences(split: Split) -> list[str]:
    """The manual's sentences, without the mark that ends them."""
    return [line for paragraphs in manual(split).values() for text in paragraphs for line in text.split(". ")]


def long_contexts(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """The protocol's needle: `context_len` tokens, prefix and all, of sentences of the manual in an order of the probe's own; the needle
    stands behind the last sentence that ends before `position_frac` of them. `{number}` in its value is drawn for each probe: other
    probes' texts, which overwrite, do not hold the answer. LabError where the manual has too few sentences."""
    prefix, lines = (opener(lm), *lm.encode(PREFIX)), [lm.encode(f"{line.rstrip('.')}.\n") for line in sentences(split)]
    tail, made = lm.encode("\n" + settings.question_template.format(needle_token=settings.needle_token)), []
    for number in range(n):
        name, random = f"long_context/{split}/{number}", Random(f"cache/long_context/{seed}/{split}/{number}")
        value = settings.needle_value.format(number=random.randint(10, 99))
        needle = lm.encode(f"NEEDLE: {settings.needle_token} = {value}.\n")
        room, filler, at = settings.context_len - len(prefix) - len(needle), list[int](), 0
        for line in random.sample(lines, len(lines)):
            filler += line
            at = len(filler) if len(filler) <= settings.position_frac * room else at
        if not 0 <= room <= len(filler):
            raise LabError(f"context_len={settings.context_len}: expected {settings.context_len - room} to {len(filler)} tokens")
        block, item = (*filler[:at], *needle, *filler[at:room]), Item(name, name, settings.needle_token, (value,), (), "needle")
        read = (*tail, *lm.encode(" " + value))
        made.append(Probe(name, name, "long_context", prefix, (block,), (read,), (len(tail),), 0, item))
    return made


def clozes(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """As `needle`; the fact is begun again, and which of four answers goes on is compared."""
    made, drawn = [], worlds(seed + 1, split, n)
    for number, world in enumerate(drawn):
        item = item_of(world, number)
        begun = lm.encode("\n" + fact_of(world, item).text.partition(item.answers[0])[0].rstrip())
        block = lm.encode("\n".join(hidden(lm, number, world, seed, split)))
        compared = multiple_choice(lm, item, world, drawn, begun, " ")
        made.append(Probe(f"cloze/{item.id}", world.id, "cloze", (opener(lm),), (tuple(block),), **compared))
    return made


def multiple_choice(
    lm: LanguageModel, item: Item, world: World, drawn: Sequence[World], begun: Sequence[int], space: str = ""
) -> dict[str, Any]:
    """A probe's rows, which go on with one of four answers in an order of the question's own, the index of the right one, and what they are
    scored by. The wrong ones are those of the world's other questions, then of others'."""
    random = Random(f"cache/choice/{item.id}")
    near, others = [asked.answers[0] for asked in world.items], [asked.answers[0] for other in drawn for asked in other.items]
    pool = [*random.sample(near, len(near)), *random.sample(others, len(others))]
    wrong = [answer for answer in dict.fromkeys(pool) if answer not in item.answers][: LABELS - 1]
    answers = random.sample([item.answers[0], *wrong], LABELS)
    reads = tuple((*begun, *lm.encode(space + answer)) for answer in answers)
    return {"reads": reads, "skip": (len(begun),) * LABELS, "gold": answers.index(item.answers[0]), "chance": 1 / LABELS}


def item_of(world: World, number: int) -> Item:
    return world.items[number % len(world.items)]


def fact_of(world: World, item: Item) -> Fact:
    """The fact that answers a question."""
    [fact] = [fact for fact in world.facts if fact.id == item.gold_facts[0]]
    return fact


def in_words(lm: LanguageModel, item: Item, world: World, task: str, blocks: Sequence[Sequence[str]]) -> Probe:
    """A question that is answered in words; its row is scored for the likelihood of the right answer, too."""
    pieces = [pieces_of(lm, lines, item.question, "short") for lines in blocks]
    tail, label = pieces[0].tail, lm.encode(item.answers[0])
    rows = tuple(tuple(token for line in prompt.blocks for token in line) for prompt in pieces)
    return Probe(item.id, world.id, task, tuple(prefix_of(lm, "short")), rows, ((*tail, *label),), (len(tail),), 0, item, world)


def traces(lm: LanguageModel, n: int, seed: int, split: Split, settings: Any = USUAL) -> list[Probe]:
    """Questions of worlds that the episodic memory was taught; other tasks need nothing of its modules."""
    return imported(f"{TRACE_PROBES}:traces", "task traces")(lm, n, seed, split)


MAKERS = {"text": texts, "choice": choices, "needle": needles, "traces": traces, "cloze": clozes, "sst2": reviews, "wikitext2": articles}
MAKERS["long_context"] = long_contexts
