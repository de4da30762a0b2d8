"""Load a causal language model and its tokenizer: safetensors or GGUF only, nothing fetched where the source is local."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.utils import logging as hub_logging
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from transformers.utils import logging

from hippo_core.errors import LabError
from hippo_core.files import read_yaml, root
from hippo_core.models.abstention import unknown_tokens
from hippo_core.models.adapter import check_weights, merge
from hippo_core.models.language_model import LanguageModel, Shot
from hippo_core.models.matmul import quicken_products
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import ModelSpec
from hippo_core.models.template import Template, template_for

FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]  # of a repository: weights, settings, tokenizer
HARMLESS: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}  # nothing is fetched, no code of a folder is run
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_preloaded: dict[str, LanguageModel] = {}  # what `preload` keeps, each for one `load`


def load(spec: ModelSpec, device: str | None = None, threads: int | None = None) -> LanguageModel:
    """Load the model of a spec onto `device` (a GPU where there is one, else the CPU) for `threads` CPU threads.

    Weights come from safetensors or GGUF, no code of a repository is run, `dtype: auto` is float32 on a CPU. A spec's adapter is merged
    into the weights in float32. LabError says what is missing and how to get it.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if target.type == "cpu":
        quicken_products()
        if lm := _preloaded.pop(_stamp(spec), None):
            return lm
    _check(spec, target)
    with quiet(), _readable(spec):
        where = _where(spec)
        tokenizer = AutoTokenizer.from_pretrained(**where, padding_side="left")
        safe = None if spec.is_gguf else True
        placing = _placing(spec, target, device)
        at_first: dict[str, Any] = {"dtype": torch.float32} if spec.adapter else placing
        model: Any = AutoModelForCausalLM.from_pretrained(**where, use_safetensors=safe, **at_first)
    if spec.adapter_path:
        model = _adapted(model, spec.adapter_path, where, placing["dtype"])
    model = (model if getattr(model, "hf_device_map", None) else model.to(target)).eval()
    _check_size(spec, model, tokenizer)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.model_max_length = 10**9  # the context limit is the prompt's business; no warning for texts that are cut there
    template = template_for(tokenizer, spec.chat_template)
    lm = LanguageModel(model, tokenizer, spec, model.device, template, _stop_ids(model, tokenizer, template), _shots(spec.shots))
    return replace(lm, unknown=unknown_tokens(lm))


def preload(spec: ModelSpec) -> None:
    """Load a model for the next `load` of its spec on the CPU, as in a process that is forked from this one."""
    _preloaded[_stamp(spec)] = load(spec, device="cpu", threads=1)


def _stamp(spec: ModelSpec) -> str:
    """The spec, and size and time of change of all files that a model is loaded from."""
    folders = [spec.path if spec.path.is_dir() else spec.path.parent, spec.adapter_path, root() / "params"]
    files = [path for folder in folders if folder and folder.is_dir() for path in sorted(folder.glob("*")) if path.is_file()]
    seen = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return json.dumps([spec.model_dump(mode="json"), seen])


def _where(spec: ModelSpec) -> dict[str, Any]:
    """The arguments that say where model and tokenizer are; a local source never asks the network."""
    if spec.is_gguf:
        return {"pretrained_model_name_or_path": str(spec.path.parent), "gguf_file": spec.path.name, **HARMLESS}
    return {"pretrained_model_name_or_path": str(spec.path) if spec.is_local else _snapshot(spec), **HARMLESS}


def _snapshot(spec: ModelSpec) -> str:
    """The folder of a repository's files in Hugging Face's cache; what is not there yet is fetched, weights as safetensors only."""
    wanted = {"repo_id": spec.source, "revision": spec.revision, "allow_patterns": FILES, "ignore_patterns": ["original/*"]}
    try:
        return snapshot_download(**wanted, local_files_only=True)
    except FileNotFoundError:
        return snapshot_download(**wanted)


def _adapted(model: Any, adapter: Path, where: dict[str, Any], dtype: torch.dtype | Literal["auto"]) -> Any:
    """The model with its adapter merged in, then kept in `dtype`; "auto" is the type its weights are stored in."""
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft's calls of transformers
        merged = merge(model, adapter, Path(where["pretrained_model_name_or_path"], where.get("gguf_file", "")))
        return merged.to(AutoConfig.from_pretrained(**where).dtype if dtype == "auto" else dtype)


def _placing(spec: ModelSpec, target: torch.device, requested: str | None) -> dict[str, Any]:
    """The arguments that say in which type the weights are kept, and on which device."""
    stored = "auto" if target.type != "cpu" else torch.float32
    placing: dict[str, Any] = {"dtype": stored if spec.dtype == "auto" else getattr(torch, spec.dtype)}
    if spec.quantization == "nf4":
        placing["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
        )
    if target.type == "cuda" and spec.device_map == "auto" and requested is None:
        placing["device_map"] = "auto"
        placing["max_memory"] = {0: f"{spec.max_memory_gb}GiB", "cpu": "64GiB"} if spec.max_memory_gb else None
    elif spec.quantization == "nf4":
        placing["device_map"] = {"": target}
    return placing


def _check(spec: ModelSpec, target: torch.device) -> None:
    if spec.quantization == "nf4" and target.type != "cuda":
        raise LabError(f"model {spec.name}: nf4 needs a CUDA GPU, this is {target.type}; set quantization: none in params/models")
    if spec.adapter and (spec.quantization, spec.device_map) != ("none", "none"):
        raise LabError(f"model {spec.name}: an adapter is merged into whole weights; set quantization: none and device_map: none")
    if reason := missing(spec):
        raise LabError(reason)
    if spec.is_gguf or not spec.is_local:
        return
    if not (spec.path / "config.json").is_file() or not list(spec.path.glob("*.safetensors")):
        pickles = [path.name for pattern in PICKLES for path in spec.path.glob(pattern)]
        actual = f"pickles, which are not loaded ({', '.join(sorted(pickles))}); convert them" if pickles else "not both"
        raise LabError(f"model {spec.name}: expected config.json and *.safetensors in {spec.source}, found {actual}")
    check_weights(spec.path)


def _check_size(spec: ModelSpec, model: Any, tokenizer: Any) -> None:
    config = model.config.get_text_config(decoder=True)
    positions = getattr(config, "max_position_embeddings", spec.context_limit)
    if spec.context_limit > positions:
        raise LabError(f"model {spec.name}: context_limit {spec.context_limit} is over its {positions} positions; lower it")
    if len(tokenizer) > config.vocab_size:
        raise LabError(f"model {spec.name}: its tokenizer has {len(tokenizer)} tokens, more than the {config.vocab_size} of the model")
    if tokenizer.eos_token_id is None:
        raise LabError(f"model {spec.name}: its tokenizer names no eos_token; add one to its tokenizer_config.json")


def _stop_ids(model: Any, tokenizer: Any, template: Template) -> tuple[int, ...]:
    """All that ends an answer: the tokenizer's end of text, the model's own list, and the template's end of turn."""
    listed = model.generation_config.eos_token_id if model.generation_config else None
    own = listed if isinstance(listed, list) else [listed]
    return tuple(sorted({tokenizer.eos_token_id, *template.end_ids, *(token for token in own if token is not None)}))


def _shots(count: int) -> tuple[Shot, ...]:
    if count == 0:
        return ()
    examples = read_yaml(root() / "params" / "shots.yaml")
    if count > len(examples):
        raise LabError(f"shots: {count} asked, params/shots.yaml has {len(examples)}")
    return tuple(Shot(tuple(shot["context"]), shot["question"], shot["answer"]) for shot in examples[:count])


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars and warnings of the libraries: what matters is checked by the lab."""
    level, hub_level, bars = logging.get_verbosity(), hub_logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    hub_logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        hub_logging.set_verbosity(hub_level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _readable(spec: ModelSpec) -> Iterator[None]:
    """Turn what the loader raises on absent, cut or foreign files into one line that says what to do."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        if "trust_remote_code" in str(error):
            advice = "choose a model that transformers knows by itself"
            raise LabError(f"model {spec.name}: {spec.source} brings code of its own (auto_map), which is never run; {advice}") from error
        fetch = f"fetch it with `hf download {spec.source}` where the network allows it"
        remedy = "it is damaged or of an unknown kind" if spec.is_local else fetch
        raise LabError(f"model {spec.name}: cannot load {spec.source}; {remedy} ({type(error).__name__}: {reason})") from error
