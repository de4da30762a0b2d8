"""A live memory: sentences a second, milliseconds of an answer, and of a flip in the dashboard, the old answer and the pictures included.

    python benchmarks/memory/live.py [--models hippo-tiny smollm2-135m-reader] [--facts 10000] [--threads 2]

One process. A flip changes one setting and answers again, as a click does, without what a browser draws. The first of each kind is among
them, which opens the store's index, or runs traces to keys and values.
"""

import argparse
import time
from itertools import cycle, islice
from statistics import median

import torch

from hippo_core import Memory
from hippo_core.dashboard.ask import AskPanel
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import load_spec

FLIPS = (
    *(("episodic.use_completion", "hopfield"), ("delivery", "text"), ("k", 3), ("control", "empty")),
    *(("control", "none"), ("k", 1), ("delivery", "kv"), ("episodic.use_completion", "off")),
)
TIMES = 20


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["hippo-tiny", "smollm2-135m-reader"])
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"| model | facts | sentences a second | ask, ms: median of {TIMES}, worst | flip, ms: median of {TIMES}, worst |")
    print("|---|--:|--:|--:|--:|", flush=True)
    for model in options.models:
        if reason := missing(load_spec(model)):
            print(f"{model}: skipped, {reason}")
            continue
        rate, asked = answers(model, options.facts)
        flips = flipped(model)
        print(f"| {model} | {options.facts:,} | {rate:.0f} | {in_words(asked)} | {in_words(flips)} |", flush=True)


def answers(model: str, facts: int) -> tuple[float, list[float]]:
    """Sentences told a second, and milliseconds of answers among them, the first one, which builds the index, left out."""
    with Memory(model) as memory:
        memory.teach("The lamp stands by the door.")  # loads the model
        begin = time.perf_counter()
        memory.teach([f"In {number % 12 + 1} weeks person{number} put box{number} in room {number % 97}." for number in range(facts)])
        rate = facts / (time.perf_counter() - begin)
        return rate, [milliseconds(lambda n=n: memory.ask(f"Where did person{n * 7} put box{n * 7}?")) for n in range(TIMES + 1)][1:]


def flipped(model: str) -> list[float]:
    """Milliseconds of flips over three sentences."""
    panel = AskPanel(model)
    panel.answer_now()
    return [milliseconds(lambda: setattr(panel.controls.by_key[key], "value", value)) for key, value in islice(cycle(FLIPS), TIMES)]  # noqa: B023


def milliseconds(do) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1e3


def in_words(times: list[float]) -> str:
    """The median and the worst."""
    return f"{median(times):.0f}, {max(times):.0f}"


if __name__ == "__main__":
    main()
