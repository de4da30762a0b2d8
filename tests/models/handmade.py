"""Small things made by hand for the tests of models, methods and experiments: two worlds, a suite, random models on disk."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from transformers import LlamaConfig, LlamaForCausalLM, Phi3Config, Phi3ForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.suites.types import Fact, Item, Settings, Suite, World

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ raise_exception('no system turn') }}{% endif %}"
    "<|{{ message['role'] }}|>{{ message['content'] }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "<|user|>", "<|assistant|>"]
WORLD_TEXTS = {
    "test-00000": [
        "Mara sold a guitar at the market.",
        "Otto painted a fence in the garden.",
        "Ivo sold a lamp at the station.",
        "Lena repaired a clock in the attic.",
        "Mara moved to Lisbon.",
        "Otto moved to Oslo.",
        "Ivo baked bread in the kitchen.",
        "Lena planted a fig tree by the river.",
    ],
    "test-00001": ["Nils bought a kite.", "Vera bought a violin.", "Nils lost a glove.", "Vera found a coin."],
}
ASKED = {
    "test-00000": [
        ("Who sold a guitar?", "Mara", [0]),
        ("Where did Otto move?", "Oslo", [5]),
        ("Who sold a lamp at the station?", "Ivo", [2]),
    ],
    "test-00001": [("Who bought a violin?", "Vera", [1]), ("What did Nils lose or buy?", "glove", [0, 2])],
}


def worlds() -> list[World]:
    """Two worlds; the window of an item is the last four facts."""
    return [_world(name) for name in WORLD_TEXTS]


def _world(name: str) -> World:
    facts = tuple(Fact(f"{name}/f{number}", name, text, {}, number) for number, text in enumerate(WORLD_TEXTS[name]))
    ids = tuple(fact.id for fact in facts)
    items = tuple(
        Item(f"{name}/q{number}", name, question, (answer,), tuple(ids[gold] for gold in golds), "slot", window=ids[-4:], taught=ids)
        for number, (question, answer, golds) in enumerate(ASKED[name])
    )
    return World(name, facts, items)


def suite(**changes) -> Suite:
    """A suite of these worlds, whatever is drawn."""
    return Suite(
        **{"name": "handmade", "summary": "Worlds made by hand.", "settings": Settings, "make_world": lambda *_: worlds()[0], **changes}
    )


def tokenizer(template: str | None, opens: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 400 tokens that knows the handmade texts; with `opens` it puts <s> before a text."""
    words = Tokenizer(BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = [text for facts in WORLD_TEXTS.values() for text in facts] + [question for asked in ASKED.values() for question, *_ in asked]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    )
    if opens:
        words.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", SPECIAL.index("<s>"))])
    made = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="<|endoftext|>")
    made.chat_template = template
    return made


def _shape(words: PreTrainedTokenizerFast, **more) -> dict:
    return {
        "vocab_size": len(words),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.4,  # wide enough that the likeliest token leads clearly
        "eos_token_id": 0,
        "bos_token_id": 3,
        "pad_token_id": 0,
        **more,
    }


def save_models(folder: Path) -> dict[str, Path]:
    """Random Qwen2, Llama and Phi-3 models with their tokenizers: ChatML; no template and <s> before texts; no system turn."""
    makers = {
        "qwen2": (Qwen2ForCausalLM, Qwen2Config, tokenizer(CHATML), {}),
        "llama": (LlamaForCausalLM, LlamaConfig, tokenizer(None, opens=True), {}),
        "phi3": (Phi3ForCausalLM, Phi3Config, tokenizer(NO_SYSTEM), {"sliding_window": 24, "num_key_value_heads": 4}),
    }
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for name, (model, config, words, more) in makers.items():
            model(config(**_shape(words, **more))).save_pretrained(folder / name)
            words.save_pretrained(folder / name)
    return {name: folder / name for name in makers}


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    """The folders of the random models."""
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def loaded(folders) -> dict[str, LanguageModel]:
    """The random models, loaded as any local folder is."""
    return {name: load(load_spec(str(path)), device="cpu") for name, path in folders.items()}


@pytest.fixture(params=["qwen2", "llama", "phi3"])
def lm(request, loaded) -> LanguageModel:
    """Each random model in turn."""
    return loaded[request.param]
