"""A test of a memory draws how it came to one answer, out of its store, and keeps that in its record."""

import pytest

from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions import run
from hippo_core.protocols.questions.drawing import draw, example, kept
from hippo_core.store import store_path
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds


@pytest.fixture
def taught(hippo, tmp_path):
    """A relational memory with these settings, the worlds that it was told, and its stores."""

    def made(**overrides):
        preset = load_preset("memory/sgc_rss", {"encoder": "own", **overrides})
        method, suite = preset.method(hippo, preset.settings), get_suite("semantic")
        some = list(worlds("semantic", "default", 10, 1337, "val", hippo.spec.context_limit))
        run.teach(method, suite, some, [], tmp_path / "store", "drawn")
        return method, some, {"": store_path(tmp_path / "store", "drawn", method.algorithm())}

    return made


def test_the_drawing_of_a_contested_question_shows_what_holds_and_what_lost_and_is_kept(taught, tmp_path):
    method, some, stores = taught()
    world, item = example(some)
    assert item.refuted and not any(earlier.refuted for earlier in some[0].items[: some[0].items.index(item)] if world is some[0])
    html = draw(method, some, stores, tmp_path)
    question, [picture] = kept(tmp_path)
    assert question == item.question and question in html and picture.svg in html
    assert item.answers[0] in picture.svg
    lost = picture.svg.partition("line-through")[2]
    assert any(city in lost for city in item.refuted)


def test_nothing_is_drawn_where_a_control_replaces_what_is_recalled(taught, tmp_path):
    assert draw(*taught(control="empty"), tmp_path) == ""
    assert kept(tmp_path) == ("", [])
