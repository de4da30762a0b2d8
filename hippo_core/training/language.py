"""Is it still the language model it was? The sentiment of film reviews (SST-2) and the loss on articles of Wikipedia (WikiText-2)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.files import LabError, root
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import TextLoss, log_likelihood, text_loss
from hippo_core.results.frames import Frame
from hippo_core.results.statistics import Interval, cluster_interval

SAMPLES = "data/samples"
PROMPT, LABELS = "Review: {sentence}\nSentiment:", (" negative", " positive")  # no worked example before it
WINDOW = 1024  # tokens, or as many as the model can see
POINTS, RATIO = 0.02, 1.05  # what may be lost: two points of accuracy, 5 % of perplexity
ARTICLE = re.compile(r"^ = [^=;]+ = $", re.MULTILINE)  # with ";" it is the legend of a table


@dataclass(frozen=True)
class Sentiment:
    """SST-2, without examples. `rows` has a row a sentence: item_id, world (a sentence is its own), question, answer,
    `margin` = log p(positive) - log p(negative) in nats, and the scores 0 or 1 of two ways to decide: `raw` says positive where
    the margin is over 0, `centred` where it is over `threshold`, the median margin of other sentences, half of them positive.
    Tables of two models on the same sentences can be paired (`results.statistics.compare`)."""

    rows: Frame
    threshold: float

    @property
    def raw(self) -> Interval:
        """Share right by the sign of the margin, with its 95 % interval over sentences; chance is .5."""
        return self._share("raw")

    @property
    def centred(self) -> Interval:
        """Share right by the threshold: what the model tells apart, whichever of the words it likes to say."""
        return self._share("centred")

    def _share(self, way: str) -> Interval:
        return cluster_interval(self.rows[way], self.rows["world"])


def sst2(lm: LanguageModel, n: int = 200) -> Sentiment:
    """The sentiment of the first `n` test sentences (at most 200), by the log-probabilities of the labels, each summed over its tokens.

    The text is opened as the tokenizer opens one. The threshold comes from the 100 calibration sentences.
    """
    sentences, calibration = reviews("test"), reviews("calibration")
    if not 1 <= n <= len(sentences):
        raise LabError(f"SST-2: n must be 1 to {len(sentences)} sentences, got {n}")
    margins = _margins(lm, [sentence for sentence, _ in sentences[:n] + calibration])
    return judged(sentences[:n], margins[:n], margins[n:])


def judged(sentences: Sequence[tuple[str, bool]], margins: np.ndarray, calibration: np.ndarray) -> Sentiment:
    """What the margins [N] of sentences, each with whether it is positive, say beside those of the calibration sentences [M]."""
    threshold = float(np.median(calibration))
    names = [f"sst2/{number:03d}" for number in range(len(sentences))]
    positive = np.array([label for _, label in sentences])
    rows = {
        "item_id": names,
        "world": names,
        "question": [sentence for sentence, _ in sentences],
        "answer": [LABELS[label].strip() for label in positive.astype(int)],
        "margin": margins,
        "raw": ((margins > 0) == positive).astype(float),
        "centred": ((margins > threshold) == positive).astype(float),
    }
    return Sentiment(pd.DataFrame(rows), threshold)


def wikitext2(lm: LanguageModel, articles: int | None = None) -> TextLoss:
    """The loss on the first `articles` validation articles (None: all 19, 256 KB), read as one text in the file's tokenised form.

    Windows of 1,024 tokens, or of the model's context limit where that is lower, do not overlap. In the tokenised form rare words
    are `<unk>` and punctuation stands apart, so perplexities compare with others on that form and tokenizer; nats a byte compare
    models of any tokenizer.
    """
    texts = wikipedia("valid_head")
    if articles is not None and not 1 <= articles <= len(texts):
        raise LabError(f"WikiText-2: articles must be 1 to {len(texts)}, got {articles}")
    return text_loss(lm, ["".join(texts[:articles])], min(WINDOW, lm.spec.context_limit))


def rehearsal() -> list[str]:
    """The training articles (19, 305 KB of raw text, none of them measured on): plain English for a model that learns something else."""
    return wikipedia("train_head")


def measure(lm: LanguageModel, n: int = 200, articles: int | None = None) -> dict[str, Any]:
    """Both measures as plain numbers, for a card. Accuracies in [0, 1], losses in nats; `perplexity` = exp(nats a token)."""
    sentiment, loss = sst2(lm, n), wikitext2(lm, articles)
    shares = {"raw": sentiment.raw, "centred": sentiment.centred}
    found = {way: {"accuracy": share.mean, "low": share.low, "high": share.high} for way, share in shares.items()}
    text = {"nats_per_token": loss.per_token, "nats_per_byte": loss.per_byte, "perplexity": math.exp(loss.per_token), "tokens": loss.tokens}
    return {"sst2": {**found, "threshold": sentiment.threshold, "n": n}, "wikitext2": text}


def against(now: Mapping[str, Any], base: Mapping[str, Any]) -> Frame:
    """A row a measure, of two results of `measure`: measure, now, base, limit (the worst that passes) and holds.

    An accuracy may fall by 2 points, perplexity may rise by 5 %. LabError where the two were not measured on the same texts.
    """
    for name, key in (("sst2", "n"), ("wikitext2", "tokens")):
        if now[name][key] != base[name][key]:
            found = f"{now[name][key]} {key} now, {base[name][key]} for the base"
            raise LabError(f"{name}: {found}; measure both with one tokenizer on the same texts")
    rows = []
    for way in ("raw", "centred"):
        here, there = now["sst2"][way]["accuracy"], base["sst2"][way]["accuracy"]
        rows.append((f"SST-2, {way}", here, there, there - POINTS, here >= there - POINTS - 1e-9))
    here, there = now["wikitext2"]["perplexity"], base["wikitext2"]["perplexity"]
    rows.append(("WikiText-2, perplexity", here, there, there * RATIO, here <= there * RATIO + 1e-9))
    return pd.DataFrame(rows, columns=["measure", "now", "base", "limit", "holds"])


def reviews(part: str) -> list[tuple[str, bool]]:
    """The sentences of a part of SST-2 ("calibration" or "test"), each with whether it is positive."""
    lines = _read(f"{SAMPLES}/sst2/{part}.tsv").splitlines()
    return [(sentence, label == "1") for sentence, _, label in (line.rpartition("\t") for line in lines)]


def wikipedia(part: str) -> list[str]:
    """The articles of a part of WikiText-2 ("valid_head" or "train_head"), which together are its file."""
    text = _read(f"{SAMPLES}/wikitext2/{part}.txt")
    starts = [match.start() for match in ARTICLE.finditer(text)][1:]
    return [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True)]


def _margins(lm: LanguageModel, sentences: list[str]) -> np.ndarray:
    """log p(positive) - log p(negative) after each sentence, in nats [N]."""
    contexts = [lm.template.begin + PROMPT.format(sentence=sentence) for sentence in sentences for _ in LABELS]
    found = log_likelihood(lm, contexts, list(LABELS) * len(sentences), lm.spec.batch_size)
    return np.diff(np.reshape([one.nats for one in found], (-1, len(LABELS))))[:, 0]


def _read(name: str) -> str:
    path: Path = root() / name
    if not path.exists():
        raise LabError(f"missing {path}; it is part of the repository: restore it with `git checkout -- {name}`")
    return path.read_text(encoding="utf-8")
