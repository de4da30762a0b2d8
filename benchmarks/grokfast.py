"""Seconds until 99% of the validation answers of multiplication modulo 97 are right: our recipe beside Grokfast's; the last line compares.

python benchmarks/grokfast.py [STEPS]

Grokfast (Lee et al. 2024, arXiv 2405.20233) adds to a gradient twice its moving average (.98). It is published for this task with 5,984
seconds of one run without it and 137 with it, on a GPU (95% of the validation answers). Here it has all of its recipe, as PyTorch's layers:
2 layers of width 128, embeddings of N(0, 1), an output of its own, Adam with a penalty of .005 on the weights, ten steps of warm-up. Ours
is the experiment's. Both learn from the same half of all pairs in batches of 512, the loss at the answer alone, three initialisations.
Seconds are of CPU, of one model: ours, which learn in step, divided by the steps that they took together.
"""

import math
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.parameters import ForgettingParameters
from hippo_core.protocols.forgetting.run import EVERY, LEARNT, Course
from hippo_core.protocols.forgetting.tasks import VOCABULARY, make_task

AVERAGE, AMPLIFIED, PENALTY, WARM_UP = 0.98, 2.0, 0.005, 10
SEEDS, BATCH, WIDTH, POSITIONS = (1337, 1338, 1339), 512, 128, 5
OURS, THEIRS = "ours", "Grokfast's"


class Theirs(nn.Module):
    """The model of Grokfast's multiplication."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, functional.gelu, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(POSITIONS))

    def forward(self, prompts: torch.Tensor) -> torch.Tensor:
        """The logits of the answer, `(items, vocabulary)`."""
        hidden = self.tokens(prompts) + self.places.weight
        return self.output(self.blocks(hidden, self.mask, is_causal=True)[:, -1])


def theirs(seed: int, steps: int, amplified: float = AMPLIFIED) -> tuple[int | None, float, float]:
    """By Grokfast's recipe: after how many steps the task was learnt, the seconds of CPU until then (or of all steps), and the best share
    of validation answers."""
    torch.manual_seed(seed)
    task, model, orders = make_task("mul"), Theirs(), np.random.default_rng(seed)
    tokens = torch.from_numpy(task.tokens)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=PENALTY)
    warmed = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / WARM_UP))
    averages = [torch.zeros_like(weights) for weights in model.parameters()]
    items, best, started = torch.empty(0, dtype=torch.long), 0.0, time.process_time()
    for step in range(1, steps + 1):
        if not len(items):
            items = torch.from_numpy(orders.permutation(task.train))
        batch, items = tokens[items[:BATCH]], items[BATCH:]
        optimizer.zero_grad()
        functional.cross_entropy(model(batch[:, :-1]), batch[:, -1]).backward()
        for weights, average in zip(model.parameters(), averages, strict=True):
            assert weights.grad is not None
            if step == 1:
                average.copy_(weights.grad)
            average.mul_(AVERAGE).add_(weights.grad, alpha=1 - AVERAGE)
            weights.grad.add_(average, alpha=amplified)
        optimizer.step()
        warmed.step()
        if step % EVERY == 0:
            with torch.no_grad():
                held_out = tokens[task.val]
                best = max(best, (model(held_out[:, :-1]).argmax(-1) == held_out[:, -1]).double().mean().item())
            if best >= LEARNT:
                return step, time.process_time() - started, best
    return None, time.process_time() - started, best


def ours(steps: int) -> list[tuple[int | None, float, float]]:
    """By the experiment's: the same of each initialisation."""
    parameters = {
        "model": "grokking",
        "tasks": ["mul"],
        "batch": BATCH,
        "steps": steps,
        "split": "val",
        "seed": SEEDS[0],
        "inits": len(SEEDS),
    }
    with tempfile.TemporaryDirectory() as folder:
        course = Course(ForgettingParameters(**parameters), Path(folder), say=lambda line: None)
        started = time.process_time()
        rows = [row for row in course.run() if row["phase"]]
    each = (time.process_time() - started) / sum(row["taken"] for row in rows)
    learnt = [None if math.isnan(row["steps_to_99"]) else int(row["steps_to_99"]) for row in rows]
    return [(there, (there or row["taken"]) * each, row["accuracy"]) for there, row in zip(learnt, rows, strict=True)]


def main(steps: int = 1500) -> None:
    """Learn by each recipe, three initialisations, at most so many steps."""
    torch.set_num_threads(1)
    quicken_products()
    runs = {
        OURS: ours(steps),
        THEIRS: [theirs(seed, steps) for seed in SEEDS],
        "its recipe, not amplified": [theirs(SEEDS[0], steps, amplified=0.0)],
    }
    for name, results in runs.items():
        texts = [
            f"{f'{there} steps' if there else f'not in {steps} steps (best {best:.2f})'}, {took:.0f} s" for there, took, best in results
        ]
        print(f"{name:26} 99% after {'; '.join(texts)}", flush=True)
    medians = {name: median(took if there else math.inf for there, took, _ in results) for name, results in runs.items()}
    if max(medians[OURS], medians[THEIRS]) < math.inf:
        print(f"Grokfast's recipe / ours, median seconds of CPU to 99%: ratio {medians[THEIRS] / medians[OURS]:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
