"""Loading: what comes back, and one clear line for each thing that can be wrong with a source."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from hippo_core.delivery import load_delivery
from hippo_core.delivery.types import Question
from hippo_core.errors import LabError
from hippo_core.files import read_object, root, seal, write_json
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.language_model import describe
from hippo_core.models.load import _placing, load
from hippo_core.models.spec import ModelSpec, load_spec
from tests.models.gguf_file import write_gguf


def spec(source, **more) -> ModelSpec:
    return ModelSpec(**{"name": "m", "source": str(source), "context_limit": 256, **more})


def test_a_loaded_model_is_ready(lm):
    assert lm.model.dtype == torch.float32
    assert not lm.model.training
    assert lm.tokenizer.padding_side == "left"
    assert lm.tokenizer.pad_token_id is not None


def test_a_record_says_whose_template_was_used_and_what_stops_an_answer(loaded):
    described = {name: describe(lm) for name, lm in loaded.items()}
    stops = {name: record["stop_tokens"] for name, record in described.items()}
    assert stops == {"qwen2": ["<|endoftext|>", "<|im_end|>"], "llama": ["<|endoftext|>"], "phi3": ["<|endoftext|>", "<|im_end|>"]}
    assert {name: record["chat_template"] for name, record in described.items()} == {"qwen2": "model", "llama": "generic", "phi3": "model"}


def test_missing_weights_say_how_to_get_them():
    with pytest.raises(LabError, match=r"no weights at data/weights/nowhere; run `make base-model`"):
        load(ModelSpec(name="hippo-tiny", source="data/weights/nowhere"))


def test_packaged_weights_come_with_make_models(tmp_path, monkeypatch):
    reader = load_spec("smollm2-135m-reader")
    (tmp_path / "params").mkdir()
    shutil.copy(root() / "params/packages.yaml", tmp_path / "params")
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    with pytest.raises(LabError, match=r"no weights at data/models/smollm2-135m; run `make models`"):
        load(reader)


def test_pickles_are_refused(folders, tmp_path):
    shutil.copytree(folders["qwen2"], tmp_path / "m")
    torch.save(load_file(tmp_path / "m" / "model.safetensors"), tmp_path / "m" / "pytorch_model.bin")
    (tmp_path / "m" / "model.safetensors").unlink()
    with pytest.raises(LabError, match=r"expected config.json and \*.safetensors .* pickles, which are not loaded \(pytorch_model.bin\)"):
        load(spec(tmp_path / "m"))


@pytest.fixture
def with_code(folders, tmp_path, monkeypatch):
    """A model folder with Python code, which leaves a file where it is run; a prompt fails the test."""
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked whether to run code"))
    shutil.copytree(folders["qwen2"], tmp_path / "m")
    (tmp_path / "m" / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    return tmp_path / "m"


def point_at_code(file, **changes):
    write_json(file, {**read_object(file), **changes})


@pytest.mark.parametrize(("kind", "name"), [("own", "AutoConfig"), ("t5", "AutoModelForCausalLM"), ("bert_like", "AutoConfig")])
def test_a_model_of_a_folders_own_code_is_refused_and_nobody_is_asked(with_code, kind, name):
    point_at_code(with_code / "config.json", model_type=kind, auto_map={name: "own.Own"})
    with pytest.raises(LabError, match=r"model m: .* brings code of its own \(auto_map\), which is never run; choose a model") as error:
        load(spec(with_code), device="cpu")
    assert "\n" not in str(error.value) and not (with_code.parent / "ran").exists()


def test_a_known_model_is_loaded_without_the_code_beside_it(with_code):
    point_at_code(with_code / "config.json", auto_map={"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"})
    point_at_code(with_code / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", "own.Own"]})
    assert load(spec(with_code), device="cpu").config.hidden_size == 32
    assert not (with_code.parent / "ran").exists()


def test_a_cut_file_is_one_line(folders, tmp_path):
    shutil.copytree(folders["qwen2"], tmp_path / "m")
    content = (tmp_path / "m" / "model.safetensors").read_bytes()
    (tmp_path / "m" / "model.safetensors").write_bytes(content[:1000])
    with pytest.raises(LabError, match=r"cannot load .*damaged") as error:
        load(spec(tmp_path / "m"))
    assert "\n" not in str(error.value)


def test_a_trained_model_whose_weights_do_not_fit_their_seal_is_refused(folders, tmp_path):
    path = shutil.copytree(folders["qwen2"], tmp_path / "m") / "model.safetensors"
    write_json(tmp_path / "m/training.json", {"weights": {path.name: seal(path)}})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"model\.safetensors is damaged: expected SHA-256 .*; bring back a copy, or train it again"):
        load(spec(tmp_path / "m"))


PUBLISHED = {  # what the published configurations of the models for a GPU say of rotary positions; long factors: one for each two features
    "qwen2.5-1.5b-instruct": ("qwen2", torch.float32, {"rope_theta": 1e6, "max_position_embeddings": 32768, "tie_word_embeddings": True}),
    "llama-3.2-3b-instruct": (
        "llama",
        torch.float32,
        {
            "rope_scaling": {
                "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
            "rope_theta": 5e5,
            "max_position_embeddings": 131072,
        },
    ),
    "phi-3.5-mini-instruct": (
        "phi3",
        torch.bfloat16,
        {
            "rope_scaling": {"type": "longrope", "long_factor": [1.0, 2.0, 8.0, 60.0], "short_factor": [1.0, 1.0, 1.5, 2.5]},
            "original_max_position_embeddings": 4096,
            "max_position_embeddings": 131072,
            "sliding_window": 262144,
        },
    ),
}  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_settings_for_a_gpu_load_a_random_model_of_the_same_kind(name, folders, tmp_path):
    """As far as a machine without a GPU goes: types, positions, answers from the cache; four bits are refused in a line."""
    kind, dtype, published = PUBLISHED[name]
    folder = shutil.copytree(folders[kind], tmp_path / "m")
    point_at_code(folder / "config.json", **{"rope_parameters": None, **published})
    settings = load_spec(name).model_copy(update={"source": str(folder)})
    placing = _placing(settings, torch.device("cuda"), None)
    assert (placing["device_map"], placing["max_memory"][0]) == ("auto", "11.0GiB")
    assert ("quantization_config" in placing) == (settings.quantization == "nf4") == (name == "phi-3.5-mini-instruct")
    if settings.quantization == "nf4":
        with pytest.raises(LabError, match=rf"^model {name}: nf4 needs a CUDA GPU, this is cpu; set quantization: none in params/models$"):
            load(settings, device="cpu")
    whole = settings.model_copy(update={"quantization": "none"})
    lm = load(whole, device="cpu")
    assert (lm.model.dtype, lm.config.model_type) == (dtype, kind)
    assert lm.config.rope_parameters["rope_type"] == {"qwen2": "default", "llama": "llama3", "phi3": "longrope"}[kind]
    precise = lm if dtype == torch.float32 else load(whole.model_copy(update={"dtype": "float32"}), device="cpu")
    question = Question.of_texts("Who sold a guitar?", ("Mara sold a guitar at the market.",))
    by_cache, by_text = (
        load_delivery(mode, precise, storage=KVStorage(precision="model")).ask([question], 6, 1)[0].text for mode in ("kv", "text")
    )
    assert by_cache == by_text != load_delivery("text", precise).ask([Question(question.text)], 6, 1)[0].text


@pytest.mark.parametrize(
    ("setting", "says"),
    [({"context_limit": 512}, "context_limit 512 is over its 256 positions"), ({"chat_template": "chatml"}, "chat_template must be")],
)
def test_a_setting_that_does_not_fit_the_model_is_refused(folders, setting, says):
    with pytest.raises(LabError, match=says):
        load(spec(folders["qwen2"], **setting))


def test_a_gguf_file_gives_the_model_it_was_made_from(folders, tmp_path):
    lm = load(load_spec(str(folders["llama"])), device="cpu")
    path = write_gguf(lm, tmp_path / "small.gguf")
    again = load(spec(path), device="cpu")
    ids = torch.tensor([[5, 80, 200, 310, 17]])
    with torch.inference_mode():
        assert torch.allclose(again.model(ids).logits, lm.model(ids).logits, atol=1e-5)
    assert again.encode("Mara sold a guitar.") == lm.encode("Mara sold a guitar.")


def test_a_damaged_gguf_file_is_one_line(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF\x03\x00\x00\x00 and nothing more")
    with pytest.raises(LabError, match=r"cannot load .*bad.gguf; it is damaged or of an unknown kind"):
        load(spec(tmp_path / "bad.gguf"))


def test_a_repository_is_taken_from_the_cache_without_a_network(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    stored = tmp_path / "models--owner--small"
    shutil.copytree(folders["qwen2"], stored / "snapshots" / ("0" * 40))
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("0" * 40)
    assert load(spec("owner/small"), device="cpu").config.hidden_size == 32
    with pytest.raises(LabError, match=r"cannot load owner/other; fetch it with `hf download owner/other`"):
        load(spec("owner/other"), device="cpu")
