"""Low-rank updates of a model whose weights are held in 4 bits (QLoRA, Dettmers et al. 2023, arXiv 2305.14314, section 3)."""

import importlib.util
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from hippo_core.files import root
from hippo_core.models.load import _placing, load
from hippo_core.models.spec import ModelSpec
from hippo_core.training.consolidation.update_rules import make_update_rule
from tests.training.consolidation.test_ways import logits, weights_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is None, reason="4 bits need bitsandbytes")
RANK, FIRST = 4, 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random Llama with hippo-tiny's tokenizer."""
    folder_path = tmp_path_factory.mktemp("llama")
    torch.manual_seed(1)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=2048, max_position_embeddings=512, **sizes)).save_pretrained(folder_path)
    AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny", trust_remote_code=False).save_pretrained(folder_path)
    return folder_path


def four_bits(folder):
    """The model with its weights in 4 bits: on a GPU as it is loaded there, else on the CPU, which `load` refuses for its slowness."""
    spec = ModelSpec(name="random", source=str(folder), shots=0, context_limit=512)
    lm, device = load(spec, "cpu"), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    placing = _placing(spec.model_copy(update={"quantization": "nf4", "dtype": "bfloat16"}), device, str(device))
    model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False, use_safetensors=True, **placing).eval()
    for layer in model.modules():  # some processors pack weights anew at the first inference, and such a product has no gradient
        layer.support_avx512bf16_for_cpu = False
    return replace(lm, model=model, device=device)


def test_four_bit_weights_stay_as_they_are_and_the_update_is_read_back(folder, sleep, tmp_path):
    lm = four_bits(folder)
    quantised = {name: weight for name, weight in weights_of(lm).items() if name.endswith("down_proj.weight")}
    assert len(quantised) == 3 and all(weight.dtype == torch.uint8 for weight in quantised.values())
    plain, weights = logits(lm), weights_of(lm)
    update_rule = make_update_rule("lora", lm, RANK, FIRST)
    trainee = sleep(lm, update_rule, rate=0.1)
    losses = [trainee.learn(step)["answers"] for step in range(3)]
    trained = logits(lm)
    assert losses[2] < losses[0] and not torch.equal(trained, plain)
    with update_rule.unchanged():
        assert torch.equal(logits(lm), plain)
    update_rule.save(tmp_path)
    update_rule.detach()
    reloaded = weights_of(lm)
    assert reloaded.keys() == weights.keys() and all(torch.equal(weight, weights[name]) for name, weight in reloaded.items())
    assert torch.equal(logits(lm), plain)
    again = four_bits(folder)
    make_update_rule("lora", again, RANK, FIRST).load(tmp_path)
    assert torch.equal(logits(again), trained)
