"""Plain text on which a pretrained model is to stay as it was: encyclopedia articles, stories, and reviews with a word of judgement."""

from random import Random

from hippo_core.files import LabError, root
from hippo_core.training.stories import training_stories

ARTICLES = "data/samples/wikitext2/train_head.txt"
REVIEWS = "data/samples/sst2/calibration.tsv"  # never the sentences of the test
FORMS = (
    ("Review: {text}\nSentiment: {label}\n\n", ("negative", "positive")),
    ("{text}\nIs this review positive or negative? {label}\n\n", ("negative", "positive")),
    ("{text} It was {label}.\n", ("terrible", "great")),
    ("Sentence: {text}\nQuestion: Is this sentence positive or negative?\nAnswer: {label}\n\n", ("negative", "positive")),
)


class Rehearsal:
    """A source of such texts, long enough to be cut to a window."""

    def __init__(self):
        paragraphs = [line.strip() for line in _read(ARTICLES).splitlines()]
        self.articles = [line for line in paragraphs if len(line) > 900]
        self.stories = [story for story in training_stories() if len(story) > 900]
        self.reviews = [line.split("\t") for line in _read(REVIEWS).splitlines()]

    def draw(self, random: Random) -> str:
        """Half of the time an article, else a story or a page of reviews."""
        kind = random.random()
        if kind < 0.5:
            return random.choice(self.articles)
        if kind < 0.7:
            return random.choice(self.stories)
        form, labels = random.choice(FORMS)
        page = random.sample(self.reviews, 16)
        return "".join(form.format(text=text, label=labels[int(label)]) for text, label in page)


def _read(path: str) -> str:
    if not (root() / path).exists():
        raise LabError(f"missing {root() / path}; it is part of the repository: restore it with `git checkout -- {path}`")
    return (root() / path).read_text(encoding="utf-8")
