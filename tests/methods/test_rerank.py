"""Re-ranking: the model's likelihood of the question orders the candidates, and nothing else; what it costs is counted."""

import pytest

from hippo_core.models.prompt import render
from hippo_core.models.score import token_likelihood
from hippo_core.retrieval.question_likelihood import after_text
from tests.methods.asking import choose
from tests.models.handmade import worlds

[WORLD, _] = worlds()
ITEM = WORLD.items[0]


def likelihoods(lm, decoding="short"):
    return after_text(lm, [fact.text for fact in WORLD.facts], ITEM.question, decoding)


@pytest.mark.parametrize("decoding", ["short", "plain"])
def test_the_score_is_that_of_the_question_in_the_models_own_prompt(lm, decoding):
    """The same as the difference of two whole texts: up to the question's end, and up to its beginning."""
    scored = likelihoods(lm, decoding)
    for fact, one in zip(WORLD.facts, scored, strict=True):
        before, question, _ = render(lm, [fact.text], ITEM.question, decoding).rpartition(ITEM.question)
        lead = before.rindex(fact.text) + len(fact.text) + 1  # the question, with what opens it in plain text
        rows = [lm.encode(text) for text in (before + question, before[:lead])]
        full, head = token_likelihood(lm, [(row[:1], row[1:]) for row in rows])
        assert one.nats == pytest.approx(full.nats - head.nats, abs=2e-3)


def test_candidates_are_ordered_by_the_models_likelihood(lm):
    scored = likelihoods(lm)
    order = sorted(range(8), key=lambda position: (-round(scored[position].nats, 6), position))
    assert choose("baselines/rag_rerank", lm, WORLD, ITEM).ranking == tuple(ITEM.taught[position] for position in order)


def test_one_candidate_leaves_the_first_ranking_and_two_change_no_third(lm):
    one, two, all_ = (choose("baselines/rag_rerank", lm, WORLD, ITEM, candidates=count) for count in (1, 2, 8))
    assert set(two.ranking[:2]) == set(one.ranking[:2]) and two.ranking[2:] == one.ranking[2:]
    assert one.computed_tokens < two.computed_tokens < all_.computed_tokens


def test_the_cost_is_every_candidate_with_the_question_but_what_they_share(loaded):
    lm = loaded["qwen2"]
    choice = choose("baselines/rag_rerank", lm, WORLD, ITEM)
    asked = len(lm.encode(ITEM.question))
    least = sum(len(lm.encode(f"{fact.text}\n")) + asked - 1 for fact in WORLD.facts)
    most = sum(len(lm.encode(render(lm, [fact.text], ITEM.question, "short"))) for fact in WORLD.facts)
    assert least <= choice.computed_tokens - asked - 1 <= most
