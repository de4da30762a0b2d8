"""What is said of keys and values before a cell runs is no less than what it takes, and no more than its limits."""

import pytest

from hippo_core.evaluation.run import answer
from hippo_core.lab.cli.grid_commands import _print_kv_size
from hippo_core.lab.grid.expand import Selection, expand
from hippo_core.methods.presets import load_preset
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.qa.kv_size import kv_size
from hippo_core.protocols.base.qa.parameters import AskingParameters
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds


def size(*overrides, preset="baselines/longctx", suite="episodic", model="hippo-tiny", n=20):
    return kv_size(AskingParameters(suite=suite, preset=preset, model=model, n=n, overrides=list(overrides)))


@pytest.fixture(scope="module")
def measured_mb():
    """MiB that `longctx` keeps, all facts of all worlds, with keys and values in int8."""
    lm, suite = load(load_spec("hippo-tiny"), "cpu"), get_suite("episodic")
    preset = load_preset("baselines/longctx", {"delivery": "kv"})
    method = preset.method(lm, preset.settings)
    most, kept = [], method.delivery.passage_kv  # type: ignore[attr-defined]
    kept.forget = lambda: most.append(kept.mb)
    answer(lm, suite, list(worlds("episodic", n=20)), method)
    return max(most)


def test_it_is_an_upper_estimate(measured_mb):
    assert measured_mb < size("delivery=kv").memory_mb < 2 * measured_mb


def test_it_follows_the_precision_and_ends_at_the_limit():
    store = "episodic.store."
    full, few, disk = (
        size(*more, preset="memory/hei_nw")
        for more in ([f"{store}kv_precision=model"], [f"{store}kv_memory_mb=1"], [f"{store}kv=disk", f"{store}kv_disk_mb=2"])
    )
    usual = size(preset="memory/hei_nw")
    assert 3 < full.memory_mb / usual.memory_mb < 4
    assert (few.memory_mb, disk.disk_mb, usual.disk_mb) == (1, 2, 0)
    twenty, thousand = (size(f"{store}kv=disk", preset="memory/hei_nw", n=n) for n in (20, 1000))  # twenty stand for all
    assert thousand.disk_mb == pytest.approx(50 * twenty.disk_mb) and thousand.memory_mb == pytest.approx(twenty.memory_mb, rel=1)


def test_what_is_shown_as_text_is_not_kept_unless_something_else_runs_it():
    assert size("delivery=text") is None
    assert size("delivery=text", preset="memory/hei_nw") is None
    assert size("delivery=text", "episodic.use_completion=predictive", preset="memory/hei_nw")


def test_where_nobody_knows_it_is_the_limit(monkeypatch):
    monkeypatch.delenv("HIPPO_DATA", raising=False)
    assert size("delivery=kv", suite="squad", n=21).memory_mb == KVStorage.memory_mb


def test_a_grid_says_it_in_a_line(capsys):
    cells = [cell for cell in expand("smoke", selection=Selection(only=("memory/hei_nw",))).cells if "episodic memory/hei_nw" in cell.label]
    _print_kv_size(cells)
    assert capsys.readouterr().out.startswith("keys and values: at most ")
    _print_kv_size([])
    assert capsys.readouterr().out == ""
