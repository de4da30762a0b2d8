"""The fit of the arbiter: how far each memory is believed follows how often it was right that was so sure."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from hippo_core.methods.composite import ConfidenceCalibration
from recipes import fit_part_calibration as arbiter

PLANTED = ConfidenceCalibration(bias=-1.0, confidence=4.0, restated=-2.0, joined=1.0, agreed=1.5)


def planted(n, suite="mixed", trust=PLANTED, seed=0):
    """Answers of a memory that is right as often as `trust` says."""
    random = np.random.default_rng(seed)
    rows = pd.DataFrame({"suite": suite, "confidence": random.random(n)})
    rows = rows.assign(**{name: random.integers(0, 2, n).astype(float) for name in ("restated", "joined", "agreed")})
    chance = [trust.of(row) for row in rows.drop(columns="suite").to_dict("records")]
    return rows.assign(right=(random.random(n) < chance).astype(float))


def test_the_fit_finds_how_often_a_memory_is_right_that_is_so_sure():
    function = arbiter.fitted(planted(20_000))
    assert function.model_dump() == pytest.approx(PLANTED.model_dump(), abs=0.25)


def test_each_kind_of_world_counts_the_same_however_many_answers_it_has():
    rows = pd.concat([planted(300, "episodic"), planted(300, "spatial", ConfidenceCalibration(bias=2.0, confidence=-4.0), seed=1)])
    more = pd.concat([rows, *[rows[rows["suite"] == "spatial"]] * 5])
    assert arbiter.fitted(more) == arbiter.fitted(rows)


def test_what_is_said_of_each_part_can_stand_in_the_preset(monkeypatch, capsys):
    parts = [planted(400).assign(part="episodic"), planted(9, seed=2).assign(part="spatial", right=1.0)]
    monkeypatch.setattr(arbiter, "judged", lambda preset: pd.concat(parts).to_dict("records"))
    arbiter.main()
    first, *_, last = capsys.readouterr().out.splitlines()
    assert {part: ConfidenceCalibration(**values) for part, values in yaml.safe_load(first).items()} == {
        "episodic": arbiter.fitted(parts[0])
    }
    assert last.strip() == "spatial: always right or always wrong where it says something; nothing to fit"


def test_every_memory_that_says_how_sure_it_is_is_asked_every_question_by_itself():
    rows = pd.DataFrame(arbiter.judged(arbiter.PRESET, {"mixed": 5}, "hippo-tiny"))
    assert set(rows["part"]) == {"episodic", "semantic", "spatial"} and set(rows["suite"]) == {"mixed"}
    assert rows["confidence"].between(0, 1).all() and set(rows["right"]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("scores", "right"), [({"em_norm": 0.0, "success": 1.0}, 1), ({"em_norm": 1.0, "success": float("nan")}, 1), ({"em_norm": 0.0}, 0)]
)
def test_a_way_is_right_where_it_leads_there_and_all_else_where_it_is_the_answer(monkeypatch, scores, right):
    monkeypatch.setattr(arbiter, "score_item", lambda *given: scores)
    answered = SimpleNamespace(world=None, item=None, answer=SimpleNamespace(text=""))
    assert arbiter.is_right(None, answered) == right
