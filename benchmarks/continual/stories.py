"""The preset `tinystories` learns TinyStories for some minutes, and is asked about held-out stories and about other English; a line a text.

python -m benchmarks.continual.stories [MINUTES] [--fc1 256] [--fc2 256] [--sort 8] [--seed 1337]

It needs HIPPO_DATA. The sizes are those of KintaroAI's protocol (llm-fundamentals, EVAL.md, phase 1): sequences of 256, 4 layers of width
128. Its vocabulary of 50,257 tokens is here one of 4,096, byte-level BPE of the training stories; bits a byte can be compared, perplexities
a token cannot. Minutes are of this process's CPU.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import torch
import typer
from tokenizers import ByteLevelBPETokenizer
from torch.nn import functional

from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line
from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting.learner import BETAS
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial, logits
from hippo_core.text_files import read_text
from hippo_core.training.stories import held_out_stories, training_stories

END, VOCABULARY, BLOCK = "<|endoftext|>", 4096, 256
BATCH, RATE, PRINT_EVERY = 16, 1e-3, 50
OTHERS = {"WikiText-2, validation": "wikitext2-valid", "Tiny Shakespeare": "tinyshakespeare"}
Minutes = Annotated[float, typer.Argument(min=0.01)]
BYTES = 100_000  # of another text that are asked


def vocabulary(texts: Sequence[str], size: int = VOCABULARY) -> ByteLevelBPETokenizer:
    """Byte-level BPE of these texts, so that every text can be said in it; token 0 ends a text."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=size, special_tokens=[END], show_progress=False)
    return tokenizer


def tokens_of(tokenizer: ByteLevelBPETokenizer, texts: Sequence[str]) -> torch.Tensor:
    """The texts one after another, an end before each, `(tokens,)`."""
    return torch.tensor([token for text in texts for token in (0, *tokenizer.encode(text).ids)])


def learn(shape: TransformerShape, tokens: torch.Tensor, seconds: float, seed: int) -> tuple[torch.Tensor, int]:
    """The weights after so many seconds of CPU on random windows, and the steps that they took; the rate falls to nothing.

    Raises:
        LabError: the text is shorter than a window.
    """
    if len(tokens) <= shape.block:
        raise LabError(f"expected a training text of more than {shape.block} tokens, got {len(tokens)}")
    vector = initial(shape, seed).requires_grad_()
    optimizer = torch.optim.AdamW([vector], lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)
    drawn, started, step = np.random.default_rng(seed), time.process_time(), 0
    while (progress := (time.process_time() - started) / seconds) < 1:
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 20, 2 * (1 - progress))  # for the last half
        starts = torch.from_numpy(drawn.integers(0, len(tokens) - shape.block, BATCH))
        windows = tokens[starts.unsqueeze(1) + torch.arange(shape.block + 1)]
        optimizer.zero_grad()
        loss = nats(shape, vector, windows).mean()
        loss.backward()
        optimizer.step()
        step += 1
        if step % PRINT_EVERY == 0:
            print(f"step {step}, {progress:.0%} of the time: {loss.item():.3f} nats a token", flush=True)
    return vector.detach(), step


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


def held_out() -> Mapping[str, Sequence[str]]:
    """What is asked: stories that were not learnt from, and the beginnings of other texts."""
    others = {title: [read_text(name)[:BYTES]] for title, name in OTHERS.items()}
    return {"TinyStories, held out": held_out_stories(), **others}


def main(minutes: Minutes = 20.0, fc1: int | None = None, fc2: int | None = None, sort: int = 0, seed: int = 1337) -> None:
    """Learn, then say the table of held-out texts."""
    torch.set_num_threads(1)
    quicken_products()
    shape = TransformerShape(BLOCK, VOCABULARY, layers=4, fc1=fc1, fc2=fc2, sort=sort)
    texts, others = training_stories(), held_out()
    tokenizer = vocabulary(texts)
    tokens = tokens_of(tokenizer, texts)
    vector, steps = learn(shape, tokens, 60 * minutes, seed)
    rounds = steps * BATCH * BLOCK / len(tokens)
    print(f"{shape.weights:,} weights, {minutes:g} minutes of CPU, {steps} steps, {rounds:.1f} times through {len(tokens):,} tokens")
    print("| text | tokens | nats a token | perplexity | bits a byte |\n|---|--:|--:|--:|--:|")
    for title, those in others.items():
        results = asked(shape, vector, tokenizer, those)
        print(f"| {title} | {results['tokens']} | {results['nats']:.3f} | {results['perplexity']:.1f} | {results['bits_per_byte']:.3f} |")


if __name__ == "__main__":
    with mistakes_in_a_line():
        typer.run(main)
