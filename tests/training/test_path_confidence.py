"""How sure a path is is fitted on validation worlds alone, and what was fitted of a reader is that reader's."""

import pytest

from recipes import path_confidence
from tests.methods.asking import needs_minilm as needs_reader

FEW = {"semantic": ("semantic", "default", {}, 5), "relations": ("relations", "default", {}, 5)}


@pytest.fixture
def splits(monkeypatch):
    """The splits of all worlds that are drawn."""
    drawn, draw = [], path_confidence.worlds

    def worlds(name, profile, n, seed, split, *more):
        drawn.append(split)
        return draw(name, profile, n, seed, split, *more)

    monkeypatch.setattr(path_confidence, "worlds", worlds)
    return drawn


def test_paths_are_judged_on_validation_worlds_with_and_without_an_answer(splits):
    judged = list(path_confidence.judged("own", FEW))
    assert splits == ["val"] * 2
    assert {("semantic", True), ("semantic", False), ("relations", True)} <= {(path.kind, path.answerable) for path in judged}
    assert not any(path.right for path in judged if not path.answerable)


@needs_reader
def test_statements_of_one_matter_are_those_of_validation_worlds(splits):
    pairs = list(path_confidence.pairs(1))
    assert set(splits) == {"val"}
    assert {pair.right for pair in pairs} == {True, False}
