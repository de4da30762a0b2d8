"""Sentiment and loss: what the texts hold, scores from log-likelihoods, the windows, and what counts as worse."""

import copy
import dataclasses
import math
from hashlib import sha256

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.models.score import log_likelihood, text_loss
from hippo_core.training import language
from hippo_core.training.language import LABELS, PROMPT, reviews, wikipedia
from recipes.plain_language import against, judged, measure, python_manual, sst2, wikitext2
from tests.texts import needs

OF_OTHERS = needs("sst2", "wikitext2-train", "wikitext2-valid")


def checksum(lines: list[str]) -> str:
    return sha256("".join(lines).encode()).hexdigest()


def test_sentences_are_drawn_balanced_and_none_is_in_both_parts(made_up_texts):
    calibration, test = (reviews(part) for part in ("calibration", "test"))
    assert (len(calibration), sum(positive for _, positive in calibration)) == (100, 50)
    assert (len(test), sum(positive for _, positive in test)) == (200, 100)
    assert not set(calibration) & set(test)


@OF_OTHERS
def test_the_parts_are_those_that_the_labs_numbers_were_measured_on():
    drawn = {part: checksum([f"{sentence}\t{positive:d}\n" for sentence, positive in reviews(part)]) for part in ("calibration", "test")}
    assert drawn["calibration"] == "43caeb11de2b38bbc2738bbc98b855e67e4be2ffbe6ca1951b33b54c73071bc0"
    assert drawn["test"] == "75e919c7f2f46a307a40f58b2a3362bac246d62f3f9668921614fb3764ed2285"
    assert checksum(wikipedia("valid")) == "43e0bacdda872eddec0423895253964fe440687052b008dbdc6096f0dc5ee815"
    assert checksum(wikipedia("train")) == "f7c0359620dba73aa8c73419e100af951d5c3f315790ca055f24c4e4608f8ccd"


def test_the_margin_is_the_difference_of_the_labels(lm, made_up_texts):
    rows = sst2(lm, 3).rows
    for sentence, margin in zip(rows["question"], rows["margin"], strict=True):
        context = lm.template.begin + PROMPT.format(sentence=sentence)
        negative, positive = (log_likelihood(lm, [context], [label])[0].nats for label in LABELS)
        assert margin == pytest.approx(positive - negative, abs=1e-4)


def test_scores_follow_from_margins(lm, made_up_texts):
    measured = sst2(lm, 60)
    positive = measured.rows["answer"] == "positive"
    assert (measured.rows["raw"] == ((measured.rows["margin"] > 0) == positive)).all()
    assert (measured.rows["centred"] == ((measured.rows["margin"] > measured.threshold) == positive)).all()
    assert measured.raw.mean == pytest.approx(measured.rows["raw"].mean())
    assert measured.raw.low <= measured.raw.mean <= measured.raw.high
    assert (measured.raw.n, measured.raw.n_worlds) == (60, 60)


def test_a_liking_for_one_label_changes_raw_scores_only():
    sentences, random = [("a film", number % 2 == 0) for number in range(40)], np.random.default_rng(3)
    margins, calibration = random.normal(size=40) + np.tile([1, -1], 20), random.normal(size=100)
    plain, biased = judged(sentences, margins, calibration), judged(sentences, margins + 1000, calibration + 1000)
    assert plain.raw.mean > 0.6
    assert biased.raw.mean == 0.5
    assert biased.threshold == pytest.approx(plain.threshold + 1000)
    assert biased.centred.mean == plain.centred.mean


@pytest.mark.parametrize(
    ("measure", "n", "says"),
    [
        *((sst2, n, f"1 to 200 sentences, got {n}") for n in (0, 201, -3)),
        *((wikitext2, n, "articles must be 1 to 19") for n in (0, 20)),
        (python_manual, 0, "paragraphs must be 1 to"),
    ],
)
def test_no_more_is_measured_than_there_is(loaded, made_up_texts, measure, n, says):
    with pytest.raises(LabError, match=says):
        measure(loaded["qwen2"], n)


def test_windows_are_the_same_for_models_that_see_further(loaded, made_up_texts, monkeypatch):
    lm = loaded["qwen2"]
    short = dataclasses.replace(lm, spec=lm.spec.model_copy(update={"context_limit": 64}))
    monkeypatch.setattr(language, "WINDOW", 64)
    assert wikitext2(lm, 1).nats == pytest.approx(wikitext2(short, 1).nats)


def test_plain_numbers_for_a_card(loaded, made_up_texts):
    measured = measure(loaded["llama"], 20, 1, 3)
    assert 0 <= measured["sst2"]["raw"]["low"] <= measured["sst2"]["raw"]["accuracy"] <= measured["sst2"]["raw"]["high"] <= 1
    assert measured["sst2"]["n"] == 20
    assert measured["wikitext2"]["perplexity"] == pytest.approx(math.exp(measured["wikitext2"]["nats_per_token"]))
    assert measured["wikitext2"]["nats_per_byte"] > 0
    assert measured["python_manual"]["tokens"] == python_manual(loaded["llama"], 3).tokens


def test_what_is_not_there_is_skipped_with_the_reason_and_the_manual_is_measured(loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path))
    lines: list[str] = []
    measured = measure(loaded["llama"], 20, 1, 3, lines.append)
    assert set(measured) == {"python_manual"}
    assert [line.split()[0] for line in lines if "skipped: " in line and "set HIPPO_DATA" in line] == ["SST-2", "WikiText-2"]


def test_the_manual_is_prose_each_paragraph_once():
    paragraphs = language.manual()
    assert len(paragraphs) == len(set(paragraphs)) > 300
    assert all(text[0].isupper() and text.endswith(".") and "\n" not in text and "::=" not in text for text in paragraphs)


def test_another_pythons_manual_is_another_measure_and_says_so(loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path))
    lines: list[str] = []
    monkeypatch.setattr(
        language, "topics", {"a": "One sentence. Another one.\n\n   code = 1\n\nOne more\nof two lines.", "b": "One more\nof two lines."}
    )
    assert language.manual() == ["One sentence. Another one.", "One more of two lines."]
    measured = measure(loaded["llama"], 20, 1, None, lines.append)
    assert measured["python_manual"]["sha256"] == checksum(["One sentence. Another one.\nOne more of two lines."])
    assert "is another text than that of 3.11.7" in lines[0]


def test_the_loss_on_the_manual_is_that_of_its_paragraphs(lm):
    due = text_loss(lm, ["\n".join(language.manual()[:2])], lm.spec.context_limit)
    assert python_manual(lm, 2).nats == pytest.approx(due.nats)


@pytest.fixture(scope="module")
def numbers():
    share = {"accuracy": 0.8, "low": 0.75, "high": 0.85}
    text = {"nats_per_token": math.log(16), "nats_per_byte": 0.7, "perplexity": 16.0, "tokens": 100}
    return {"sst2": {"raw": share, "centred": dict(share), "threshold": 0.1, "n": 200}, "wikitext2": text}


@pytest.mark.parametrize(
    ("path", "value", "holds"),
    [
        (("sst2", "raw", "accuracy"), 0.78, [True, True, True]),
        (("sst2", "raw", "accuracy"), 0.775, [False, True, True]),
        (("sst2", "centred", "accuracy"), 0.70, [True, False, True]),
        (("wikitext2", "perplexity"), 16.8, [True, True, True]),
        (("wikitext2", "perplexity"), 16.9, [True, True, False]),
        (("wikitext2", "perplexity"), 9.0, [True, True, True]),
    ],
)
def test_worse_is_two_points_or_five_percent(numbers, path, value, holds):
    now = copy.deepcopy(numbers)
    *parents, last = path
    node = now
    for key in parents:
        node = node[key]
    node[last] = value
    assert against(now, numbers)["holds"].tolist() == holds


def test_only_what_both_have_is_compared_and_no_numbers_of_other_texts(numbers):
    manual = {"python_manual": {"perplexity": 20.0, "tokens": 9, "sha256": "a"}}
    assert against(numbers | manual, numbers)["measure"].tolist() == against(numbers, numbers)["measure"].tolist()
    worse = {"python_manual": manual["python_manual"] | {"perplexity": 21.1}}
    assert against(worse, manual)["holds"].tolist() == [False]
    with pytest.raises(LabError, match="python_manual: b sha256 now, a for the base"):
        against({"python_manual": manual["python_manual"] | {"sha256": "b"}}, manual)
    with pytest.raises(LabError, match="wikitext2: 100 tokens now, 99 for the base"):
        against(numbers, numbers | {"wikitext2": numbers["wikitext2"] | {"tokens": 99}})
