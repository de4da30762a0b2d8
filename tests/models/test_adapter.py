"""Adapters: what runs is the plain model with the update in its weights; one that belongs to other weights is never merged."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

from hippo_core.errors import LabError
from hippo_core.files import seal
from hippo_core.models.adapter import base_identity
from hippo_core.models.load import load
from hippo_core.models.spec import ModelSpec

IDS = torch.tensor([[5, 80, 200, 310, 17]])
LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def spec(base: Path, adapter: Path, **more) -> ModelSpec:
    return ModelSpec(**{"name": "m", "source": str(base), "adapter": str(adapter), "context_limit": 256, **more})


def tuned(base: Path, **more):
    """A random update of the model, all layers, in memory."""
    model = load(ModelSpec(name="b", source=str(base), context_limit=256), device="cpu").model
    with torch.random.fork_rng():
        torch.manual_seed(3)
        made = get_peft_model(model, LoraConfig(**{"r": 4, "lora_alpha": 8, "target_modules": LAYERS, "init_lora_weights": False, **more}))
    return made.eval()


@pytest.fixture(scope="module")
def base(folders) -> Path:
    return folders["llama"]


@pytest.fixture(scope="module")
def made(base, tmp_path_factory):
    """A random adapter on disk and the logits of the model that has it beside its weights."""
    folder, model = tmp_path_factory.mktemp("adapters") / "reader", tuned(base)
    model.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps({"base": base_identity(base)}))
    with torch.inference_mode():
        return folder, model(IDS).logits


@pytest.fixture
def adapter(made, tmp_path) -> Path:
    """A copy of it that a test may spoil."""
    return Path(shutil.copytree(made[0], tmp_path / "reader"))


def change(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_update_is_in_the_weights(made, base):
    lm = load(spec(base, made[0]), device="cpu")
    plain = load(ModelSpec(name="b", source=str(base), context_limit=256), device="cpu")
    with torch.inference_mode():
        logits = lm.model(IDS).logits
        assert torch.allclose(logits, made[1], atol=1e-4)
        assert not torch.allclose(logits, plain.model(IDS).logits, atol=0.1)
    assert type(lm.model) is type(plain.model)
    assert lm.model.state_dict().keys() == plain.model.state_dict().keys()
    assert not lm.model.training


def test_the_merge_is_in_float32_whatever_runs(made, base):
    full, half = (load(spec(base, made[0], dtype=dtype), device="cpu").model.state_dict() for dtype in ("float32", "bfloat16"))
    assert all(torch.equal(tensor, full[name].bfloat16()) for name, tensor in half.items())


def test_an_adapter_may_be_stored_in_bfloat16(adapter, base):
    update = load_file(adapter / "adapter_model.safetensors")
    save_file({name: tensor.bfloat16() for name, tensor in update.items()}, adapter / "adapter_model.safetensors")
    rounded = {name: tensor.bfloat16().float() for name, tensor in update.items()}
    key = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    merged = load(spec(base, adapter), device="cpu").model.state_dict()
    plain = load(ModelSpec(name="b", source=str(base), context_limit=256), device="cpu").model.state_dict()
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.allclose(merged[name] - plain[name], 8 / 4 * rounded[key.format("B")] @ rounded[key.format("A")], atol=1e-6)


def test_an_adapter_of_other_weights_is_refused(adapter, base):
    change(adapter / "training.json", base={"name": "elsewhere", "sha256": "0" * 64})
    with pytest.raises(LabError, match=r"was trained on elsewhere \(000000000000\.\.\.\), not on llama \(.*train it again"):
        load(spec(base, adapter), device="cpu")


@pytest.mark.parametrize("place", [9, 2000, -1])
def test_an_adapter_whose_weights_do_not_fit_their_seal_is_refused(adapter, base, place):
    path = adapter / "adapter_model.safetensors"
    change(adapter / "training.json", weights={path.name: seal(path)})
    load(spec(base, adapter), device="cpu")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"adapter_model\.safetensors is damaged: expected SHA-256 .*; bring back a copy, or train it again"):
        load(spec(base, adapter), device="cpu")


@pytest.mark.parametrize("said", [None, "smollm2-135m", {"name": "smollm2-135m"}])
def test_an_adapter_that_does_not_say_its_base_is_refused(adapter, base, said):
    change(adapter / "training.json", base=said)
    with pytest.raises(LabError, match=r"does not say what the adapter was trained on: expected base: \{name, sha256\}"):
        load(spec(base, adapter), device="cpu")


@pytest.mark.parametrize(
    ("settings", "spoil", "said"),
    [
        ({"r": 2}, None, r"for .*lora_A.* the model has \[2, 48\], the adapter \[4, 48\]"),
        ({}, lambda update: update.popitem(), "for .*, the adapter nothing"),
        ({}, lambda update: next(iter(update.values()))[0, 0].fill_(torch.nan), ".* holds numbers that are not finite"),
        ({"target_modules": ["qkv_proj"]}, None, ".*qkv_proj"),
    ],
)
def test_an_update_that_does_not_fit_is_one_line(adapter, base, settings, spoil, said):
    change(adapter / "adapter_config.json", **settings)
    if spoil:
        update = load_file(adapter / "adapter_model.safetensors")
        spoil(update)
        save_file(update, adapter / "adapter_model.safetensors")
    with pytest.raises(LabError, match=f"does not fit llama: {said}") as error:
        load(spec(base, adapter), device="cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("changes", [{"use_dora": True}, {"peft_type": "IA3"}, {"megatron_config": {"a": 1}}, {"bias": "all"}])
def test_only_a_plain_lora_is_read(adapter, base, changes):
    change(adapter / "adapter_config.json", **changes)
    with pytest.raises(LabError, match=f"expected a plain LoRA, got {next(iter(changes))}="):
        load(spec(base, adapter), device="cpu")


def test_pickles_are_refused(adapter, base):
    torch.save(load_file(adapter / "adapter_model.safetensors"), adapter / "adapter_model.bin")
    with pytest.raises(LabError, match=r"holds pickles, which are not loaded \(adapter_model.bin\)"):
        load(spec(base, adapter), device="cpu")


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors", "training.json"])
def test_a_missing_file_is_named(adapter, base, name):
    (adapter / name).unlink()
    with pytest.raises(LabError, match=f"is not whole: no {name}"):
        load(spec(base, adapter), device="cpu")


@pytest.mark.parametrize("name", ["adapter_config.json", "training.json", "adapter_model.safetensors"])
def test_a_damaged_file_is_one_line(adapter, base, name):
    (adapter / name).write_bytes(b"{cut")
    with pytest.raises(LabError, match=r"is damaged|does not fit") as error:
        load(spec(base, adapter), device="cpu")
    assert "\n" not in str(error.value)


def test_no_adapter_says_how_to_get_it(base, tmp_path):
    with pytest.raises(LabError, match=r"model m: no adapter at .*nowhere; run `make base-model MODEL=llama`"):
        load(spec(base, tmp_path / "nowhere"), device="cpu")


def test_an_adapter_needs_whole_weights(made, base):
    with pytest.raises(LabError, match="an adapter is merged into whole weights; set quantization: none and device_map: none"):
        load(spec(base, made[0], device_map="auto"), device="cpu")


def test_a_base_in_several_files_has_no_identity(tmp_path):
    with pytest.raises(LabError, match="an adapter needs a base whose weights are one file"):
        base_identity(tmp_path)
