"""Runs of an experiment whose rows are no answers are compared by its unit, within its clusters."""

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.results.records import Table, begin_record, finish_record, seal
from hippo_core.results.two_runs import compare_runs, open_log

TABLE = Table(columns=("layer", "text", "perplexity"), unit="layer", cluster="text", measures=("perplexity",), text=("text",))


@pytest.fixture
def run(tmp_path):
    """Two cells that differ in a share, which makes what they measure larger by it."""
    for share in (0.0, 0.5):
        folder = tmp_path / f"zeroed/test/tiny_1/cell-{int(10 * share)}"
        parameters = {"run_id": "run", "model": "tiny", "seed": 1, "share": share}
        meta = {"parameters": parameters, "experiment": "mine:ZEROED", "step": "test", "table": TABLE.described()}
        begin_record(folder, {"parameters": parameters}, meta)
        rows = [{"layer": n, "text": f"t{text}", "perplexity": text + n / 10 + share} for text in range(12) for n in range(3)]
        finish_record(folder, pd.DataFrame(rows), {"metrics": {}}, {"seconds": 1.0})
        seal(folder)
    return tmp_path


def test_cells_of_a_run_are_compared_by_unit_within_clusters_and_less_is_better(run):
    comparison = compare_runs(open_log(f"{run}:share=0.5"), open_log(f"{run}:share=0"))
    assert (comparison.metric, comparison.higher_is_better) == ("perplexity", False)
    assert comparison.result.difference == pytest.approx(0.5) and comparison.result.n == 36 and comparison.result.n_worlds == 12
    assert (comparison.result.only_a, comparison.result.only_b) == (0, 36)
    assert comparison.differs == {"share": ("0.5", "0.0")}


@pytest.mark.parametrize(
    ("chosen", "says"), [("", "differ in share; choose one, as RUN:share=VALUE"), (":share=7", "nothing is"), (":core", "share=0.05")]
)
def test_what_is_not_one_condition_is_one_line(run, chosen, says):
    with pytest.raises(LabError) as error:
        open_log(f"{run}{chosen}")
    assert says in str(error.value) and "\n" not in str(error.value)
