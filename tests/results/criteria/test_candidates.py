"""Which rag stands for the best one: the choice is made once, on all that validation worlds ask."""

import numpy as np
import pandas as pd
import pytest

from tests.results.invented import RAGS, cell, verdict

OVER_RAG = {"difference": {"a": "memory/hei_nw", "b": "best_rag"}, "at_least": 0.05}


def right_on(rows, **rungs):
    """The rows of a cell with this share of each rung's items right, and of others none."""
    rank = rows.groupby("rung").cumcount() / rows.groupby("rung")["rung"].transform("size")
    return rows.assign(score=(rank < rows["rung"].map(rungs).fillna(0.0)).astype(float))


@pytest.mark.parametrize("where", [{"rung": ["paraphrase"]}, {"kind": ["what"]}, {"hops": [2]}], ids=str)
def test_the_best_rag_of_some_items_is_the_one_of_all_validation_items(where):
    """One is best on the items that a criterion is about, another on all: it is the other that counts."""
    every = [cell(name, 0.0, n=800) for name in RAGS]
    shares = [{"paraphrase": 0.6}, {"paraphrase": 0.2, "exact": 0.9, "partial": 0.9}, {"paraphrase": 0.5}]
    rows = [right_on(table, **some) for table, some in zip(every, shares, strict=True)]
    memory = right_on(cell("memory/hei_nw", 0.0, n=800), paraphrase=0.9)
    mark = {"kind": lambda of: np.where(of["rung"] == "paraphrase", "what", "who"), "hops": lambda of: 1 + (of["rung"] == "paraphrase")}
    memory, *rows = (table.assign(**{name: mark[name] for name in where if name in mark}) for table in (memory, *rows))
    result = verdict(OVER_RAG | {"where": where}, memory, *rows, validation=pd.concat(rows, ignore_index=True))
    assert "best_rag is baselines/rag_dense, chosen on validation worlds" in result.reason
    assert (result.n, round(result.value, 3)) == (200, 0.7)


def test_the_best_rag_is_the_one_that_answers_best_whatever_is_compared():
    """Else costs would be compared with the dearest."""
    fields = {"ratio": {"a": "memory/hei_nw", "b": "best_rag", "metric": "latency_ms"}, "at_most": 0.99}
    rows = [cell(name, rate).assign(latency_ms=ms) for name, rate, ms in zip(RAGS, (0.5, 0.7, 0.6), (9.0, 2.0, 1.0), strict=True)]
    result = verdict(fields, cell("memory/hei_nw", 0.9).assign(latency_ms=4.0), *rows, validation=pd.concat(rows, ignore_index=True))
    assert result.value == pytest.approx(2.0) and "rag_dense, chosen on validation worlds" in result.reason


@pytest.mark.parametrize(("rule", "widened"), [({"at_least": 0.05}, False), ({"within": [-0.1, 0.1]}, True)], ids=str)
def test_a_range_is_met_more_easily_by_the_best_so_its_interval_is_wider(rule, widened):
    fields = {"difference": OVER_RAG["difference"], **rule}
    rows = [cell(name, rate) for name, rate in zip(RAGS, (0.5, 0.7, 0.6), strict=True)]
    assert ("interval at 98.3%" in verdict(fields, cell("memory/hei_nw", 0.75), *rows).reason) == widened
