"""Letters of inspect_ai count what its own value_to_float makes of them, so that a difference of means is inspect_ai's."""

import pytest

from hippo_core.results.two_runs import open_log
from tests.results.two_runs.logs import inspect_samples, write_eval

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@pytest.mark.parametrize("letter", LETTERS)
def test_a_letter_counts_what_inspect_ai_says(tmp_path, letter):
    samples = inspect_samples([1] * 12)
    samples[3]["scores"]["match"]["value"] = letter
    log = open_log(str(write_eval(tmp_path / "a.eval", samples)))
    assert log.rows.set_index("item_id").loc["lot 3", "match"] == LETTERS[letter]
    assert log.rows["match"].mean() == pytest.approx((11 + LETTERS[letter]) / 12)
