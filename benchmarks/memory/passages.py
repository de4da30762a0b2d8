"""One passage or five: what a reader answers of what people wrote, as one text and as blocks.

    HIPPO_DATA=... python benchmarks/memory/passages.py smollm2-135m-reader

Questions about passages of SQuAD's validation articles, greedy; right means that each token of the answer is the likeliest. Four other
passages of the same article, where it has as many, stand around the right one. Intervals (95 %) draw passages, of six articles; those of
a difference draw the same ones on both sides.
"""

import sys
from collections import defaultdict
from random import Random

from greedy import right

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.statistics import cluster_interval
from hippo_core.training import readings
from hippo_core.training.lessons import Branch, Lesson
from hippo_core.training.packed_examples import Encoder

QUESTIONS, PASSAGES = 100, 5
WAYS = {"one": (1, False), "five as text": (PASSAGES, False), "five as blocks": (PASSAGES, True)}


def asked(random: Random, count: int, blocks: bool) -> tuple[str, Lesson]:
    """A question with so many passages in front, and the text of the right one."""
    pool = readings.passages("val")
    shown = random.choice(pool)
    others = [passage for passage in pool if passage.title == shown.title and passage != shown]
    cut = readings.excerpt(random, shown)
    question, answer = random.choice(cut.questions)
    others = [readings.excerpt(random, passage) for passage in random.sample(others, min(PASSAGES - 1, len(others)))]
    place = random.randrange(len(others) + 1)
    told = [*others[:place], cut, *others[place:]] if count > 1 else [cut]
    branch = Branch(question, answer, (told.index(cut),), True, "answered")
    return shown.text, Lesson(tuple((passage.text, ()) for passage in told), (branch,), blocks=blocks)


def main(model: str) -> None:
    """Print the share of right answers, and the differences from one passage."""
    lm = load(load_spec(model), threads=1)
    encoder = Encoder(lm.tokenizer, lm.template)
    marks: dict[str, list[float]] = defaultdict(list)
    texts: list[str] = []
    for number in range(QUESTIONS):
        for way, (count, blocks) in WAYS.items():
            text, lesson = asked(Random(f"passages/{number}"), count, blocks)
            marks[way].append(float(right(lm, encoder, lesson)[0]))
        texts.append(text)
    for way, found in marks.items():
        share = cluster_interval(found, texts)
        less = cluster_interval([a - b for a, b in zip(found, marks["one"], strict=True)], texts, bounds=(-1.0, 1.0))
        print(
            f"{model}  {way:14}  {share.mean:.3f} ({share.low:.2f} to {share.high:.2f})  "
            f"less one: {less.mean:+.3f} ({less.low:+.2f} to {less.high:+.2f})  {len(found)} questions of {len(set(texts))} passages"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
