"""Sleeps in a row: which groups are asked when, what each sleep begins with, and what it leaves behind."""

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.consolidation import stream
from hippo_core.protocols.consolidation.parameters import SleepsParameters
from hippo_core.protocols.consolidation.sleeps_table import ROWS
from hippo_core.results.frames import Frame
from hippo_core.suites.types import World
from hippo_core.training.consolidation.sleep import Sleep
from tests.training.consolidation.conftest import WORLDS

FIVE = [World(f"w{number}", (), ()) for number in range(5)]


@pytest.fixture
def begun(monkeypatch):
    """Of each sleep what it begins with: how many traces are earlier ones, and whether the way has learnt anything."""
    seen = []

    class Watched(Sleep):
        def __init__(self, recipe, lm, update_rule, traces, orders, earlier=()):
            super().__init__(recipe, lm, update_rule, traces, orders, earlier)
            trained = any(weight.any() for name, weight in update_rule.weights().items() if "lora_B" in name)
            seen.append(([trace.text for trace in traces], len(earlier), trained, recipe.rehearse_earlier))

    monkeypatch.setattr(stream, "Sleep", Watched)
    return seen


@pytest.mark.parametrize("apart", [False, True])
def test_group_after_group_is_slept_on_and_asked(cell, lm, begun, apart):
    here = cell(SleepsParameters, groups=2, apart=apart, questions=8, in_context=1, rehearse_earlier=0.25)
    before = {name: weight.clone() for name, weight in lm.model.state_dict().items()}
    rows: Frame = ROWS.arranged(stream.sleeps(here, say=lambda line: None))
    assert [texts for texts, *_ in begun] == [[fact.text for fact in world.facts] for world in WORLDS]
    assert [tuple(rest) for _, *rest in begun] == ([(0, False, 0.25)] * 2 if apart else [(0, False, 0.25), (2, True, 0.25)])
    off: Frame = rows[rows["probe"] == "off"]
    asked = {sleep: sorted(set(group)) for sleep, group in off.groupby("sleep")["group"]}
    assert asked == ({0: [1, 2], 1: [1], 2: [2]} if apart else {0: [1, 2], 1: [1, 2], 2: [1, 2]})
    for row in off.itertuples():
        assert row.question_id in {item.id for item in WORLDS[row.group - 1].items}
    text = rows[rows["probe"] == "text"].groupby("sleep")["nats"].mean()
    assert list(text.index) == [0, 2] and text[0] != text[2]
    assert set(rows[rows["probe"] == "oracle"]["sleep"]) == {0}
    assert all(weight.equal(before[name]) for name, weight in lm.model.state_dict().items())
    assert (here.record / "consolidated").exists() != apart and here.slept["sleeps"] == 2


@pytest.mark.parametrize(
    ("groups", "size", "fewer", "lengths"), [(2, None, False, [2, 3]), (2, 2, False, [2, 2]), (5, 1, False, [1] * 5), (9, 2, True, [2, 2])]
)
def test_worlds_are_cut_into_groups_in_their_order(groups, size, fewer, lengths):
    cut = stream.cut_into(FIVE, groups, size, fewer)
    assert [len(group) for group in cut] == lengths
    assert [world for group in cut for world in group] == FIVE[: sum(lengths)]


@pytest.mark.parametrize(("groups", "size", "need"), [(6, None, "6 groups need 6"), (3, 2, "3 groups of 2 need 6")])
def test_too_few_worlds_are_one_clear_line(groups, size, need):
    with pytest.raises(LabError, match=f"{need} worlds, the store has 5: lower groups"):
        stream.cut_into(FIVE, groups, size)
