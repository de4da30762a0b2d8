"""What must not be lost while a model consolidates: reading what stands before a question, and plain text.

Both are distilled from the unchanged model, as complementary learning systems interleave what is new with what was known (McClelland et
al. 1995).
"""

import ast
import os
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from hippo_core.models.language_model import LanguageModel
from hippo_core.suites.types import Split
from hippo_core.training import language, mixture, packed_examples, tasks
from hippo_core.training.lessons import Lesson
from hippo_core.training.packed_examples import PackedBatch

SHARES = {drill: share for drill, share in mixture.SHARES.items() if drill.__name__ not in tasks.FILES}  # which need no file of a user's
LIBRARY = Path(os.__file__).parent  # Python's own modules, whose docstrings every machine has
LONG = 150  # characters of a paragraph
FACTS = 12  # of a lesson, at most
TEXTS, TOKENS = 48, 96  # of the model's own text
TEXTS_PER_BATCH = 8  # texts that the unchanged model reads at once


def lessons(random: Random, count: int, split: Split = "train") -> list[Lesson]:
    """In-context lessons of all drills that need no files."""
    curriculum = mixture.Curriculum(((1.0, FACTS),), 0.0, FACTS, SHARES)
    return [mixture.draw_lesson(random, curriculum, 1.0, split) for _ in range(count)]


@cache
def docstrings() -> tuple[str, ...]:
    """Paragraphs of plain English in the docstrings of Python's own modules: no text by which a loss is measured (`language.manual`)."""
    unique: dict[str, None] = {}
    for file in sorted(LIBRARY.glob("*.py")):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace")))
        texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
        paragraphs = [part.strip() for text in texts for part in text.split("\n\n")]
        unique |= {" ".join(part.split()): None for part in paragraphs if len(part) >= LONG and language.PROSE.fullmatch(part)}
    return tuple(unique)


def plain_text(lm: LanguageModel, seed: int, texts: int = TEXTS, tokens: int = TOKENS) -> Tensor:
    """Windows of such paragraphs, [texts, tokens]."""
    ids = [number for text in Random(f"plain/{seed}").sample(docstrings(), min(len(docstrings()), 4 * texts)) for number in lm.encode(text)]
    count = min(texts, len(ids) // tokens)
    return torch.tensor(ids[: count * tokens], device=lm.device).view(count, tokens)


@torch.no_grad()
def own_text(lm: LanguageModel, seed: int, texts: int = TEXTS, tokens: int = TOKENS) -> Tensor:
    """What the model writes without a prompt, [texts, tokens] (Huang et al. 2024, arXiv 2403.01244, section 3)."""
    begin = lm.encode(lm.template.begin) or [lm.tokenizer.eos_token_id]
    with torch.random.fork_rng(devices=[lm.device] if lm.device.type == "cuda" else []):
        torch.manual_seed(seed)
        ids = torch.tensor([begin] * texts, device=lm.device)
        cache: Any = None
        while ids.shape[1] < tokens:
            out = lm.model(ids[:, -1:] if cache is not None else ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache = out.past_key_values
            ids = torch.cat([ids, out.logits[:, -1].float().softmax(-1).multinomial(1)], 1)
    return ids


def context_divergence(update_rule: Any, informed: PackedBatch, batch: PackedBatch) -> Tensor:
    """KL(unchanged and informed || consolidated) in nats a token: the unchanged model reads the text that answers (context distillation,
    Snell et al. 2022, arXiv 2209.15189, section 2). Both batches label the same tokens in the same order.
    """
    with torch.no_grad(), update_rule.unchanged():
        wanted = _predicted(update_rule.model, informed)
    return _kl(wanted, _predicted(update_rule.model, batch))


@torch.no_grad()
def last_states(update_rule: Any, texts: Tensor) -> Tensor:
    """The unchanged model's last states [texts, tokens, hidden] of plain text [texts, tokens], from which its predictions follow."""
    with update_rule.unchanged():
        return torch.cat([update_rule.model.model(part, use_cache=False)[0] for part in texts.split(TEXTS_PER_BATCH)])


def text_divergence(update_rule: Any, text: Tensor, states: Tensor) -> Tensor:
    """The same over all tokens of plain text [texts, tokens], of which the unchanged model's last states are known."""
    with torch.no_grad(), update_rule.unchanged():
        wanted = update_rule.model.lm_head(states)
    return _kl(wanted, update_rule.model(text, use_cache=False).logits)


def _predicted(model: Any, batch: PackedBatch) -> Tensor:
    hidden = model.model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None], use_cache=False)[0]
    return model.lm_head(hidden[batch.labels != packed_examples.IGNORE])


def _kl(wanted: Tensor, predicted: Tensor) -> Tensor:
    logs = (predicted.float().log_softmax(-1), wanted.float().log_softmax(-1))
    return kl_div(*logs, reduction="none", log_target=True).sum(-1).mean()
