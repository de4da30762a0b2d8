"""The card is what was measured: its skills are the experiments' path, its words come from its numbers."""

import json
import math
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.load import load
from hippo_core.models.score import TextLoss
from hippo_core.models.spec import load_spec
from hippo_core.training import language
from recipes import base_model, card, skills

LANGUAGE = {
    "sst2": {
        "raw": {"accuracy": 0.7, "low": 0.6, "high": 0.8},
        "centred": {"accuracy": 0.8, "low": 0.7, "high": 0.9},
        "threshold": 0.1,
        "n": 200,
    },
    "wikitext2": {"nats_per_token": 2.7, "nats_per_byte": 0.7, "perplexity": 14.9, "tokens": 100},
    "python_manual": {"perplexity": 30.0, "nats_per_byte": 0.9, "tokens": 90, "sha256": "ab" * 32, "python": "3.11.7"},
}
CURVE = [{"step": 50, "seconds": 60, "answers": 1.2}, {"step": 100, "seconds": 120, "answers": 0.4, "slots": 0.5, "slots/blocks": 0.4}]


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), "cpu")


@pytest.fixture
def measured():
    row = {"n": 200, "worlds": 60, "low": 0.8, "high": 0.9, "chance": 0.1, "goal": 0.9, "seconds": 0.02}
    rows = [
        {"skill": "two hops, 8 facts", "accuracy": 0.85, **row},
        {"skill": "two hops, 8 facts as blocks", "accuracy": 0.75, **row | {"goal": math.nan}},
        {"skill": 'no "unknown" where a fact says it, 8 facts', "accuracy": 0.97, **row | {"chance": math.nan}},
    ]
    return card.Measured(pd.DataFrame(rows), TextLoss(100.0, 50, 200), LANGUAGE)


@pytest.mark.parametrize("skill", skills.SKILLS, ids=lambda skill: skill.name)
def test_every_skill_has_items_of_its_kind(skill, made_up_texts):
    _, worlds = skills.choose_worlds(skill, 4, 1024)
    items = [item for world in worlds for item in world.items]
    assert len(items) == 4
    for world in worlds:
        assert not world.id.startswith("train")
        for item in world.items:
            assert set(item.gold_facts) <= set(item.taught)
            assert set(skill.new) <= set(item.slices)
            assert not skill.kinds or item.kind in skill.kinds


def test_a_skill_whose_file_is_not_there_is_skipped_with_the_reason(lm, monkeypatch, tmp_path):
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path))
    needy = [skill for skill in skills.SKILLS if skills.files_of(skill)]
    assert {skill.source for skill in needy} == {"needle", "babi"}
    lines = []
    table = skills.measure(lm, [skills.Skill("facts", "episodic", 2, ("exact",)), *needy], 2, 2, lines.append)
    assert table["skill"].tolist() == ["facts"]
    assert all(": skipped, " in line and "set HIPPO_DATA" in line for line in lines[1:])
    assert skills.story_loss(lm) is None


@pytest.mark.parametrize("model", ["hippo-tiny", "smollm2-135m"])
def test_a_training_without_its_files_is_refused_before_it_starts(monkeypatch, tmp_path, model):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    monkeypatch.setenv("HIPPO_DATA", str(tmp_path / "texts"))
    (tmp_path / "params").symlink_to(Path(__file__).parents[2] / "params")
    with pytest.raises(LabError, match=r"^\S+ and \d+ more missing .*; set HIPPO_DATA to a folder with the files of data/README.md$"):
        base_model.train_if(True, model, 1, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["params"]


@pytest.mark.parametrize("blocks", [False, True])
def test_a_skill_is_measured_as_text_and_as_blocks(lm, blocks):
    skill = skills.Skill("facts", "episodic", 2, ("exact",), blocks=blocks, goals={"hippo-tiny": 0.5})
    row = skills.measure_skill(lm, skill, 6, 4)
    assert row["n"] == 6
    assert row["goal"] == 0.5
    assert row["accuracy"] > 0.5


def test_the_card_says_met_missed_and_how_it_was_made(lm, measured, tmp_path):
    made = {"recipe": {"steps": 5, "lessons": 2, "stories": 1, "seed": 7}, "command": "make base-model", "seconds": 90, "threads": 2}
    (tmp_path / "training.json").write_text(json.dumps(made | {"torch": "2", "machine": "x", "curve": CURVE}))
    text = card.write_card(lm, measured, tmp_path).read_text()
    assert "| two hops, 8 facts | 0.85 | 0.80 to 0.90 | 0.10 | 0.90 not met | 200 | 60 |" in text
    assert "| two hops, 8 facts | 0.85 | 0.75 |" in text
    assert "5 steps of 2 lessons" in text
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert card.differences(measured.skills, tmp_path) == []
    changed = measured.skills.assign(accuracy=measured.skills["accuracy"] + [0.0, 0.1, 0.0])
    assert card.differences(changed, tmp_path) == ["two hops, 8 facts as blocks: 0.750 in the card, 0.850 now"]


def test_a_reader_is_compared_with_its_base(lm, measured):
    worse = card.Measured(measured.skills, measured.stories, {**LANGUAGE, "wikitext2": LANGUAGE["wikitext2"] | {"perplexity": 20.0}})
    made = {"recipe": {"steps": 5, "lessons": 2, "stories": 1, "seed": 7}, "command": "make", "seconds": 90, "threads": 2}
    base = {"model": {"name": "smollm2-135m"}, "language": LANGUAGE}
    text = card.text(lm, worse, made | {"torch": "2", "machine": "x"}, base)
    assert "| WikiText-2, perplexity | 20.000 | 14.900 | 15.645 | not met |" in text
    assert "| SST-2, raw | 0.700 | 0.700 | 0.680 | holds |" in text
    assert "| Python's manual, perplexity | 30.000 | 30.000 | 31.500 | holds |" in text
    assert "needs `sst2` of `data/README.md`" in text


def test_only_models_with_a_recipe_can_be_trained():
    assert base_model.train_if(False, "anything", 1, 0) == "anything"
    with pytest.raises(LabError, match="has no recipe"):
        base_model.train_if(True, "qwen2.5-1.5b-instruct", 1, 0)


def test_every_shipped_card_is_that_of_its_numbers():
    for path in sorted((root() / "data/weights").glob("*/card.json")):
        shown = (path.parent / "README.md").read_text(encoding="utf-8")
        for row in json.loads(path.read_text(encoding="utf-8"))["skills"]:
            assert f"| {row['skill']} | {row['accuracy']:.2f} |" in shown


def test_a_measurement_is_of_skills_and_of_language_and_is_drawn(lm, monkeypatch):
    monkeypatch.delenv("HIPPO_DATA", raising=False)
    monkeypatch.setattr(skills, "measure", partial(skills.measure, skills=skills.SKILLS[:2]))
    monkeypatch.setattr(language, "manual", lambda: ["Python is an easy to learn, powerful programming language."])
    measured = base_model.measure_if(1, lm)
    names = [skill.name for skill in skills.SKILLS[:2]]
    assert measured.skills["n"].tolist() == [1, 1] and measured.stories is None and set(measured.language) == {"python_manual"}
    assert [row["skill"] for row in base_model.records(base_model.skills_of(measured))] == names
    [axes] = base_model.skills_figure(measured.skills).axes
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == sorted(names)


def test_where_nothing_is_asked_nothing_is_measured_and_no_card_is_written(lm):
    assert base_model.measure_if(0, lm) is None
    assert base_model.records(base_model.skills_of(None)) == []
    assert "was not measured" in base_model.sentence(lm, None)
    with pytest.raises(LabError, match=r"written from what was measured: give the number of questions a skill"):
        base_model.write_card_if(True, lm, None)
