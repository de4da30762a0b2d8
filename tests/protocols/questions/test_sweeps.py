"""Sweeps: which settings and conditions of a run stand along an axis, and what is drawn of them."""

import pandas as pd
import pytest

from hippo_core.protocols.questions.figures import titles
from hippo_core.protocols.questions.figures.plots import sweep_figure
from hippo_core.protocols.questions.report import tables
from hippo_core.protocols.questions.sweeps import sweeps
from hippo_core.results import summaries
from hippo_core.results.figures import drawing
from tests.results import invented

MEMORY, RAG = "memory/hei_nw", "baselines/rag_dense"


def cell(preset, rate, worlds="", own="", encoder="own", **columns):
    """The rows of one cell as a run has them."""
    settings = ", ".join(filter(None, [encoder.replace("own", ""), own.replace(";", ", ")]))
    condition = f"{preset} ({settings})" if settings else preset
    named = {"suite_overrides": worlds, "preset_overrides": own, "encoder": encoder, "condition": condition}
    return invented.cell(preset, rate, split="test", recall_1=rate, **named, **columns)


def of(*cells):
    return sweeps(pd.concat(cells, ignore_index=True))


def sizes(preset, rates, **columns):
    return [cell(preset, rate, f"n_facts={n};n_items=5", **columns) for n, rate in zip((8, 32, 128), rates, strict=True)]


def test_a_number_of_the_suite_is_an_axis_and_what_goes_with_it_is_none():
    [sweep] = of(*sizes(MEMORY, (0.9, 0.8, 0.7)), cell(MEMORY, 0.9))
    assert (sweep.axis, sweep.panels, set(sweep.rows["x"])) == ("n_facts", [""], {8.0, 32.0, 128.0})
    assert len(sweep.rows) == 600 and sweep.title("") == ""


@pytest.mark.parametrize("rates", [(0.9,), (0.9, 0.8)])
def test_two_values_are_no_axis(rates):
    assert of(*(cell(MEMORY, rate, f"n_facts={n}") for n, rate in enumerate(rates, 8)), cell(MEMORY, 0.5)) == []


def test_a_short_line_is_left_out_of_an_axis_of_others():
    [sweep] = of(*sizes(MEMORY, (0.9, 0.8, 0.7)), *sizes(RAG, (0.5, 0.4, 0.3))[:2])
    assert set(sweep.rows["line"]) == {MEMORY}


def test_other_settings_of_the_suite_are_panels_in_the_order_of_the_ladder():
    rungs = ("noisy", "paraphrase", "exact")
    [sweep] = of(*(cell(MEMORY, 0.8, f"rungs=[{rung}];swaps={swaps}") for rung in rungs for swaps in (0.0, 0.5, 0.9)))
    assert (sweep.axis, sweep.panels) == ("swaps", ["rungs=[exact]", "rungs=[paraphrase]", "rungs=[noisy]"])


def test_a_number_of_a_condition_is_an_axis_and_the_worlds_are_panels():
    cells = [cell(preset, 0.8, worlds, f"k={k}", encoder) for preset, encoder in ((MEMORY, "own"), (RAG, "minilm"))
             for worlds in ("", "n_facts=128;n_items=10") for k in (1, 3, 5)]  # fmt: skip
    [sweep] = of(*cells)
    assert (sweep.axis, set(sweep.rows["line"])) == ("k", {MEMORY, f"{RAG} (minilm)"})
    assert [sweep.title(panel) for panel in sweep.panels] == ["as the suite is", "n_facts=128, n_items=10"]


@pytest.mark.parametrize("column, values", [("n", (200, 800, 50)), ("model", "abc"), ("regime", ("immediate", "delayed", "after_sleep"))])
def test_cells_of_another_size_model_or_regime_share_no_axis(column, values):
    assert of(*(cell(MEMORY, 0.8, f"n_facts={x}", **{column: value}) for x, value in zip((8, 32, 128), values, strict=True))) == []


def test_the_claim_is_where_one_line_is_clearly_ahead_and_else_where_the_ends_are_clearly_apart():
    def claim(*competitors):
        [sweep] = of(*sizes(MEMORY, (0.9, 0.8, 0.75)), *(cell for preset, rates in competitors for cell in sizes(preset, rates)))
        return titles.apart(sweep.axis, summaries.estimate(sweep.rows, ["panel", "line", "x"]))

    rag, core = (RAG, (0.85, 0.3, 0.5)), ("baselines/span_short", (0.0, 0.0, 0.0))
    assert claim(rag, core) == claim(rag) == "Ahead at n_facts=32: hei_nw 80% right, rag_dense 30%"
    close = (RAG, (0.89, 0.79, 0.74))
    assert claim(close, core) == "Farthest apart at n_facts=8: hei_nw 90% right, span_short 0%"
    assert claim(close) == "Along n_facts the intervals of the best and the worst condition overlap"


def test_the_table_has_the_numbers_of_the_figure_and_the_figure_is_the_same_for_any_order_of_rows():
    cells = [*sizes(MEMORY, (0.9, 0.8, 0.7)), *sizes(RAG, (0.5, 0.4, 0.3))]
    [sweep], [again] = of(*cells), of(*reversed(cells))
    assert drawing.png(sweep_figure(sweep)) == drawing.png(sweep_figure(again))
    right, first = tables.sweep_tables(sweep)
    assert (right["measure"], first["measure"], right["values"]) == ("answers right", "right fact first", ["8", "32", "128"])
    assert [[entry["mean"] for entry in line["cells"]] for line in right["lines"]] == [["0.50", "0.40", "0.30"], ["0.90", "0.80", "0.70"]]


def test_a_line_may_stand_at_fewer_values_of_an_axis_than_another():
    cells = [cell(MEMORY, 0.4 + phi / 2, f"flag_correlation={phi};n_facts=32;n_items=10") for phi in (0.0, 0.2, 0.35, 0.7)]
    [sweep] = of(*cells, *(cell(RAG, 0.4, f"flag_correlation={phi};n_facts=32;n_items=10") for phi in (0.0, 0.35, 0.7)))
    assert (sweep.axis, sweep.panels) == ("flag_correlation", ["n_facts=32"])
    right = tables.sweep_tables(sweep)[0]
    assert right["values"] == ["0", "0.2", "0.35", "0.7"]
    assert [[entry["mean"] for entry in line["cells"]] for line in right["lines"]] == [
        ["0.40", "–", "0.40", "0.40"],
        ["0.40", "0.50", "0.57", "0.75"],
    ]
