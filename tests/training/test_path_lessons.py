"""Lessons for the fitted reader say what is true of their texts, and draw on nothing of another split."""

from random import Random

import pytest
import torch

from hippo_core.methods.relational.encoder import KINDS, ROLES, Marker
from hippo_core.models import minilm
from recipes import path_encoder, path_lessons
from recipes.path_lessons import CutLessons, Lessons, TagLessons, contrast, plain
from tests.methods.asking import needs_minilm as needs_reader

pytestmark = needs_reader


@pytest.fixture(scope="module")
def tokenizer():
    return minilm.copied()[0]


@pytest.fixture(scope="module")
def marker(tokenizer):
    return Marker(tokenizer)


def names_in(raw, tokenizer):
    """The names of a text, as its labels have them."""
    names = []
    for piece, label in zip(raw.text.ids, raw.named, strict=True):
        if label == 1:
            names.append([piece])
        elif label == 2:
            names[-1].append(piece)
    return [tokenizer.decode(pieces) for pieces in names]


@pytest.mark.parametrize("lessons", [Lessons, TagLessons, CutLessons])
def test_a_lesson_repeats_itself(marker, lessons):
    assert lessons(marker, "train")(3) == lessons(marker, "train")(3) != lessons(marker, "train")(4)


def test_what_tells_a_tie_is_no_name(marker, tokenizer, monkeypatch):
    monkeypatch.setattr(path_lessons, "any_name", lambda random: random.choice(("the old mill", "Vera Holt")))
    common = [tokenizer.decode(tokenizer(noun, add_special_tokens=False)["input_ids"]) for noun in path_lessons.further_names()["common"]]
    for number in range(40):
        raw = plain(marker, Random(number))
        assert {*names_in(raw, tokenizer)} <= {"old mill", "vera holt"}
        assert any(noun in tokenizer.decode(raw.text.ids) for noun in common)
        assert {role for role in raw.roles if role >= 0} <= {ROLES.index("party")}


def test_a_correction_tells_what_has_become_so():
    for number in range(40):
        text, [(start, end, name)] = path_lessons._corrected("Vera Holt runs the mill.", [(0, 9, "Vera Holt")], Random(number))
        assert text[start:end] == name and text != "Vera Holt runs the mill."


@pytest.mark.parametrize(("corrected", "left"), [(0.0, {"plain", "update"}), (1.0, {"update"})])
def test_a_share_of_the_plain_statements_is_told_as_corrections(marker, corrected, left):
    world = path_lessons._world(Random(1), "train", 1, 1)
    unmarked = path_lessons.unmarked(world, marker, Random(1), 20, path_lessons.made_name, corrected)
    assert {KINDS[raw.kind] for raw in unmarked if raw.kind >= 0} & {"plain", "update"} == left


def test_validation_has_no_name_for_training_alone(marker, monkeypatch):
    monkeypatch.setattr(path_lessons, "further_names", lambda: pytest.fail("names for training alone"))
    assert TagLessons(marker, "val")(0)


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_hop_leads_from_its_name_over_its_statement(marker, split):
    of = contrast(Random(1), marker, split, 16)
    assert len(of.hops) == len(of.statements) >= 12
    for statement, hop, (start, end) in zip(of.statements, of.hops, of.right, strict=True):
        assert {start, end} == {1, 2} == {mark for mark in statement.marks if mark > 0}
        assert statement.named[start - 1] == hop.named[0]


def test_the_loss_is_that_of_the_right_statement(marker):
    """MiniLM as it is finds its own statements likelier than others."""
    model, of = path_encoder.PathEncoder(minilm.copied()[1]).eval(), contrast(Random(1), marker, "train", 12)
    turned = path_encoder.Contrast(of.statements[1:] + of.statements[:1], of.hops, of.right[1:] + of.right[:1])
    with torch.no_grad():
        assert path_encoder.contrast_loss(model, of) < path_encoder.contrast_loss(model, turned) - 0.5
