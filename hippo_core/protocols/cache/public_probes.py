"""Probes of public texts, which the lab reads by path (params/data.yaml): films reviewed, and articles of Wikipedia."""

from random import Random

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import opener
from hippo_core.protocols.cache.probe import Probe
from hippo_core.suites.splits import Split
from hippo_core.training import language

HELD = 4  # of the training articles, the last, for validation


def reviews(lm: LanguageModel, n: int, seed: int, split: Split) -> list[Probe]:
    """SST-2 without examples: is a review negative or positive? The last token of the prompt is the first that reads."""
    if split == "train":
        raise LabError("sst2 has sentences to validate and to test by, none to train on; leave it out of a training")
    found = []
    for number, (sentence, positive) in enumerate(language.reviews("calibration" if split == "val" else "test")[:n]):
        row = [opener(lm), *lm.encode(language.PROMPT.format(sentence=sentence))]
        reads = tuple((row[-1], *lm.encode(label)) for label in language.LABELS)
        name = f"sst2/{split}/{number}"
        found.append(Probe(name, name, "sst2", tuple(row[:1]), (tuple(row[1:-1]),), reads, (1, 1), int(positive), chance=0.5))
    return found


def wikipedia(lm: LanguageModel, n: int, seed: int, split: Split, context: int, read: int) -> list[Probe]:
    """WikiText-2: windows of its articles, as `text` has them of the manual; the test is of its validation file."""
    articles = language.wikipedia("valid" if split == "test" else "train")
    own = articles if split == "test" else articles[-HELD:] if split == "val" else articles[:-HELD]
    rows, width = [], context + read - 1
    for number, article in enumerate(own):
        tokens = lm.encode(article)
        rows += [(f"article {number}", [opener(lm), *tokens[at : at + width]]) for at in range(0, len(tokens) - width + 1, width)]
    Random(f"cache/wikitext2/{seed}/{split}").shuffle(rows)
    return [continued("wikitext2", split, number, topic, row, context) for number, (topic, row) in enumerate(rows[:n])]


def continued(task: str, split: Split, number: int, topic: str, row: list[int], context: int) -> Probe:
    """How likely the rest of a row of tokens is behind its first `context`, of which the last is the first that reads."""
    before, after = tuple(row[: context - 1]), tuple(row[context - 1 :])
    return Probe(f"{task}/{split}/{number}", topic, task, before[:1], (before[1:],), (after,), (1,))
