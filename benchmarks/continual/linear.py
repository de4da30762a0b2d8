"""What a small transformer learns from examples in its context: linear functions y = w x that it has never seen, by the number of examples
(Garg et al. 2022, arXiv 2208.01066, at a tiny size); a line a number.

.venv/bin/hippo linear [MINUTES] [--dimensions 3] [--fc1 128] [--fc2 128] [--sort 8] [--seed 1337]

A sequence is x1 y1 ... xk yk with w and all x drawn from N(0, 1); every y is predicted at its x. Beside it stand least squares on the same
examples (of minimal norm while they are too few), which is the best that there is, and the model with the examples of another function,
which shows what rests on them. Minutes are of this process's CPU.
"""

import time
from typing import Annotated

import numpy as np
import torch
import typer
from scipy import stats

from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line
from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.learner import BETAS
from hippo_core.protocols.forgetting.transformer import TransformerShape, blocks, initial

EXAMPLES, BATCH, RATE, PRINT_EVERY, ASKED = 10, 64, 1e-3, 500, 1000
Minutes = Annotated[float, typer.Argument(min=0.01)]
Dimensions = Annotated[int, typer.Option(min=1)]


def shape_of(dimensions: int, **variant: int | None) -> TransformerShape:
    """The model: a row of the embedding for each coordinate of x and one for y, by which numbers are read and said."""
    return TransformerShape(2 * EXAMPLES, dimensions + 1, layers=3, width=64, **variant)  # type: ignore[arg-type]


def functions(count: int, dimensions: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """x `(count, EXAMPLES, dimensions)` and y `(count, EXAMPLES)` of as many functions."""
    x = torch.randn(count, EXAMPLES, dimensions, generator=generator)
    w = torch.randn(count, dimensions, 1, generator=generator)
    return x, (x @ w).squeeze(-1)


def predicted(shape: TransformerShape, vector: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What a model says of each y, `(count, EXAMPLES)`, from its x and the examples before it.

    Raises:
        LabError: x is not of the model's dimensions, or there are more examples than it has places for.
    """
    if x.shape[-1] + 1 != shape.vocabulary or 2 * x.shape[1] > shape.block:
        title = f"{x.shape[1]} examples of {x.shape[-1]} dimensions"
        raise LabError(f"a model of {shape.block // 2} examples of {shape.vocabulary - 1} dimensions cannot be asked {title}")
    pairs = torch.stack([torch.nn.functional.pad(x, (0, 1)), torch.nn.functional.pad(y.unsqueeze(-1), (x.shape[-1], 0))], 2).flatten(1, 2)
    weights, at = shape.named(vector), torch.arange(0, pairs.shape[1], 2).expand(len(x), -1)
    return blocks(shape, weights, pairs @ weights["tokens"], at) @ weights["tokens"][-1]


def learn(shape: TransformerShape, seconds: float, seed: int) -> tuple[torch.Tensor, int]:
    """The weights after so many seconds of CPU, each step on functions that are new, and the steps; the rate falls to nothing."""
    dimensions, generator = shape.vocabulary - 1, torch.Generator().manual_seed(seed)
    vector, started, step = initial(shape, seed).requires_grad_(), time.process_time(), 0
    optimizer = torch.optim.AdamW([vector], lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)
    while (progress := (time.process_time() - started) / seconds) < 1:
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 100, 2 * (1 - progress))
        x, y = functions(BATCH, dimensions, generator)
        optimizer.zero_grad()
        loss = (predicted(shape, vector, x, y) - y).square().mean() / dimensions
        loss.backward()
        optimizer.step()
        step += 1
        if step % PRINT_EVERY == 0:
            print(f"step {step}, {progress:.0%} of the time: error {loss.item():.3f}", flush=True)
    return vector.detach(), step


def least_squares(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What least squares of minimal norm on the examples before says of each y, `(count, EXAMPLES)`; 0 where there are none."""
    predictions = [torch.zeros_like(y[:, 0])]
    for k in range(1, x.shape[1]):
        w = torch.linalg.pinv(x[:, :k].double()) @ y[:, :k, None].double()
        predictions.append((x[:, k].double() * w.squeeze(-1)).sum(-1).float())
    return torch.stack(predictions, 1)


def errors(shape: TransformerShape, vector: torch.Tensor, seed: int, count: int = ASKED) -> dict[str, torch.Tensor]:
    """Squared errors divided by the dimensions (saying 0 has an error of 1), `(count, EXAMPLES)`: of the model, of least squares, and
    of the model that is shown the examples of another function."""
    x, y = functions(count, shape.vocabulary - 1, torch.Generator().manual_seed(1_000_000 + seed))
    with torch.no_grad():
        predictions = {"model": predicted(shape, vector, x, y), "least squares": least_squares(x, y)}
        other = [predicted(shape, vector, x[:, : k + 1], y.roll(1, 0)[:, : k + 1])[:, k] for k in range(EXAMPLES)]
    predictions["another function's examples"] = torch.stack(other, 1)
    return {name: (values - y).square() / (shape.vocabulary - 1) for name, values in predictions.items()}


def main(
    minutes: Minutes = 6.0, dimensions: Dimensions = 3, fc1: int | None = None, fc2: int | None = None, sort: int = 0, seed: int = 1337
) -> None:
    """Learn, then say the table of errors by the number of examples."""
    torch.set_num_threads(1)
    quicken_products()
    shape = shape_of(dimensions, fc1=fc1, fc2=fc2, sort=sort)
    vector, steps = learn(shape, 60 * minutes, seed)
    means = errors(shape, vector, seed)
    print(
        f"{shape.weights:,} weights, {minutes:g} minutes of CPU, {steps} steps of {BATCH} functions; {ASKED} new functions, 95% intervals"
    )
    print(f"| examples | {' | '.join(means)} |\n|--:|{'---|' * len(means)}")
    for k in range(EXAMPLES):
        cells = []
        for values in means.values():
            own = values[:, k].double().numpy()
            half = float(stats.t.ppf(0.975, len(own) - 1)) * float(np.std(own, ddof=1)) / len(own) ** 0.5
            cells.append(f"{own.mean():.3f} ± {half:.3f}")
        print(f"| {k} | {' | '.join(cells)} |")


if __name__ == "__main__":
    with mistakes_in_a_line():
        typer.run(main)
