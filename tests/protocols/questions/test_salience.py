"""The figure of a teach cell: salience where a gate weighed the facts, else how many became what."""

import numpy as np
import pandas as pd
import pytest

from hippo_core import lab
from hippo_core.protocols.questions.figures.salience import gate_spread


@pytest.mark.parametrize(("action", "stored"), [(0, 0), (5, 4)])
def test_without_a_gate_it_counts_what_became_of_the_facts(action, stored):
    rows = pd.DataFrame({"S": [np.nan] * action, "action": ["insert"] * stored + ["aggregate"] * (action - stored)})
    figure = gate_spread(rows)
    [panel] = figure.axes
    assert [text.get_text() for text in panel.texts] == [str(stored), str(action - stored), "0"]
    assert f"{stored} of {action} facts were stored" in figure.texts[0].get_text()


def test_with_a_gate_it_spreads_the_facts_over_their_salience():
    rows = pd.DataFrame({"S": [0.1, 0.9, 0.8], "action": ["refuse", "insert", "insert"]})
    figure = gate_spread(rows)
    assert figure.axes[0].get_xlabel() == "S, the salience of a fact"
    assert sum(bar.get_height() for bar in figure.axes[0].patches) >= 3


def test_a_glance_leaves_out_columns_in_which_nothing_stands():
    assert list(lab.preview(pd.DataFrame({"S": [np.nan], "action": ["insert"]}))) == ["action"]
