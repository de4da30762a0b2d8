"""The trace adapter: neutral as made, exactly; what it looks at; one on disk is loaded whole, and onto its own base alone."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter, lay_traces, load_adapter, save_adapter
from hippo_core.errors import LabError
from hippo_core.files import read_sealed, seal, write_sealed
from hippo_core.models.kv import encode, inputs, tokens_of
from hippo_core.models.prompt import split
from tests.delivery.test_modes import CUE, FACTS, open_adapter


def traced_by(lm):
    """(prefix KV, all traces' KV, the question's tokens)."""
    pieces = split(lm, FACTS, CUE, "short")
    [prefix] = encode(lm, [pieces.prefix])
    return prefix, encode(lm, pieces.blocks, prefix), pieces.tail


@pytest.fixture
def traced(lm):
    return traced_by(lm)


@torch.inference_mode()
def logits(lm, adapter, traced, chosen=slice(None), masked=False):
    prefix, traces, tail = traced
    blocks = list(adapter.settings.blocks) if adapter else []
    given = inputs(lm, [tail], [[prefix]], [tokens_of(prefix)])
    if adapter is None:
        return lm.model(**given).logits[0]
    with adapter.attached(lm, lay_traces([[kv[blocks] for kv in traces[chosen]]], prefix[blocks], masked)):
        return lm.model(**given).logits[0]


@pytest.mark.parametrize("gate", ["scalar", "head"])
def test_as_made_it_is_neutral_bit_for_bit(lm, traced, gate):
    adapter = TraceAdapter(lm, AdapterSettings(blocks=(0, 1), rank=4, gate=gate))
    with torch.no_grad():
        for part in adapter.parts:
            part.q_up.normal_()
            part.o_up.normal_()
    assert torch.equal(logits(lm, adapter, traced), logits(lm, None, traced))


def test_with_all_traces_masked_it_is_neutral_bit_for_bit(lm, traced):
    assert torch.equal(logits(lm, open_adapter(lm), traced, masked=True), logits(lm, None, traced))


def test_with_its_gate_open_it_is_not(lm, traced):
    adapter, bare = open_adapter(lm), logits(lm, None, traced)
    some, others = logits(lm, adapter, traced, slice(0, 2)), logits(lm, adapter, traced, slice(2, 4))
    assert not torch.allclose(some, bare, atol=1e-3)
    assert not torch.allclose(some, others, atol=1e-3)


def test_gradients_reach_the_adapter_alone(lm, traced):
    prefix, traces, tail = traced
    adapter = open_adapter(lm).requires_grad_(True)
    blocks = list(adapter.settings.blocks)
    laid = lay_traces([[kv[blocks].clone() for kv in traces]], prefix[blocks].clone())
    lm.model.requires_grad_(False)
    with adapter.attached(lm, laid):
        lm.model(torch.tensor([tail])).logits.sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in adapter.parameters())
    assert all(weight.grad is None for weight in lm.model.parameters())


@torch.inference_mode()
def test_it_starts_as_the_blocks_own_attention(lm, traced):
    """Wide open and without updates it adds what the block's own attention gives a token that sees the traces and nothing else."""
    prefix, traces, tail = traced
    adapter = TraceAdapter(lm, AdapterSettings(blocks=(0,), rank=1))
    adapter.parts[0].gate.data.fill_(20.0)
    decoder, due = lm.model.get_decoder(), []
    trace_tokens, start = sum(map(tokens_of, traces)), tokens_of(prefix) + max(map(tokens_of, traces))
    hook = decoder.layers[0].self_attn.register_forward_hook(lambda module, given, out: due.append(out[0]))
    lm.model(**inputs(lm, [tail[:1]], [traces], [start], hidden=[range(trace_tokens, trace_tokens + 1)]))
    hook.remove()
    laid = lay_traces([[kv[:1] for kv in traces]], prefix[:1])
    x = lm.model.get_input_embeddings()(torch.tensor([tail[:1]]))
    turn = decoder.rotary_emb(x, torch.tensor([[start]]))
    torch.testing.assert_close(adapter.parts[0](decoder.layers[0], x, turn, *laid.layers[0], laid.mask), due[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("blocks", [(), (9,), (-1,), (0, 0)])
def test_blocks_that_are_not_there_are_refused(models, blocks):
    with pytest.raises((LabError, ValueError)):
        TraceAdapter(models["qwen2"], AdapterSettings(blocks=blocks))


def test_a_model_that_is_not_understood_is_refused(models):
    config = SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace(model_type="gpt2"))
    other = dataclasses.replace(models["qwen2"], model=SimpleNamespace(config=config))
    with pytest.raises(LabError, match=r"does not know the blocks of model type 'gpt2' \(known: llama, mistral, phi3, qwen2\)"):
        TraceAdapter(other, AdapterSettings(blocks=(0,)))


def test_saved_and_loaded_it_is_the_same(models, tmp_path):
    lm, adapter = models["hippo-tiny"], open_adapter(models["hippo-tiny"])
    save_adapter(adapter, lm, tmp_path, {"command": "by hand"})
    again, traced = load_adapter(lm, tmp_path), traced_by(lm)
    assert torch.equal(logits(lm, again, traced), logits(lm, adapter, traced))
    assert json.loads((tmp_path / "adapter.json").read_text())["command"] == "by hand"


def spoil(folder, **changes):
    """Other tensors, sealed as if they were the adapter's own."""
    path = folder / "adapter.safetensors"
    save_file({**load_file(path), **changes}, path)
    write_sealed(folder / "adapter.json", {**read_sealed(folder / "adapter.json", ""), "tensors": seal(path)})


@pytest.fixture
def saved(models, tmp_path):
    save_adapter(open_adapter(models["hippo-tiny"]), models["hippo-tiny"], tmp_path, {})
    return tmp_path


def test_of_other_weights_it_is_refused(models, saved):
    made = read_sealed(saved / "adapter.json", "")
    write_sealed(saved / "adapter.json", {**made, "base": {"name": "elsewhere", "sha256": "0" * 64}})
    with pytest.raises(LabError, match=r"was fitted on elsewhere \(000000000000\.\.\.\), this is hippo-tiny"):
        load_adapter(models["hippo-tiny"], saved)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts.0.gate": torch.zeros(9)}, r"for parts\.0\.gate expected \[4\], got \[9\]"),
        ({"parts.7.gate": torch.zeros(4)}, r"for parts\.7\.gate expected nothing, got \[4\]"),
        ({"parts.0.gate": torch.full((4,), float("nan"))}, "not finite"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(models, saved, changes, words):
    spoil(saved, **changes)
    with pytest.raises(LabError, match=words):
        load_adapter(models["hippo-tiny"], saved)


def test_without_one_the_way_to_fit_it_is_named(models, tmp_path):
    with pytest.raises(LabError, match="make base-model-adapter MODEL=hippo-tiny"):
        load_adapter(models["hippo-tiny"], tmp_path)
