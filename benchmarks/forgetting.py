"""A step of several models in step beside two plain loops of the same models and items; the last lines are the ratios.

python benchmarks/forgetting.py [STEPS]

A plain loop is what one writes first: one initialisation after another, whole padded sequences of the protocol's length, logits at every
place, and a mask on the loss; once with PyTorch's own layers, once with GPT-2 of the library transformers. Ours runs the tokens that
answers rest on, logits at answers alone, and all initialisations in one pass; once with float32 throughout, once with linear layers that
multiply in bfloat16 (`bf16=true`), once so and translated for the processor, too (`compiled=true`). All use AdamW. Times are seconds of
CPU, so that other jobs do not count.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.learner import BETAS, Learner
from hippo_core.protocols.forgetting.tasks import EOS, Corpus, make_task
from hippo_core.protocols.forgetting.transformer import PRESETS, TransformerShape

INITS, RATE, DECAY, FIRST = 3, 1e-3, 0.1, 3  # the first steps of each side are slow
CASES = (
    ("formal", "copy", 32, 20),
    ("formal", "parity", 32, 20),
    ("grokking", "add", 128, 8),
)  # preset, task, items, the protocol's length
OURS = {"ours": (False, False), "ours, bf16": (True, False), "ours, bf16, compiled": (True, True)}  # bf16, compiled
MATMUL: Any = torch.backends.mkldnn.matmul  # pyright: ignore[reportAttributeAccessIssue]
BY_ITSELF = MATMUL.fp32_precision
quicken_products()
QUICK = MATMUL.fp32_precision


class Plain(nn.Module):
    """The model as PyTorch's layers."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(shape.vocabulary, shape.width), nn.Embedding(shape.block, shape.width)
        block = nn.TransformerEncoderLayer(
            shape.width, shape.heads, 4 * shape.width, 0.0, functional.gelu, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, shape.layers, nn.LayerNorm(shape.width), enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits at every place."""
        length = tokens.shape[1]
        hidden = self.tokens(tokens) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.blocks(hidden, mask, is_causal=True) @ self.tokens.weight.T


class Gpt2(nn.Module):
    """The model as the library transformers has it."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        sizes = {"vocab_size": shape.vocabulary, "n_positions": shape.block, "n_embd": shape.width, "n_layer": shape.layers}
        dropped = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None}
        self.model = GPT2LMHeadModel(GPT2Config(**sizes, n_head=shape.heads, **dropped))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits at every place."""
        return self.model(tokens, use_cache=False).logits


PLAIN: Mapping[str, Callable[[TransformerShape], nn.Module]] = {"PyTorch": Plain, "transformers": Gpt2}


def plain(
    kind: Callable[[TransformerShape], nn.Module], shape: TransformerShape, corpus: Corpus, items: torch.Tensor, length: int
) -> Callable[[], None]:
    """A step of each initialisation, one after another."""
    task = corpus.tasks[0]
    rows = torch.full((len(items), length), EOS)
    rows[:, : task.tokens.shape[1]] = torch.from_numpy(task.tokens)[items]
    labels = torch.full((len(items), length), -100)
    labels[:, task.first : task.first + task.answers] = rows[:, task.first + 1 : task.first + 1 + task.answers]
    models = [kind(shape) for _ in range(INITS)]
    optimizers = [torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=DECAY) for model in models]

    def step() -> None:
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            functional.cross_entropy(model(rows).flatten(0, 1), labels.flatten(), ignore_index=-100).backward()
            optimizer.step()

    return step


def ours(shape: TransformerShape, corpus: Corpus, items: torch.Tensor, compiled: bool) -> Callable[[], None]:
    """A step of all initialisations."""
    learner = Learner(shape, corpus, range(INITS), RATE, DECAY, compiled)

    def step() -> None:
        scores = learner.scored(learner.stacked(range(INITS)), corpus.batch(items.expand(INITS, -1)))
        learner.update(scores.mean(scores.nats))

    return step


def seconds(steps: Mapping[str, Callable[[], None]], times: int) -> dict[str, float]:
    """The median seconds of CPU of a step of each side; all sides in turn, so that what else the machine does meets them alike."""
    durations: dict[str, list[float]] = {condition: [] for condition in steps}
    for _ in range(FIRST + times):
        for condition, step in steps.items():
            MATMUL.fp32_precision = QUICK if condition in OURS else BY_ITSELF
            started = time.process_time()
            step()
            durations[condition].append(time.process_time() - started)
    return {condition: median(values[FIRST:]) for condition, values in durations.items()}


def main(times: int = 12) -> None:
    """Time all sides of each case and compare."""
    torch.set_num_threads(1)
    ratios: dict[tuple[str, str], list[float]] = {}
    for preset, name, count, length in CASES:
        shape, corpus = PRESETS[preset], Corpus([make_task(name)])
        items = torch.from_numpy(corpus.items(0, "train")[:count])
        steps = {condition: plain(kind, shape, corpus, items, length) for condition, kind in PLAIN.items()}
        steps |= {condition: ours(replace(shape, bf16=bf16), corpus, items, compiled) for condition, (bf16, compiled) in OURS.items()}
        durations = seconds(steps, times)
        rates = ", ".join(f"{condition} {1 / took:.2f}" for condition, took in durations.items())
        print(f"{preset}, {name}, {count} items, {INITS} initialisations, steps/s of CPU: {rates}", flush=True)
        for mine in OURS:
            for other in PLAIN:
                ratios.setdefault((mine, other), []).append(durations[other] / durations[mine])
    for (mine, other), values in ratios.items():
        each = ", ".join(f"{ratio:.2f}" for ratio in values)
        print(f"{mine} / {other}, steps a second of CPU: ratio {min(values):.2f} to {max(values):.2f} ({each})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
