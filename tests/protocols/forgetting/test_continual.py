"""The benches of benchmarks/continual: stories, linear functions in context and the scaling grid."""

import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from benchmarks.continual import linear, scaling, stories
from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line
from hippo_core.lab.cli import commands
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial

KIND = [f"the {who} saw the {what} and the {what} ran ." for who in ("cat", "dog", "boy") for what in ("ball", "bird", "sun")] * 20
SHAPE = TransformerShape(32, 300, layers=2, heads=2, width=32)


@pytest.fixture(scope="module")
def tokenizer():
    return stories.vocabulary(KIND, 300)


def test_text_is_learnt_and_other_text_is_not(tokenizer):
    validated = []
    vector, curve = stories.learn(SHAPE, stories.tokens_of(tokenizer, KIND), 1.2, 1, lambda v: (validated.append(v.clone()), 0.5)[1])
    mine, other = (stories.asked(SHAPE, vector, tokenizer, texts)["bits_per_byte"] for texts in (KIND[:9], ["zebra quiz; 93 xylophones"]))
    assert curve[-1]["step"] > 10 and mine < 1.0 < 4.0 < other
    assert len(validated) == len(curve) and torch.equal(validated[-1], vector) and {look["validation"] for look in curve} == {0.5}


def story_runs(shift=0.0):
    """Two seeds of dense and of a variant whose validation loss is `shift` higher, and which learns in half the steps."""
    runs, curves = [], []
    for variant, apart, every in (("dense", 0.0, 100), ("fc2=256", shift, 50)):
        for seed, luck in ((1337, 0.0), (1338, 0.2)):
            run = {"variant": variant, "seed": seed, "minutes": 1.0}
            runs.append(run | {"weights": 1000, "TinyStories, test, nats": 2 + apart + luck, "TinyStories, test, bits": 1 + apart})
            losses = enumerate((4.0, 3.0, 2.0), 1)
            curves += [run | {"step": n * every, "training": loss, "validation": loss + luck + apart} for n, loss in losses]
    return pd.DataFrame(runs), pd.DataFrame(curves)


def test_variants_are_compared_by_seed_at_the_same_training_loss():
    runs, curves = story_runs(0.5)
    matched = stories.at_equal_loss(curves)
    assert sorted(set(matched["level"])) == pytest.approx([2.0, 2.4, 3.0])
    assert matched[matched["seed"] == 1338]["validation"].tolist() == pytest.approx([3.2, 3.7, 2.6, 3.1, 2.2, 2.7])
    text = stories.tables(runs, curves)
    assert "| 2.400 | fc2=256 | 3.000 ± 0.141 | +0.500 ± 0.000 |" in text and "| 2.400 | dense | 2.500 ± 0.141 | – |" in text
    assert "| dense | 1,000 | 2 | 300 | 2.000 ± 0.000 | 2.100 ± 0.141 | +0.100 ± 0.141 | 2.100 ± 0.141, 1.000 ± 0.000 |" in text
    assert text.endswith("| fc2=256 | +23.9 ± 1.6 | -2.4 |")
    assert "no training loss in common" in stories.tables(runs, curves.groupby(["variant", "seed"]).tail(1))


@pytest.mark.parametrize("variant", ["fc3=256", "fc1", "sort=0", "fc1=256,", "fc2=-1"])
def test_a_variant_that_is_none(variant):
    with pytest.raises(LabError, match=f"expected a variant such as dense, fc2=256.* got '{variant}'"):
        stories.shape_of(variant)


def test_a_variant_has_its_bands():
    assert stories.shape_of("fc1=256,fc2=128") == replace(stories.shape_of("dense"), fc1=256, fc2=128)


def test_what_is_asked_is_counted_by_hand(tokenizer):
    vector = torch.zeros_like(initial(SHAPE, 0))  # every token is as likely as any other
    result = stories.asked(SHAPE, vector, tokenizer, KIND[:9])
    tokens = len(stories.tokens_of(tokenizer, KIND[:9])) - 1
    assert result["tokens"] == tokens > 2 * SHAPE.block and tokens % SHAPE.block  # whole windows and one that is not
    assert result["nats"] == pytest.approx(math.log(300)) and result["perplexity"] == pytest.approx(300)
    assert result["bits_per_byte"] == pytest.approx(tokens * math.log2(300) / sum(len(text) for text in KIND[:9]))


def test_a_text_shorter_than_a_window(tokenizer):
    with pytest.raises(LabError, match="more than 32 tokens, got 20"):
        stories.learn(SHAPE, torch.zeros(20, dtype=torch.long), 1.0, 1)


LINEAR = linear.shape_of(2)


def drawn_functions(count=4):
    return linear.functions(count, 2, torch.Generator().manual_seed(0))


def test_a_prediction_knows_the_examples_before_it_and_its_own_x_alone():
    (x, y), vector = drawn_functions(), initial(LINEAR, 1)
    before = linear.predicted(LINEAR, vector, x, y)
    changed = y.clone()
    changed[:, 4:] += 1
    after = linear.predicted(LINEAR, vector, x, changed)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-6) and not torch.allclose(before[:, 5], after[:, 5], atol=1e-6)
    x[:, 3] += 1
    assert not torch.allclose(before[:, 3], linear.predicted(LINEAR, vector, x, y)[:, 3], atol=1e-6)


def test_least_squares_knows_a_function_of_two_dimensions_from_two_examples():
    x, y = drawn_functions(50)
    result = linear.least_squares(x, y)
    assert (result[:, 0] == 0).all() and torch.allclose(result[:, 2:], y[:, 2:], atol=1e-2)
    assert (result[:, 1] - y[:, 1]).abs().max() > 0.5


def test_saying_nothing_has_an_error_of_one():
    result = linear.errors(LINEAR, torch.zeros(LINEAR.weights), 0, count=2000)
    assert result["model"].mean().item() == pytest.approx(1, abs=0.1)
    assert result["least squares"][:, 3:].mean().item() < 0.01


@pytest.mark.parametrize(("examples", "dimensions"), [(4, 3), (11, 2)])
def test_what_does_not_fit_the_model(examples, dimensions):
    with pytest.raises(LabError, match=f"10 examples of 2 dimensions cannot be asked {examples} examples of {dimensions} dim"):
        linear.predicted(LINEAR, initial(LINEAR, 1), torch.zeros(1, examples, dimensions), torch.zeros(1, examples))


SCALED = scaling.TransformerShape(8, 20, layers=1, heads=2, width=16)


def test_every_window_is_learnt_from_once(monkeypatch):
    seen = []
    monkeypatch.setattr(scaling, "BATCH", 2)
    monkeypatch.setattr(scaling, "nats", lambda shape, vector, windows: (seen.append(windows), vector.sum().unsqueeze(0))[1])
    scaling.learn(SCALED, torch.arange(8 * 7 + 1), 3)
    starts = [int(row[0]) for windows in seen for row in windows]
    assert sorted(starts) == [0, 8, 16, 24, 32, 40] and starts != sorted(starts)  # the seventh makes no batch
    assert all(row.tolist() == list(range(int(row[0]), int(row[0]) + 9)) for windows in seen for row in windows)


def test_more_text_has_a_lower_loss():
    tokens = torch.tensor([3, 5, 7, 9] * 400)
    losses = []
    for count in (100, 1600):
        vector = scaling.learn(SCALED, tokens[:count], 1)
        losses.append(scaling.nats(SCALED, vector, tokens[:9].unsqueeze(0)).mean().item())
    assert losses[1] < losses[0] - 0.5


def test_a_batch_larger_than_the_data_is_one_line_that_ends_the_command():
    with pytest.raises(LabError, match="a batch of 8 windows is larger than the data: expected more than 64 tokens, got 60"):
        scaling.learn(SCALED, torch.zeros(60, dtype=torch.long), 1)
    with pytest.raises(SystemExit, match="too little"), mistakes_in_a_line():
        raise LabError("too little")


@pytest.mark.parametrize("name", ["stories", "linear", "scaling"])
def test_a_benchmark_is_a_command_that_gets_all_words(monkeypatch, name):
    called, ended = [], SimpleNamespace(returncode=3)
    monkeypatch.setattr(commands.subprocess, "run", lambda words, env, check: (called.append((words, env)), ended)[1])
    result = CliRunner().invoke(commands.app, [name, "2", "--seeds", "3", "--help"])
    [(words, env)] = called
    assert result.exit_code == 3 and words[1:] == ["-m", f"benchmarks.continual.{name}", "2", "--seeds", "3", "--help"]
    assert (Path(env["PYTHONPATH"].split(os.pathsep)[0]) / "benchmarks/continual" / f"{name}.py").is_file()
