"""A live memory says "unknown" to a question about which nothing was told, and answers once it is told."""

import pytest

from hippo_core import Memory
from hippo_core.errors import LabError
from hippo_core.methods.presets import load_preset

SENTENCES = (
    "On Monday, Carla sold a guitar at the market.",
    "Omar bought a lamp at the Finch shop.",
    "The Finch shop is in Lima.",
    "The well is north of the mill.",
)
ASKED = {  # method: what is asked, what tells it, the answer
    "memory/hei_nw": ("Where did Tobias lose a violin?", "On Friday, Tobias lost a violin at the harbor.", "harbor"),
    "memory/sgc_rss": ("In which city does Carla work?", "Carla works for the Marlow company. The Marlow company is in Oslo.", "Oslo"),
    "memory/smpd": ("Which directions lead from the mill to the barn?", "The barn is east of the well.", "north, east"),
}


@pytest.mark.parametrize("together", [False, True], ids=["alone", "all"])
@pytest.mark.parametrize(("method", "asked"), ASKED.items(), ids=ASKED)
def test_what_was_never_told_is_unknown_and_once_told_it_is_answered(tmp_path, method, asked, together):
    question, statements, answer = asked
    with Memory("hippo-tiny", "memory/all" if together else method).open(tmp_path / "m") as memory:
        memory.teach(SENTENCES)
        assert str(memory.ask(question)) == "unknown"
        memory.teach([f"{text.strip(' .')}." for text in statements.split(". ")])
        assert str(memory.ask(question)) == answer


def test_a_method_that_says_no_confidence_has_nothing_to_be_unknown_below():
    with pytest.raises(LabError, match="unknown_below needs a method that says how sure it is"):
        load_preset("baselines/rag_bm25", {"unknown_below": 0.1})
