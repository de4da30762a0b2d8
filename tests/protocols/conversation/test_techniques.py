"""Every technique: within its budget, blind to the evidence, and by the rule that it names."""

from dataclasses import replace

import pytest

from hippo_core.discovery import members
from hippo_core.errors import LabError
from hippo_core.protocols.conversation import techniques
from hippo_core.protocols.conversation.budget import budget_name
from hippo_core.protocols.conversation.techniques import load_technique, parsed, technique_members
from hippo_core.protocols.conversation.techniques.base import TurnQuery
from hippo_core.protocols.conversation.techniques.plain import compressed
from tests.protocols.conversation.conftest import count

OWN_TESTS = ("memories", "model_summary", "model_rank")  # modules that need a model
OURS = members(techniques.__name__)
FAST = [
    name for name, technique in OURS.items() if technique.module.rpartition(".")[2] not in OWN_TESTS and name not in ("embedding", "key")
]
LEA, OMAR = TurnQuery("In which city does Lea live?", "0", (4,)), TurnQuery("Which instrument does Omar play?", "1", (2,))


@pytest.fixture
def choose(dialogue, context_budget, setting):
    """What a technique shows of the dialogue."""

    def choose(name, budget="turns", asked=LEA, **changed):
        return load_technique(name, replace(setting, **changed)).open(dialogue)(asked, context_budget(budget))

    return choose


@pytest.mark.parametrize("budget", ["turns", 6, 12, "full"])
@pytest.mark.parametrize("name", [*FAST, "bm25@3", "actr@3", "window_summary"])
def test_what_is_shown_fits_and_stands_in_order(name, budget, dialogue, context_budget, choose):
    own, chosen = context_budget(budget), choose(name, budget)
    assert list(chosen.indices) == sorted(set(chosen.indices)) and len(chosen.lines) == len(chosen.indices)
    if name != "full":
        assert own.turns is None or len(chosen.indices) <= own.turns
        assert own.tokens is None or sum(map(count, chosen.lines)) <= own.tokens
    if name != "compression":
        assert list(chosen.lines) == [dialogue.turns[index].line for index in chosen.indices]


@pytest.mark.parametrize("name", [name for name in FAST if name != "oracle"])
def test_none_but_the_oracle_reads_the_evidence(name, choose):
    known, blind = (choose(name, asked=replace(LEA, evidence=evidence)) for evidence in ((4,), (7,)))
    assert known == blind


def test_the_oracle_shows_the_evidence_and_no_other(choose):
    assert [choose("oracle", asked=asked).indices for asked in (LEA, OMAR)] == [(4,), (2,)]


def test_bounds_and_windows(choose):
    assert choose("none").lines == ()
    assert choose("full", 6).indices == tuple(range(8))
    assert choose("recency").indices == (4, 5, 6, 7)
    assert choose("recency", 11).indices == (6, 7)  # 6 and 5 words; the next would need 3 more
    assert choose("pruning").indices == (0, 2, 4, 6)


def test_random_is_seeded_and_drawn_for_each_question(choose):
    assert choose("random") == choose("random")
    assert len({choose("random", asked=asked, seed=seed).indices for seed in range(6) for asked in (LEA, OMAR)}) > 6


def test_retrieval_ranks_by_the_question(choose):
    assert set(choose("bm25").ranking[:2]) == {0, 4}
    assert choose("bm25", asked=OMAR).ranking[0] == 2
    assert choose("bm25_recent").ranking[0] == 4
    assert choose("bm25@3", asked=OMAR).ranking[:3] == (0, 1, 2)


def test_settings_change_what_is_shown(choose, context_budget):
    assert choose("bm25[recency=0.25]") == choose("bm25_recent") != choose("bm25[recency=1]")
    assert choose("bm25[recency=1]").ranking == (7, 6, 5, 4, 3, 2, 1, 0)
    assert choose("bm25[top_k=1]", asked=OMAR).indices == (2,) == choose("bm25[threshold=1]", asked=OMAR).indices
    assert choose("bm25@3[top_k=1]", asked=OMAR).indices == (0, 1, 2)
    assert choose("actr[weight=0]") == choose("actr_base") and choose("actr[threshold=-0.1;weight=0]").ranking == (7,)
    assert choose("actr[noise=0.25]") == choose("actr_noise") and choose("actr[decay=0;weight=0]").ranking[0] == 0  # Lea, twice
    assert choose("summary[window=0.5]") == choose("window_summary")
    assert any(choose("summary[every=1]", tokens) != choose("summary", tokens) for tokens in range(6, 30))
    assert choose("pruning[least=4]").indices == (6,) and choose("compression[ratio=0.3]").lines[0] == "user: Lea Oslo."
    assert [context_budget(f"turns[{settings}]").turns for settings in ("ratio=0.25", "most=3", "ratio=1")] == [2, 3, 8]
    assert budget_name("turns[ratio=0.5]") == "turns" and budget_name("064") == budget_name(64)


def test_the_rolling_summary_prefers_what_tells_something_and_the_window_is_the_end(choose):
    assert set(choose("summary").indices) >= {0, 2, 6}
    last = choose("window_summary").indices
    assert last[-2:] == (6, 7) and len(last) == 4


def test_compression_keeps_names_and_drops_function_words(dialogue):
    assert compressed(dialogue.turns[4]) == "user: Lea lives Oslo."
    assert compressed(dialogue.turns[0]) == "user: Lea lives Rome."


@pytest.mark.parametrize("budget", [0, -3, True, "half", 2.5, "-3"])
def test_a_budget_that_is_none_is_reported(budget):
    with pytest.raises(LabError, match="number of tokens from 1"):
        budget_name(budget)


def test_a_budget_below_one_turn_is_reported(dialogue, context_budget):
    with pytest.raises(LabError, match="2 tokens is below one turn of dialogue 'd', whose shortest takes 3"):
        context_budget(2)
    short = dialogue.model_copy(update={"turns": dialogue.turns[:1]})
    with pytest.raises(LabError, match="below one turn"):
        type(context_budget("turns")).of("turns", short, [5], count)


def test_names_of_techniques():
    assert parsed("bm25@6") == ("bm25", 6, {}) and parsed("hei_nw@3[top_k=2]") == ("hei_nw", 3, {"top_k": 2})
    for wrong, says in (
        ("bm52", "legal: actr"),
        ("recency@3", "expected a retriever"),
        ("bm25@0", "number of turns"),
        ("bm25[top_k=4", "a bracket is open"),
        ("bm25[k=4]", "technique bm25.k=4.: k: unknown key; legal: top_k, recency, threshold"),
        ("actr[decay=-1]", "decay: .* greater than or equal to 0"),
    ):
        with pytest.raises(LabError, match=says):
            technique_members([wrong])
    with pytest.raises(LabError, match="named twice"):
        technique_members(["bm25", "bm25"])
