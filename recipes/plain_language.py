"""Is it still the language model it was? The loss on the prose of Python's own manual, and where the files are there, the sentiment of film
reviews (SST-2) and the loss on articles of Wikipedia (WikiText-2).
"""

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import TextLoss, log_likelihood, text_loss
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import Interval, cluster_interval
from hippo_core.text_files import why_missing
from hippo_core.training import language

MANUAL_SHA256 = "c47cc04e70c9a71a209d897852b87227ba5efe139a379e52440aec8d82c1f2aa"  # of Python 3.11.7's: the lab's own numbers are of it
POINTS, RATIO = 0.02, 1.05  # what may be lost: two points of accuracy, 5 % of perplexity


@dataclass(frozen=True)
class Sentiment:
    """SST-2, without examples.

    `rows` has a row a sentence, as `results.statistics.compare` pairs them: `margin` = log p(positive) - log p(negative) in nats, and the
    scores of two ways to decide: `raw` says positive where the margin is over 0, `centred` where it is over `threshold`.
    """

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

    def _share(self, rule: str) -> Interval:
        return cluster_interval(self.rows[rule], self.rows["world"])


def sst2(lm: LanguageModel, n: int = 200) -> Sentiment:
    """The sentiment of the first `n` test sentences (at most 200), by the log-probabilities of the labels, each summed over its tokens. The
    threshold is the median margin of the 100 calibration sentences, half of them positive."""
    sentences, calibration = language.reviews("test"), language.reviews("calibration")
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
        "answer": [language.LABELS[label].strip() for label in positive.astype(int)],
        "margin": margins,
        "raw": ((margins > 0) == positive).astype(float),
        "centred": ((margins > threshold) == positive).astype(float),
    }
    return Sentiment(pd.DataFrame(rows), threshold)


def wikitext2(lm: LanguageModel, articles: int | None = None) -> TextLoss:
    """The loss on the first `articles` of 19 validation articles (None: all, 256 KB), as one text in the file's tokenised form. Windows of
    1,024 tokens, or of the model's context limit, do not overlap. Perplexities compare on this form and tokenizer only."""
    return _loss(lm, language.wikipedia("valid"), articles, "", "WikiText-2: articles")


def python_manual(lm: LanguageModel, paragraphs: int | None = None) -> TextLoss:
    """The loss on the first `paragraphs` of the manual (None: all), a line each, read as one text in windows as in `wikitext2`."""
    return _loss(lm, language.manual(), paragraphs, "\n", "Python's manual: paragraphs")


def _loss(lm: LanguageModel, texts: list[str], count: int | None, between: str, what: str) -> TextLoss:
    """The loss on the first `count` texts, read as one in windows."""
    if count is not None and not 1 <= count <= len(texts):
        raise LabError(f"{what} must be 1 to {len(texts)}, got {count}")
    return text_loss(lm, [between.join(texts[:count])], min(language.WINDOW, lm.spec.context_limit))


def measure(
    lm: LanguageModel, n: int = 200, articles: int | None = None, paragraphs: int | None = None, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """The measures as plain numbers, for a card: accuracies in [0, 1], losses in nats, `perplexity` = exp(nats a token). A line is said of
    each measure whose files are not there."""
    text = "\n".join(language.manual())  # it differs between versions of Python: losses on two texts do not compare
    source = {"sha256": sha256(text.encode()).hexdigest(), "python": platform.python_version()}
    if source["sha256"] != MANUAL_SHA256:
        say(f"the manual of Python {source['python']} is another text than that of 3.11.7: its loss is another measure")
    measures: dict[str, Any] = {"python_manual": plain(python_manual(lm, paragraphs)) | source}
    if reason := why_missing([language.SST2]):
        say(f"SST-2 skipped: {reason}")
    else:
        sentiment = sst2(lm, n)
        shares = {"raw": sentiment.raw, "centred": sentiment.centred}
        accuracies = {name: {"accuracy": share.mean, "low": share.low, "high": share.high} for name, share in shares.items()}
        measures["sst2"] = {**accuracies, "threshold": sentiment.threshold, "n": n}
    if reason := why_missing([language.WIKITEXT2["valid"]]):
        say(f"WikiText-2 skipped: {reason}")
    else:
        measures["wikitext2"] = plain(wikitext2(lm, articles))
    return measures


def plain(loss: TextLoss) -> dict[str, Any]:
    """A loss as numbers for a card."""
    perplexity = math.exp(loss.per_token)
    return {"nats_per_token": loss.per_token, "nats_per_byte": loss.per_byte, "perplexity": perplexity, "tokens": loss.tokens}


def against(now: Mapping[str, Any], base: Mapping[str, Any]) -> Frame:
    """A row a measure that both results of `measure` have: measure, now, base, limit (the worst that passes) and holds. An accuracy may
    fall by 2 points, a perplexity may rise by 5 %. LabError where the two were not measured on the same texts."""
    shared = [name for name in ("sst2", "wikitext2", "python_manual") if name in now and name in base]
    for name, key in (("sst2", "n"), ("wikitext2", "tokens"), ("python_manual", "tokens"), ("python_manual", "sha256")):
        if name in shared and now[name][key] != base[name][key]:
            sizes = f"{now[name][key]} {key} now, {base[name][key]} for the base"
            raise LabError(f"{name}: {sizes}; measure both with one tokenizer on the same texts, under one version of Python")
    rows = []
    for label in ("raw", "centred") if "sst2" in shared else ():
        here, there = now["sst2"][label]["accuracy"], base["sst2"][label]["accuracy"]
        rows.append((f"SST-2, {label}", here, there, there - POINTS, here >= there - POINTS - 1e-9))
    for name, title in (("wikitext2", "WikiText-2"), ("python_manual", "Python's manual")):
        if name in shared:
            here, there = now[name]["perplexity"], base[name]["perplexity"]
            rows.append((f"{title}, perplexity", here, there, there * RATIO, here <= there * RATIO + 1e-9))
    return pd.DataFrame(rows, columns=["measure", "now", "base", "limit", "holds"])


def _margins(lm: LanguageModel, sentences: list[str]) -> np.ndarray:
    """log p(positive) - log p(negative) after each sentence, in nats [N]."""
    contexts = [lm.template.begin + language.PROMPT.format(sentence=sentence) for sentence in sentences for _ in language.LABELS]
    likelihoods = log_likelihood(lm, contexts, list(language.LABELS) * len(sentences), lm.spec.batch_size)
    return np.diff(np.reshape([likelihood.nats for likelihood in likelihoods], (-1, len(language.LABELS))))[:, 0]
