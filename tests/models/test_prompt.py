"""Prompts: what stands in them, and that truncation keeps as many of the newest lines as fit."""

import dataclasses

import pytest

from hippo_core.files import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import Shot
from hippo_core.models.prompt import INSTRUCTION, fit, render, stops
from tests.models.handmade import TOLD

FACTS = TOLD["test-00000"]
QUESTION = "Who sold a guitar?"


def limited(lm: LanguageModel, limit: int) -> LanguageModel:
    return dataclasses.replace(lm, spec=lm.spec.model_copy(update={"context_limit": limit}))


@pytest.mark.parametrize("decoding", ["short", "plain"])
def test_lines_and_question_stand_in_order(lm, decoding):
    prompt = render(lm, FACTS[:2], QUESTION, decoding)
    places = [prompt.index(text) for text in (FACTS[0], FACTS[1], QUESTION)]
    assert places == sorted(places)


def test_plain_is_bare_text(lm):
    assert render(lm, FACTS[:1], QUESTION, "plain") == f"{lm.template.begin}{FACTS[0]}\nQuestion: {QUESTION}\nAnswer:"


def test_short_says_the_instruction_once_whatever_the_template(lm):
    assert render(lm, FACTS, QUESTION, "short").count(INSTRUCTION) == 1


def test_chatml_has_a_system_turn_and_opens_the_answer(loaded):
    prompt = render(loaded["qwen2"], [], QUESTION, "short")
    assert prompt == f"<|im_start|>system\n{INSTRUCTION}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"


def test_without_a_system_turn_the_instruction_opens_the_users_words(loaded):
    assert render(loaded["phi3"], [], QUESTION, "short") == f"<s><|user|>{INSTRUCTION}\n{QUESTION}<|im_end|><|assistant|>"


def test_answers_end_where_a_turn_ends(loaded):
    assert {name: stops(lm, "short") for name, lm in loaded.items()} == {"qwen2": (), "llama": ("\n",), "phi3": ()}
    assert all(stops(lm, "plain") == ("\n",) for lm in loaded.values())


@pytest.mark.parametrize("decoding", ["short", "plain"])
def test_shots_stand_before_the_question(lm, decoding):
    with_shots = dataclasses.replace(lm, shots=(Shot(("Pim owns a boat.",), "Who owns a boat?", "Pim"),))
    prompt = render(with_shots, FACTS[:1], QUESTION, decoding)
    places = [prompt.index(text) for text in ("Pim owns a boat.", "Who owns a boat?", FACTS[0], QUESTION)]
    assert places == sorted(places)
    assert "Pim" in prompt[places[1] : places[2]]


def test_the_same_prompt_on_every_day(loaded):
    dated = dataclasses.replace(
        loaded["qwen2"], template=dataclasses.replace(loaded["qwen2"].template, text="{{ date_string }} {{ messages[0]['content'] }}")
    )
    assert render(dated, [], QUESTION, "short").startswith("26 Jul 2024")


@pytest.mark.parametrize("decoding", ["short", "plain"])
@pytest.mark.parametrize("limit", range(60, 200, 7))
def test_the_newest_lines_that_fit_are_kept(lm, decoding, limit):
    small, budget = limited(lm, limit), 8

    def tokens(dropped: int) -> int:
        return len(lm.encode(render(lm, FACTS[dropped:], QUESTION, decoding)))

    least = next((dropped for dropped in range(len(FACTS) + 1) if tokens(dropped) <= limit - budget), None)
    if least is None:
        with pytest.raises(LabError, match="the question alone takes"):
            fit(small, FACTS, QUESTION, decoding, budget)
    else:
        fitted = fit(small, FACTS, QUESTION, decoding, budget)
        assert (fitted.dropped, fitted.kept) == (least, range(least, len(FACTS)))
        assert fitted.prompt == render(lm, FACTS[least:], QUESTION, decoding)
        assert fitted.tokens == tokens(least)


def test_without_lines_the_prompt_is_the_question(lm):
    fitted = fit(lm, [], QUESTION, "short", 8)
    assert (fitted.prompt, fitted.dropped, len(fitted.kept)) == (render(lm, [], QUESTION, "short"), 0, 0)
