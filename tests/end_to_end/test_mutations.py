"""Real rows pass their checks, tell a model that sees its facts from one that does not, and are paired by item."""

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


def test_an_unpaired_comparison_is_refused(asked):
    _, _, told, alone = asked
    others = alone.assign(item_id=[f"other-{number}" for number in range(len(alone))])
    with pytest.raises(LabError):
        compare(told, others)


def test_a_comparison_pairs_by_item_and_not_by_position(asked):
    _, _, told, alone = asked
    assert compare(told, alone.sample(frac=1, random_state=0)) == compare(told, alone)
