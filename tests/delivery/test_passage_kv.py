"""Kept keys and values are those that a pass gives; none is run twice where it is kept; what is damaged on disk is refused."""

import pytest
import torch
from safetensors.torch import save

from hippo_core.delivery.kv import KVDelivery
from hippo_core.delivery.types import Question
from hippo_core.errors import LabError
from hippo_core.models.kv import encode_blocks, inputs, restored, tokens_of
from hippo_core.models.kv_storage import MB, KVStorage
from hippo_core.models.passage_kv import PassageKV, checksum
from hippo_core.models.prompt import prefix_of, split
from hippo_core.suites.draw import worlds
from tests.models.handmade import WORLD_TEXTS

FACTS = tuple(WORLD_TEXTS["test-00000"])
CUE = "Who sold a guitar?"
CLOSE = 1e-5  # of values about 10 in size: float32 sums in another order


def rows(lm) -> list[list[int]]:
    return split(lm, FACTS, CUE, "short").blocks


def kept(lm, store, folder, blocks=None, **more) -> PassageKV:
    return PassageKV(lm, prefix_of(lm, "short"), KVStorage(store, **more), folder if store == "disk" else None, blocks)


def tensors(batch) -> list[torch.Tensor]:
    return [restored(kv, torch.float32) for kv in batch.traces]


def as_a_pass(lm, passage_kv):
    """The traces that are kept, which must be those that a pass gives."""
    batch = passage_kv.get(rows(lm))
    for kv, due in zip(batch.traces, encode_blocks(lm, prefix_of(lm, "short"), rows(lm)).blocks, strict=True):
        torch.testing.assert_close(kv, due, rtol=CLOSE, atol=CLOSE * float(due.abs().max()))
    return batch


def same(*batches) -> bool:
    """Whether all are equal bit for bit."""
    return all(torch.equal(a, b) for other in batches[1:] for a, b in zip(tensors(batches[0]), tensors(other), strict=True))


@pytest.mark.parametrize("store", ["none", "memory", "disk"])
def test_each_store_gives_what_a_pass_gives_and_runs_what_it_must(lm, store, tmp_path):
    passage_kv = kept(lm, store, tmp_path, precision="model")
    for again in (False, True):
        assert as_a_pass(lm, passage_kv).computed_tokens == (0 if again and store != "none" else sum(map(len, rows(lm))))
    assert (passage_kv.mb > 0) == (store != "none")


@pytest.mark.parametrize("store", ["none", "memory", "disk"])
def test_reading_gives_the_loss_of_each_token_and_leaves_the_keys_and_values_of_a_pass(lm, store, tmp_path):
    passage_kv, asked = kept(lm, store, tmp_path, precision="model"), [*rows(lm), []]
    losses = passage_kv.read(asked)
    begin = prefix_of(lm, "short")
    for row, nats in zip(asked, losses, strict=True):
        with torch.inference_mode():
            logits = lm.model(input_ids=torch.tensor([[*begin, *row]])).logits[0].float().log_softmax(-1)
        due = [-logits[len(begin) - 1 + position, token].item() for position, token in enumerate(row)]
        assert nats == pytest.approx(due, abs=1e-4)
    assert as_a_pass(lm, passage_kv).computed_tokens == (sum(map(len, rows(lm))) if store == "none" else 0)


def test_what_was_only_read_is_not_on_the_disk_until_it_is_kept(lm, tmp_path):
    passage_kv, (first, second, *_) = kept(lm, "disk", tmp_path), rows(lm)
    passage_kv.read([first, second])
    assert list(tmp_path.rglob("*.kept")) == []
    passage_kv.keep([second, second])
    passage_kv.forget()
    assert len(list(tmp_path.rglob("*.kept"))) == 1
    assert passage_kv.get([first, second]).computed_tokens == len(first)


def test_a_file_is_read_once_until_it_is_forgotten(lm, tmp_path, monkeypatch):
    kept(lm, "disk", tmp_path).get(rows(lm))
    passage_kv, opened = kept(lm, "disk", tmp_path), []
    monkeypatch.setattr(passage_kv, "_read", lambda path, *rest, read=passage_kv._read: opened.append(path) or read(path, *rest))
    for _ in range(2):
        passage_kv.get(rows(lm))
    assert len(opened) == len(rows(lm))
    passage_kv.forget()
    passage_kv.get(rows(lm)[:1])
    assert len(opened) == len(rows(lm)) + 1


def test_other_weights_another_beginning_or_precision_find_nothing(models, tmp_path):
    lm = models["qwen2"]
    ids = [lm.encode(FACTS[0])]
    kept(lm, "disk", tmp_path).get(ids)
    assert PassageKV(lm, [], KVStorage("disk"), tmp_path).get(ids).computed_tokens > 0
    assert kept(lm, "disk", tmp_path, precision="model").get(ids).computed_tokens > 0
    assert kept(lm, "disk", tmp_path, blocks=[1]).get(ids).computed_tokens > 0
    weight = lm.model.get_output_embeddings().weight
    before = checksum(lm)
    with torch.no_grad():
        weight[0, 0] += 1
    try:
        assert checksum(lm) != before
        assert kept(lm, "disk", tmp_path).get(ids).computed_tokens > 0
    finally:
        with torch.no_grad():
            weight[0, 0] -= 1


def test_only_the_blocks_wanted_are_kept(lm, tmp_path):
    every, second_block = (tensors(kept(lm, "memory", tmp_path, blocks=blocks).get(rows(lm))) for blocks in (None, [1]))
    assert all(torch.equal(all_blocks[[1]], part) for all_blocks, part in zip(every, second_block, strict=True))


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_every_store_gives_the_same_bits_and_the_same_answers(lm, tmp_path, precision):
    passages = [kept(lm, store, tmp_path, precision=precision) for store in ("none", "memory", "disk", "disk")]
    batches = [passage_kv.get(rows(lm)) for passage_kv in passages]
    assert same(*batches) and [batch.computed_tokens > 0 for batch in batches] == [True, True, True, False]  # found on the disk
    read = kept(lm, "memory", tmp_path, precision=precision)
    read.read(rows(lm)[:1])
    assert read.get(rows(lm)[:1]).computed_tokens == 0
    questions = [Question.of_texts(CUE, FACTS[:count]) for count in (1, 3, 8)]
    deliveries = [KVDelivery(lm, passage_kv) for passage_kv in passages]
    answers = [[answer.tokens for answer in delivery.ask(questions, 8)] for delivery in deliveries]
    assert answers[1:] == answers[:-1]


def test_answers_in_int8_are_those_of_the_models_own_precision(models, tmp_path):
    lm, questions = models["hippo-tiny"], []
    for world in worlds("episodic", n=20, split="val"):
        texts = {fact.id: fact.text for fact in world.facts}
        questions += [Question.of_texts(item.question, [texts[fact] for fact in item.gold_facts]) for item in world.items]
    deliveries = [KVDelivery(lm, kept(lm, "memory", tmp_path, precision=precision)) for precision in ("model", "int8")]
    model_answers, int8_answers = ([answer.text for answer in delivery.ask(questions, 8)] for delivery in deliveries)
    assert int8_answers == model_answers and len(set(int8_answers)) > 10


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.parametrize("content", [b"", b"torn", save({"codes": torch.zeros(2, 2, 2, 3, 8, dtype=torch.int8)}), None])
def test_a_damaged_file_is_refused(models, tmp_path, content, precision):
    lm = models["llama"]
    row, other_row = lm.encode(FACTS[0]), lm.encode(FACTS[1] + FACTS[2])
    passage_kv = kept(lm, "disk", tmp_path, precision=precision)
    passage_kv.get([row])
    [path] = tmp_path.rglob("*.kept")
    if content is None:
        passage_kv.get([other_row])
        [foreign] = set(tmp_path.rglob("*.kept")) - {path}
        content = foreign.read_bytes()
    path.write_bytes(content)
    passage_kv.forget()
    with pytest.raises(LabError, match=r"is damaged|expected keys and values of shape"):
        passage_kv.get([row])


@pytest.mark.parametrize(
    ("storage", "folder", "words"),
    [
        ({"store": "ram"}, None, "legal: disk, memory, none"),
        ({"store": "disk"}, None, "needs folder"),
        ({"store": "memory"}, "x", "takes no folder"),
        ({"precision": "int4"}, None, "unknown kv_precision 'int4'; legal: bfloat16, int8, model"),
        ({"memory_mb": 0}, None, "kv_memory_mb: expected at least 1 MiB, got 0"),
    ],
)
def test_a_wrong_storage_is_refused(models, storage, folder, words):
    with pytest.raises(LabError, match=words):
        PassageKV(models["llama"], [], KVStorage(**storage), folder)


def bounded(lm, store, folder, traces, precision="int8") -> PassageKV:
    """One with room in memory for the first so many rows, of which none is longer than the next ones."""
    passage_kv = kept(lm, store, folder, precision=precision)
    passage_kv._cache.limit = passage_kv.bytes_of(rows(lm)[:traces])
    return passage_kv


@pytest.mark.parametrize("precision", ["model", "bfloat16", "int8"])
def test_what_was_not_used_for_longest_goes_first_and_counts_again(models, tmp_path, precision):
    lm = models["hippo-tiny"]
    by_length = sorted(rows(lm), key=len, reverse=True)[:3]
    passage_kv = kept(lm, "memory", tmp_path, precision=precision)
    passage_kv._cache.limit = passage_kv.bytes_of(by_length[:2])
    first, second, third = by_length
    for row, run in ((first, True), (second, True), (first, False), (third, True), (first, False), (second, True)):
        assert passage_kv.get([row]).computed_tokens == (len(row) if run else 0)
        assert 0 < passage_kv.mb * MB <= passage_kv._cache.limit


def test_a_call_has_all_that_it_needs_though_little_is_kept(models, tmp_path):
    lm = models["hippo-tiny"]
    passage_kv = bounded(lm, "memory", tmp_path, 2)
    for _ in range(2):
        assert same(passage_kv.get(rows(lm)), kept(lm, "none", tmp_path).get(rows(lm)))
        assert passage_kv.mb * MB <= passage_kv._cache.limit


def test_questions_are_asked_in_parts_where_their_traces_do_not_fit_together(models, tmp_path, monkeypatch):
    lm = models["hippo-tiny"]
    questions = [Question.of_texts(CUE, FACTS[start : start + 2]) for start in range(6)]
    unlimited = KVDelivery(lm, kept(lm, "memory", tmp_path))
    due = [answer.tokens for answer in unlimited.ask(questions, 8)]
    unlimited.forget()
    once = unlimited.make_ready(questions).tokens
    passage_kv = kept(lm, "memory", tmp_path)
    limited, size = KVDelivery(lm, passage_kv), passage_kv.bytes_of(rows(lm)[:1])
    monkeypatch.setattr("hippo_core.delivery.kv.MB", 4 * size // 2048)  # room for some four traces
    assert 1 < len(limited._parts(questions)) < 6
    assert 0 < limited.make_ready(questions).tokens < once
    answers = limited.ask(questions, 8)
    assert [answer.tokens for answer in answers] == due
    assert sum(answer.computed_tokens for answer in answers) > sum(answer.computed_tokens for answer in unlimited.ask(questions, 8))


def test_a_limit_too_small_for_one_passage_is_said(models):
    lm = models["hippo-tiny"]
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision="model", memory_mb=1))
    for call in (passage_kv.get, passage_kv.read):
        with pytest.raises(LabError, match=r"of 100 tokens take 1.2 MiB, those kept in memory may take 1 MiB; raise kv_memory_mb"):
            call([[5] * 100])


@torch.inference_mode()
def test_masked_logits_are_the_plain_prompts_and_one_trace_is_its_prompt(lm):
    pieces = split(lm, FACTS[:1], CUE, "short")
    passage_kv = PassageKV(lm, pieces.prefix, KVStorage(precision="model"))
    traces = list(passage_kv.get(rows(lm)).traces)
    begin, trace_tokens = tokens_of(passage_kv.prefix), sum(map(tokens_of, traces))

    def logits(chosen, start, hidden):
        given = inputs(lm, [pieces.tail], [[passage_kv.prefix, *chosen]], [start], hidden=[hidden])
        return lm.model(**given, logits_to_keep=1).logits[0, -1]

    def plain(ids):
        return lm.model(torch.tensor([ids])).logits[0, -1]

    bare, with_one = plain(pieces.prefix + pieces.tail), plain(pieces.prefix + pieces.blocks[0] + pieces.tail)
    tolerance = {"rtol": CLOSE, "atol": CLOSE * float(bare.abs().max())}
    torch.testing.assert_close(logits(traces, begin, range(begin, begin + trace_tokens)), bare, **tolerance)
    torch.testing.assert_close(logits(traces[:1], begin + tokens_of(traces[0]), range(0)), with_one, **tolerance)
