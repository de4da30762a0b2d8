"""What holds for every way of giving traces to a model; the adapter is hippo-tiny's own, or one of random updates and open gates."""

from dataclasses import replace

import pytest
import torch

from hippo_core.delivery import load_delivery
from hippo_core.delivery.adapter import AdapterDelivery
from hippo_core.delivery.kv import KVDelivery
from hippo_core.delivery.text import TextDelivery
from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter, load_adapter
from hippo_core.delivery.types import Question
from hippo_core.errors import LabError
from hippo_core.models.abstention import ALWAYS, NEVER
from hippo_core.models.generate import generate
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of, render, split
from tests.models.handmade import WORLD_TEXTS

FACTS = tuple(WORLD_TEXTS["test-00000"])
CUE = "Who sold a guitar?"
QUESTIONS = [Question.of_texts(CUE, FACTS[:count]) for count in (0, 1, 3, 8)] + [
    Question.of_texts("Where did Otto move?", FACTS[4:6]),
    Question("Ivo?"),
]


def open_adapter(lm) -> TraceAdapter:
    """An adapter of the last two blocks as after some training: nothing about it is neutral."""
    last = lm.config.num_hidden_layers - 1
    with torch.random.fork_rng():
        torch.manual_seed(7)
        adapter = TraceAdapter(lm, AdapterSettings(blocks=(last - 1, last), rank=4))
        for name, weight in adapter.named_parameters():
            weight.data = torch.full_like(weight, 0.7) if name.endswith("gate") else 0.2 * torch.randn_like(weight)
    return adapter.requires_grad_(False)


def made(lm, mode: str, precision="model"):
    if mode == "text":
        return TextDelivery(lm)
    if mode == "kv":
        return KVDelivery(lm, PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision=precision)))
    adapter = load_adapter(lm) if lm.spec.name == "hippo-tiny" else open_adapter(lm)
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision=precision), blocks=adapter.settings.blocks)
    return AdapterDelivery(lm, adapter, passage_kv)


@pytest.fixture(params=["kv", "adapter", "text"])
def delivery(request, lm):
    """Each way on each model."""
    return made(lm, request.param)


def tokens_of(lm, question):
    """The tokens of the traces as they stand in the prompt."""
    return sum(map(len, split(lm, question.passages, question.text, "short").blocks))


def test_each_question_has_its_own_penalty(delivery):
    """In every delivery, masked or not, and whatever the batch."""
    penalties = [ALWAYS, 0.0, ALWAYS, NEVER, None, ALWAYS]
    questions = [replace(question, penalty=penalty) for question, penalty in zip(QUESTIONS, penalties, strict=True)]
    for masked in (False, True):
        texts = [answer.text for answer in delivery.ask(questions, 8, 4, masked=masked)]
        assert [texts[row] for row in (0, 2, 5)] == ["unknown"] * 3
        assert texts[3] != "unknown"
        free = [answer.text for answer in delivery.ask(QUESTIONS, 8, 4, masked=masked)]
        assert [texts[row] for row in (1, 4)] == [free[row] for row in (1, 4)]


def plain(lm, questions):
    return generate(lm, [render(lm, [], question.text, "short") for question in questions], 8)


def test_with_all_traces_masked_the_path_is_run_and_the_answers_are_those_without(lm, delivery):
    masked = delivery.ask(QUESTIONS, 8, masked=True)
    for answer, bare, question in zip(masked, plain(lm, QUESTIONS), QUESTIONS, strict=True):
        assert answer.tokens == bare.tokens
        assert answer.prompt_tokens == bare.prompt_tokens
        assert answer.trace_tokens == tokens_of(lm, question)


def test_without_traces_it_is_the_plain_prompt(lm, delivery):
    questions = [Question(CUE), Question("Ivo?")]
    assert [answer.tokens for answer in delivery.ask(questions, 8)] == [answer.tokens for answer in plain(lm, questions)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch_size", [2, 32])
def test_a_batch_of_many_equals_one_by_one(delivery, batch_size, masked):
    batched = delivery.ask(QUESTIONS, 8, batch_size, masked=masked)
    alone = [delivery.ask([question], 8, masked=masked)[0] for question in QUESTIONS]
    for name in ("text", "tokens", "prompt_tokens", "trace_tokens"):
        assert [getattr(answer, name) for answer in batched] == [getattr(answer, name) for answer in alone]


@pytest.mark.parametrize("mode", ["kv", "adapter"])
def test_the_order_of_traces_means_nothing(lm, mode):
    turned = [Question.of_texts(question.text, question.passages[::-1]) for question in QUESTIONS]
    delivery = made(lm, mode)
    assert [answer.tokens for answer in delivery.ask(QUESTIONS, 8)] == [answer.tokens for answer in delivery.ask(turned, 8)]


def test_what_it_costs_is_told(lm, delivery):
    [first] = delivery.ask([QUESTIONS[2]], 8)
    pieces = split(lm, QUESTIONS[2].passages, CUE, "short")
    full_tokens = len(pieces.prefix) + first.trace_tokens + len(pieces.tail)
    assert first.prompt_tokens == full_tokens or not pieces.exact
    [again] = delivery.ask([QUESTIONS[2]], 8)
    kept = (first.trace_tokens + len(pieces.tail), len(pieces.tail))
    due = (first.prompt_tokens, first.prompt_tokens) if isinstance(delivery, TextDelivery) else kept
    assert (first.computed_tokens, again.computed_tokens) == due
    assert first.latency_ms > 0


def test_an_unknown_way_names_the_known_ones(models):
    with pytest.raises(LabError, match=r"unknown delivery 'adaptor'; legal: adapter, kv"):
        load_delivery("adaptor", models["qwen2"])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["kv", "adapter"])
def test_a_trace_that_is_too_long_is_refused(models, mode):
    with pytest.raises(LabError, match=r"the limit of qwen2 is 256.*shorten the trace"):
        made(models["qwen2"], mode).ask([Question.of_texts(CUE, (" and ".join(FACTS * 20),))], 8)


@pytest.mark.parametrize(
    ("prefix", "blocks", "words"), [("plain", None, "behind the beginning of short prompts"), ("short", [0], "of blocks all")]
)
def test_kept_traces_of_another_kind_are_refused(models, prefix, blocks, words):
    lm = models["qwen2"]
    with pytest.raises(LabError, match=words):
        KVDelivery(lm, PassageKV(lm, prefix_of(lm, prefix), blocks=blocks))


def test_text_drops_what_does_not_fit_and_says_so(models):
    lm = models["qwen2"]
    [answer] = TextDelivery(lm).ask([Question.of_texts(CUE, FACTS * 10)], 8)
    assert answer.dropped > 0
    assert answer.prompt_tokens <= lm.spec.context_limit - 8
    assert answer.trace_tokens < answer.prompt_tokens


@pytest.mark.parametrize("name", ["os:system", "os:environ", "collections:OrderedDict"])
def test_what_is_no_delivery_is_not_called(name):
    with pytest.raises(LabError, match="expected a class with ask"):
        load_delivery(name, None)
