"""How a held-out loss falls with the size of a model and with the text that it learnt from: a small grid of both, each cell one pass
through the first D tokens of TinyStories, and the law of scaling that fits it (scaling_law.py); a line a run.

.venv/bin/hippo scaling [--seeds 2] [--out FOLDER]       (needs HIPPO_DATA)

Models have two layers and widths of 16 to 96, sequences of 64, a vocabulary of 512; N counts all weights, D are 102,400 to 819,200 tokens:
of fewer the loss falls of a sudden (50 steps are too few), and no law fits.
All learn at the same rate, which rises for a tenth of the steps and then falls to nothing as a cosine; it is not tuned for each cell.
"""

import math
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import torch
import typer
from matplotlib.figure import Figure

from benchmarks.continual.scaling_law import NAMES, Law, fit, intervals
from benchmarks.continual.stories import asked, nats, tokens_of, vocabulary
from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line, write_bytes, write_text
from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.learner import BETAS
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial
from hippo_core.results.figures.drawing import STYLE, Margins, grid, png
from hippo_core.results.frames import Frame
from hippo_core.training.stories import held_out_stories, training_stories

WIDTHS, TOKENS = (16, 32, 64, 96), (102_400, 204_800, 409_600, 819_200)
BLOCK, VOCABULARY, BATCH, RATE = 64, 512, 8, 3e-3
HELD_OUT = 60  # stories
COLOURS = ("#9aa3af", "#0072b2", "#009e73", "#d55e00", "#a6447f")  # of numbers of weights, from few to many


def shape_of(width: int) -> TransformerShape:
    """The model of a width."""
    return TransformerShape(BLOCK, VOCABULARY, width=width)


def learn(shape: TransformerShape, tokens: torch.Tensor, seed: int) -> torch.Tensor:
    """The weights after one pass through these tokens in windows, which come in an order of the seed's.

    Raises:
        LabError: the text is shorter than a batch.
    """
    count = (len(tokens) - 1) // shape.block // BATCH * BATCH
    if not count:
        raise LabError(
            f"a batch of {BATCH} windows is larger than the data: expected more than {BATCH * shape.block} tokens, got {len(tokens)}"
        )
    order = torch.from_numpy(np.random.default_rng(seed).permutation(count)).view(-1, BATCH, 1)
    vector = initial(shape, seed).requires_grad_()
    optimizer = torch.optim.AdamW([vector], lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)
    for step, windows in enumerate(order):
        progress = (step + 1) / len(order)
        optimizer.param_groups[0]["lr"] = RATE * min(10 * progress, 0.5 + 0.5 * math.cos(math.pi * progress))
        optimizer.zero_grad()
        nats(shape, vector, tokens[windows * shape.block + torch.arange(shape.block + 1)]).mean().backward()
        optimizer.step()
    return vector.detach()


def curves(rows: Frame, law: Law) -> Figure:
    """Held-out loss against tokens, a colour a number of weights; dots: runs, lines: the law. `rows`: `weights`, `tokens`, `loss`."""
    constants = law.constants()
    title = (
        f"The loss falls as N^-{constants['alpha']:.2f} and D^-{constants['beta']:.2f} towards {constants['E']:.2f} nats; lower is better"
    )
    figure, [panel] = grid(title, 1, 1, 3.6, Margins(0.75, 1.5, foot=0.6))
    with matplotlib.rc_context(STYLE):
        tokens = np.geomspace(rows["tokens"].min(), rows["tokens"].max(), 50)
        for number, (weights, own) in enumerate(rows.groupby("weights")):
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(own["tokens"], own["loss"], "o", color=colour, markersize=5, label=f"{weights:,} weights")
            panel.plot(tokens, law.loss(np.full_like(tokens, float(weights)), tokens), color=colour, linewidth=1.4)  # type: ignore[arg-type]
        panel.set_xscale("log")
        panel.set_xlabel("tokens learnt from, D", fontsize=10)
        panel.set_ylabel("held-out loss, nats a token", fontsize=10)
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    return figure


def main(seeds: int = 2, out: Path = Path("reports/scaling")) -> None:
    """Run what is left of the grid, fit the law, write `runs.csv` (as it goes, so that a killed run goes on from it) and `law.png`."""
    torch.set_num_threads(1)
    quicken_products()
    texts = training_stories()
    tokenizer = vocabulary(texts, VOCABULARY)
    tokens, asking = tokens_of(tokenizer, texts), held_out_stories()[:HELD_OUT]
    if len(tokens) <= max(TOKENS):
        raise LabError(f"expected a training text of more than {max(TOKENS):,} tokens, got {len(tokens):,}")
    file = out / "runs.csv"
    runs = pd.read_csv(file).to_dict("records") if file.exists() else []
    done = {(run["weights"], run["tokens"], run["seed"]) for run in runs}
    for seed in range(1337, 1337 + seeds):
        for shape in map(shape_of, WIDTHS):
            for count in TOKENS:
                if (shape.weights, count, seed) in done:
                    continue
                loss = asked(shape, learn(shape, tokens[: count + 1], seed), tokenizer, asking)["nats"]
                runs.append({"weights": shape.weights, "tokens": count, "seed": seed, "loss": loss})
                print(f"{shape.weights:,} weights, {count:,} tokens, seed {seed}: {loss:.4f} nats a token", flush=True)
                write_text(file, pd.DataFrame(runs).to_csv(index=False))
    rows = pd.DataFrame(runs)
    weights, counts, losses = (rows[name].to_numpy(float) for name in ("weights", "tokens", "loss"))
    law = fit(weights, counts, losses)
    ends, constants = intervals(weights, counts, losses, law), law.constants()
    print("| constant | fitted | 95% of resampled runs |\n|---|--:|--:|")
    for name in NAMES:
        print(f"| {name} | {constants[name]:.4g} | {ends[name][0]:.4g} to {ends[name][1]:.4g} |")
    apart = np.abs(np.log(law.loss(weights, counts) / losses))
    print(f"{len(rows)} runs; the law misses a loss by {np.median(apart):.1%} in the median, {apart.max():.1%} at most")
    write_bytes(out / "law.png", png(curves(rows, law)))
    print(f"written: {file}, {out}/law.png")


if __name__ == "__main__":
    with mistakes_in_a_line():
        typer.run(main)
