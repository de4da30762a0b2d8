"""Would we notice? A lenient scorer, a shifted answer file and an unpaired comparison, each on real rows, must each be caught."""

from dataclasses import replace

import pytest

from hippo_core.errors import LabError
from hippo_core.evaluation.run import answer
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results import scores
from hippo_core.results.statistics.paired import compare
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds


@pytest.fixture(scope="module")
def asked():
    lm = load(load_spec("hippo-tiny"), threads=1)
    some = list(worlds("episodic", "default", 30, 1337, "val", 512))
    suite = get_suite("episodic")
    presets = map(load_preset, ("controls/oracle", "baselines/span_short"))
    return suite, some, *(answer(lm, suite, some, preset.method(lm, preset.settings)) for preset in presets)


def test_the_untouched_rows_pass(asked):
    suite, some, told, alone = asked
    scores.self_check()
    scores.check_rows(suite, some, told)
    assert compare(told, alone).n == 30


def test_a_model_that_is_cut_off_from_its_facts_would_be_noticed(asked):
    _, _, told, alone = asked
    assert told["score"].mean() >= 0.8
    assert alone["score"].mean() <= alone["chance"].mean() + 0.1


def test_a_lenient_scorer_is_caught():
    with pytest.raises(LabError, match="scorer is wrong"):
        scores.self_check(norm=lambda prediction, answers: int(any(answer in prediction for answer in answers)))


def test_rows_of_a_lenient_scorer_are_caught(asked):
    suite, some, _, alone = asked
    with pytest.raises(LabError):
        scores.check_rows(suite, some, alone.assign(em_norm=1.0, score=1.0))


def test_a_shifted_answer_file_is_caught(asked):
    suite, some, told, _ = asked
    items = [item for world in some for item in world.items]
    moved = iter([*items[1:], items[0]])
    shifted = [replace(world, items=tuple(replace(item, answers=next(moved).answers) for item in world.items)) for world in some]
    with pytest.raises(LabError):
        scores.check_rows(suite, shifted, told)


def test_an_unpaired_comparison_is_refused(asked):
    _, _, told, alone = asked
    others = alone.assign(item_id=[f"other-{number}" for number in range(len(alone))])
    with pytest.raises(LabError):
        compare(told, others)


def test_a_comparison_pairs_by_item_and_not_by_position(asked):
    _, _, told, alone = asked
    assert compare(told, alone.sample(frac=1, random_state=0)) == compare(told, alone)
