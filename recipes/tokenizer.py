"""hippo-tiny's tokenizer: byte-fallback BPE over single words, with a chat template.

A word is the same token wherever it stands: every line is given a leading space, as SentencePiece does for a text, and merges never
cross a word, a digit, a punctuation mark or a line end. So the tokens of a prompt are the tokens of its lines one after another,
which is what lets facts be encoded one by one.
"""

import json
from collections.abc import Iterator
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hippo_core.suites import lexicon
from hippo_core.suites.draw import worlds
from hippo_core.training.stories import stories
from hippo_core.training.tasks import DRILLS

# suites whose words it learns
CORPUS = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity", "semantic", "spatial", "babi")
VOCABULARY = 2048
SPECIAL = {"bos": "<|begin|>", "end": "<|end|>", "pad": "<|pad|>", "unk": "<|unk|>"}
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def corpus(seed: int) -> Iterator[str]:
    """The text that the vocabulary is learnt from: train worlds of every suite, drills, the whole lexicon, training names, stories."""
    for name in CORPUS:
        for world in worlds(name, "public" if name == "babi" else "default", 600, seed, "train", 512):
            yield from (fact.text for fact in world.facts)
            yield from (item.question for item in world.items)
    for name, drill in DRILLS.items():
        random = Random(f"tokenizer/{seed}/{name}")
        for _ in range(200):
            lesson = drill(random, 8, "train")
            yield from (text for text, _ in lesson.facts)
            yield from (text for branch in lesson.branches for text in (branch.question, branch.answer))
    verbs = [form for group in lexicon.ACTIONS + lexicon.MOTIONS for verb in group for form in (verb.past, verb.base)]
    nouns = [word for group in lexicon.OBJECTS + lexicon.PLACES for word in group]
    yield from verbs + nouns + [time for _, time in lexicon.TIMES] + list(lexicon.CITIES + lexicon.SURNAMES)
    yield from 20 * lexicon.names(held_out=False)
    chosen = Random(seed).sample(stories(), 800)
    yield from (line for story in chosen for line in story.splitlines())


def train(seed: int) -> PreTrainedTokenizerFast:
    """Learn the vocabulary; the same seed gives the same tokenizer."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk"], byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"), normalizers.Replace("\n", "\n▁")])
    words = Regex(r"▁?[A-Za-z]+|▁?[0-9]|\n|▁?[^A-Za-z0-9▁\n]|▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(words, behavior="isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("\n ", "\n"), decoders.Strip(" ", 1, 0)]
    )
    special = [*SPECIAL.values(), *ROLES]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special + bytes_, limit_alphabet=200, min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(seed), trainer)
    tokenizer = _only_special(tokenizer, special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=SPECIAL["bos"],
        eos_token=SPECIAL["end"],
        pad_token=SPECIAL["pad"],
        unk_token=SPECIAL["unk"],
        additional_special_tokens=list(ROLES),
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        model_max_length=512,
        clean_up_tokenization_spaces=False,
    )


def _only_special(tokenizer: Tokenizer, special: list[str]) -> Tokenizer:
    """The same with these special tokens alone. The trainer takes bytes in as special tokens only, and what is special is left out
    of a decoded answer: so would be a line break, which is a byte."""
    parts = json.loads(tokenizer.to_str())
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["content"] in special]
    return Tokenizer.from_str(json.dumps(parts))
