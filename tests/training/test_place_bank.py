"""The bank of place statements: splits share no wording, and training has no wording of the tests."""

import re

import pytest

from hippo_core.errors import LabError
from hippo_core.files import home
from hippo_core.models.spec import read_mapping
from hippo_core.suites.reworded import wordings
from hippo_core.suites.splits import SPLITS
from recipes import place_bank as bank
from recipes.place_lessons import PlaceLessons, reading_frames, reading_questions
from tests.texts import texts_of

SLOT = re.compile(r"\{\w+\}")


def blanked(text: str) -> str:
    """A wording without the names of its places, case and marks."""
    return " ".join(re.findall(r"\w+", SLOT.sub(" x ", text).casefold()))


def split_texts(split: str) -> list[str]:
    """A split's statements in the settings of training, on walks, and questions."""
    walks = [text for kind in bank.WALKS for text in bank.walks(kind, split)]
    openings = [text for both in bank.openings(split) for text in both]
    return [*(frame.text for frame in bank.frames(split)), *walks, *openings, *(text for text, _ in bank.questions(split))]


def test_the_bank_is_the_frozen_bank(monkeypatch):
    monkeypatch.setattr(bank, "FROZEN", "0" * 64)
    bank._settings.cache_clear()
    with pytest.raises(LabError, match="restore the folder"):
        bank.settings_of("train")
    bank._settings.cache_clear()


def test_splits_share_no_setting_and_no_wording():
    settings = [setting for split in SPLITS for setting in bank.settings_of(split)]
    assert len(settings) == len(set(settings))
    for split, other in (("train", "val"), ("train", "test"), ("val", "test")):
        assert not {*map(blanked, split_texts(split))} & {*map(blanked, split_texts(other))}
    trained = {split.setting for split in bank.frames("train")} - {""}
    assert trained == {*bank.settings_of("train")} and not trained & {frame.setting for frame in bank.unseen("test")}


def test_training_has_no_wording_that_a_memory_is_tested_on():
    training = {
        blanked(text): text
        for text in (*split_texts("train"), *(frame.text for frame in reading_frames()), *(text for text, _ in reading_questions()))
    }
    tested = [frame.text for frame in bank.unseen("test")] + split_texts("test") + texts_of(wordings("spatial"))
    for folder in ("ways", "ways_second", "ways_third", "ways_fourth", "ways_fifth"):
        tested += texts_of(read_mapping(home() / f"data/{folder}/frames.yaml"))
    tested = [text for text in tested if len(blanked(text).split()) > 2]
    assert len(tested) > 1500
    assert not {*map(blanked, tested)} & training.keys()


@pytest.mark.parametrize("split", SPLITS)
def test_the_spans_of_a_lesson_match_its_labels(split):
    for number in range(120):
        text = PlaceLessons(split, 1)(number)
        assert all(
            text.text[start:end] == place.removeprefix("the ") or text.text[start:end].lower() in place.lower()
            for start, end, place in text.spans
        )
        assert {place for both in text.says for place in both} <= set(text.places)
        assert all(text.text[start:].lower().startswith(("north", "east", "south", "west")) for start, _ in text.turns)
        assert "{" not in text.text
