"""Variants of the preset `tinystories` learn TinyStories, seed by seed, and are asked about stories and other English that they never read.

.venv/bin/hippo stories [MINUTES] [--variant fc2=256]... [--seeds 3] [--out FOLDER]

It needs HIPPO_DATA. The sizes are those of KintaroAI's protocol (llm-fundamentals, EVAL.md, phase 1): sequences of 256, 4 layers of width
128. Its vocabulary of 50,257 tokens is here one of 4,096, byte-level BPE of the training stories; bits a byte can be compared, perplexities
a token cannot. Minutes are of this process's CPU, without validation. As in GENERALIZATION_PROTOCOL.md, seeds are averaged, validation goes
along with learning, and variants are compared where they have the same training loss. That is here the mean of fifty batches: one is noise.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
import typer
from tokenizers import ByteLevelBPETokenizer
from torch.nn import functional

from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line, write_text
from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.learner import BETAS
from hippo_core.protocols.forgetting.run import moment
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial, logits
from hippo_core.results.frames import Frame
from hippo_core.text_files import read_text
from hippo_core.training.stories import held_out_stories, training_stories

END, VOCABULARY, BLOCK = "<|endoftext|>", 4096, 256
BATCH, RATE, PRINT_EVERY = 16, 1e-3, 50
OTHERS = {"WikiText-2, validation": "wikitext2-valid", "Tiny Shakespeare": "tinyshakespeare"}
Minutes = Annotated[float, typer.Argument(min=0.01)]
BYTES = 100_000  # of another text that are asked
DENSE = "dense"
PUBLISHED = {  # best validation loss, and that of dense: KintaroAI's experiment 00009, 5,000 steps; sort: 20,000; one seed each
    "fc2=256": (2.3269, 2.3852),
    "fc2=512": (2.3329, 2.3852),
    "fc1=256": (2.4107, 2.3852),
    "fc1=256,fc2=256": (2.4157, 2.3852),
    "sort=64": (1.925, 1.945),
}
FILES, MEASURES = ("runs.csv", "curves.csv"), {"nats": "nats", "bits": "bits_per_byte"}
SHARES = (0.5, 0.2, 0.0)  # where levels of training loss lie between the lowest and the highest that all runs went through


def vocabulary(texts: Sequence[str], size: int = VOCABULARY) -> ByteLevelBPETokenizer:
    """Byte-level BPE of these texts, so that every text can be said in it; token 0 ends a text."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=size, special_tokens=[END], show_progress=False)
    return tokenizer


def tokens_of(tokenizer: ByteLevelBPETokenizer, texts: Sequence[str]) -> torch.Tensor:
    """The texts one after another, an end before each, `(tokens,)`."""
    return torch.tensor([token for text in texts for token in (0, *tokenizer.encode(text).ids)])


def shape_of(variant: str) -> TransformerShape:
    """The model of a variant: `dense`, or such as `fc1=256,fc2=256` (bands of the MLP) or `sort=64` (a mixture of the last places).

    Raises:
        LabError: a name is none of these, or a value no whole number above 0.
    """
    if variant != DENSE and not re.fullmatch(r"(fc1|fc2|sort)=[1-9]\d*(,(fc1|fc2|sort)=[1-9]\d*)*", variant, re.ASCII):
        raise LabError(f"expected a variant such as {DENSE}, fc2=256, fc1=256,fc2=256 or sort=64, got {variant!r}")
    bands = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", variant)}
    return TransformerShape(BLOCK, VOCABULARY, layers=4, **bands)  # type: ignore[arg-type]


def learn(
    shape: TransformerShape, tokens: torch.Tensor, seconds: float, seed: int, validate: Callable[[torch.Tensor], float] | None = None
) -> tuple[torch.Tensor, list[dict[str, float]]]:
    """The weights after so many seconds of CPU on random windows, and the curve: every fifty steps and in the end `step`, `training` (the
    mean loss of the batches since the last look) and `validation` (what `validate` says of the weights). The rate falls to nothing.

    Raises:
        LabError: the text is shorter than a window.
    """
    if len(tokens) <= shape.block:
        raise LabError(f"expected a training text of more than {shape.block} tokens, got {len(tokens)}")
    vector = initial(shape, seed).requires_grad_()
    optimizer = torch.optim.AdamW([vector], lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)
    drawn, spent, step, losses, curve = np.random.default_rng(seed), 0.0, 0, [], []
    while (progress := spent / seconds) < 1:
        started = time.process_time()
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 20, 2 * (1 - progress))  # for the last half
        starts = torch.from_numpy(drawn.integers(0, len(tokens) - shape.block, BATCH))
        windows = tokens[starts.unsqueeze(1) + torch.arange(shape.block + 1)]
        optimizer.zero_grad()
        loss = nats(shape, vector, windows).mean()
        loss.backward()
        optimizer.step()
        step += 1
        losses.append(loss.item())
        spent += time.process_time() - started
        if step % PRINT_EVERY == 0 or spent >= seconds:
            look = {"training": float(np.mean(losses)), "validation": validate(vector.detach()) if validate else math.nan}
            curve.append({"step": step, **look})
            losses = []
            shown = ", ".join(f"{name} {value:.3f}" for name, value in look.items())
            print(f"step {step}, {min(1, spent / seconds):.0%} of the time: {shown} nats a token", flush=True)
    return vector.detach(), curve


def nats(shape: TransformerShape, vector: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
    """The loss of every token of windows `(windows, tokens)` but their first, likewise but one token less."""
    inputs, answers = windows[:, :-1], windows[:, 1:]
    at = torch.arange(inputs.shape[1]).expand(inputs.shape)
    outputs = logits(shape, vector, inputs, at)
    return functional.cross_entropy(outputs.flatten(0, 1), answers.flatten(), reduction="none").view(answers.shape)


def asked(shape: TransformerShape, vector: torch.Tensor, tokenizer: ByteLevelBPETokenizer, texts: Sequence[str]) -> dict[str, float]:
    """Nats and perplexity a token, and bits a byte, of texts in windows that do not overlap; the ends between texts count as tokens."""
    tokens, total = tokens_of(tokenizer, texts), 0.0
    with torch.no_grad():
        for start in range(0, len(tokens) - 1, BATCH * shape.block):
            part = tokens[start : start + BATCH * shape.block + 1]
            rows = [part[here : here + shape.block + 1] for here in range(0, len(part) - 1, shape.block)]
            full_rows = [row for row in rows if len(row) == shape.block + 1]
            for windows in (torch.stack(full_rows) if full_rows else None, *(row.unsqueeze(0) for row in rows[len(full_rows) :])):
                if windows is not None:
                    total += nats(shape, vector, windows).double().sum().item()
    mean = total / (len(tokens) - 1)
    size = sum(len(text.encode()) for text in texts)
    return {"tokens": len(tokens) - 1, "nats": mean, "perplexity": math.exp(mean), "bits_per_byte": total / math.log(2) / size}


def test_texts() -> Mapping[str, Sequence[str]]:
    """What is asked in the end: of the stories that were not learnt from those that do not validate, and the beginnings of other texts."""
    others = {title: [read_text(name)[:BYTES]] for title, name in OTHERS.items()}
    return {"TinyStories, test": held_out_stories()[1::2], **others}


def at_equal_loss(curves: Frame) -> Frame:
    """The validation loss of each run when its training loss fell to three levels that all went through, a row a level, variant and seed;
    without rows where the curves have no level in common. `curves`: `variant`, `seed`, `step`, `training`, `validation`."""
    runs = [(name, own["training"].tolist(), own["validation"].tolist()) for name, own in curves.groupby(["variant", "seed"], sort=False)]
    low, high = max(min(training) for _, training, _ in runs), min(training[0] for _, training, _ in runs)
    rows = []
    for level in (low + share * (high - low) for share in SHARES if low < high):
        for (variant, seed), training, validation in runs:  # type: ignore[misc]
            there = float(np.interp(moment(training, level), np.arange(len(validation)), validation))
            rows.append({"level": level, "variant": variant, "seed": seed, "validation": there})
    return pd.DataFrame(rows, columns=["level", "variant", "seed", "validation"])


def averaged(values: Frame, digits: int = 3, sign: str = "") -> str:
    """The mean over seeds and their standard deviation."""
    mean = f"{values.mean():{sign}.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {values.std():.{digits}f}"


def tables(runs: Frame, curves: Frame) -> str:
    """Variants side by side: their losses, at equal training loss, and beside what was published; means over seeds ± standard deviation.
    `runs`: `variant`, `weights`, `seed`, and of each text `TEXT, nats` and `TEXT, bits`; `curves` as in `at_equal_loss`."""
    texts = [name.removesuffix(", nats") for name in runs if name.endswith(", nats")]
    ends = curves.groupby(["variant", "seed"], sort=False).agg(
        step=("step", "last"), training=("training", "last"), last=("validation", "last"), best=("validation", "min")
    )
    wide = " | ".join(f"{text}: nats a token, bits a byte" for text in texts)
    lines = [f"| variant | weights | seeds | steps | training | best validation | gap at the end | {wide} |"]
    lines.append(f"|---|--:|--:|--:|{'---|' * (3 + len(texts))}")
    for variant, own in runs.groupby("variant", sort=False):
        end = ends.loc[variant]
        cells = [str(variant), f"{own['weights'].iloc[0]:,}", str(len(own)), f"{end['step'].mean():.0f}", averaged(end["training"])]
        cells += [averaged(end["best"]), averaged(end["last"] - end["training"], sign="+")]
        cells += [f"{averaged(own[f'{text}, nats'])}, {averaged(own[f'{text}, bits'])}" for text in texts]
        lines.append(f"| {' | '.join(cells)} |")
    matched = at_equal_loss(curves)
    lines += ["", "| at training loss | variant | validation loss | less that of dense, by seed |", "|--:|---|---|---|"]
    for (level, variant), own in matched.groupby(["level", "variant"], sort=False):
        plain = matched[(matched["level"] == level) & (matched["variant"] == DENSE)].set_index("seed")["validation"]
        apart = own.set_index("seed")["validation"] - plain
        less = "–" if variant == DENSE else averaged(apart, sign="+")
        lines.append(f"| {level:.3f} | {variant} | {averaged(own['validation'])} | {less} |")
    lines += [] if len(matched) else ["", "The curves have no training loss in common: learn longer."]
    lines += ["", "| variant | best validation less that of dense, % | published (another vocabulary, one seed) |", "|---|---|--:|"]
    for variant in [name for name in ends.index.unique("variant") if name != DENSE]:
        apart = 100 * (ends.loc[variant]["best"] / ends.loc[DENSE]["best"] - 1)
        own, dense = PUBLISHED.get(variant, (math.nan, math.nan))
        lines.append(f"| {variant} | {averaged(apart, 1, '+')} | {100 * (own / dense - 1):+.1f} |".replace("+nan", "–"))
    return "\n".join(lines)


def main(
    minutes: Minutes = 20.0,
    variant: Annotated[list[str] | None, typer.Option(help="beside dense: fc2=256, fc1=256,fc2=256, sort=64; may be repeated")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="initialisations of each variant, from 1337 on")] = 1,
    out: Annotated[Path, typer.Option(help="of runs.csv and curves.csv, from which a killed command goes on")] = Path("reports/stories"),
) -> None:
    """Learn each variant with each seed, MINUTES each, validating on the way; then compare them."""
    torch.set_num_threads(1)
    quicken_products()
    shapes = {name: shape_of(name) for name in dict.fromkeys((DENSE, *(variant or ())))}
    texts, validation, asking = training_stories(), held_out_stories()[::2], test_texts()
    tokenizer = vocabulary(texts)
    tokens, wanted = tokens_of(tokenizer, texts), range(1337, 1337 + seeds)
    runs, curves = (pd.read_csv(path).to_dict("records") if (path := out / name).exists() else [] for name in FILES)
    for name, shape in shapes.items():
        for seed in wanted:
            if any((run["variant"], run["seed"], run["minutes"]) == (name, seed, minutes) for run in runs):
                continue
            print(f"{name}, seed {seed}: {minutes:g} minutes of CPU", flush=True)
            vector, curve = learn(shape, tokens, 60 * minutes, seed, lambda v, s=shape: asked(s, v, tokenizer, validation)["nats"])
            run = {"variant": name, "seed": seed, "minutes": minutes}
            curves += [run | look for look in curve]
            results = {title: asked(shape, vector, tokenizer, those) for title, those in asking.items()}
            nats_bits = {f"{title}, {short}": own[long] for title, own in results.items() for short, long in MEASURES.items()}
            runs.append(run | {"weights": shape.weights, **nats_bits})
            for file, rows in zip(FILES, (runs, curves), strict=True):
                write_text(out / file, pd.DataFrame(rows).to_csv(index=False))
    frames = [pd.DataFrame(rows) for rows in (runs, curves)]
    chosen = [own[own["variant"].isin(shapes) & own["seed"].isin(wanted) & (own["minutes"] == minutes)] for own in frames]
    print(f"\n{minutes:g} minutes of CPU each, {len(tokens):,} tokens of training stories; mean ± standard deviation over seeds\n")
    print(f"{tables(*chosen)}\n\nwritten: {out}/{FILES[0]}, {out}/{FILES[1]}")


if __name__ == "__main__":
    with mistakes_in_a_line():
        typer.run(main)
