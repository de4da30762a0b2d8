"""Our log-likelihoods beside lm-evaluation-harness's, of the same weights on the same requests, in turn: how far apart they are and how
long each side takes; the last line is the ratio for the labels of SST-2, each side in its best batch size.

python benchmarks/harness.py [MODEL] [REQUESTS]        (after `make peers`)

All is on the CPU in float32. Times are seconds of CPU (in brackets by the clock), so that other jobs of the machine do not count. The
harness is timed as it runs by itself, and once more ("helped") with the library that the lab lets compute its products
(`hippo_core/models/matmul.py`): what is then left is the work that ours saves. What makes the two sides the same:
- The harness opens a text as the tokenizer does; our contexts begin with that opening (`lm.template.begin`).
- It puts the token that begins a text (that ends one, where there is none) before a rolling text. Ours begin with it too, and it is told
  not to put a second one (`add_bos_token=False`).
- Of a text longer than the model's context, all windows are the same but the last: the harness goes back to fill it with text that was
  scored before, ours begins at the last token of the window before it. The paragraphs here fit into one window.
- It adds up the nats of a request in float32, whose steps are 1.2e-4 from 1,024 nats on: the paragraphs are short ones.
"""

import contextlib
import importlib.util
import io
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks.continual.lm_harness import around
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.score import log_likelihood, text_loss
from hippo_core.models.spec import load_spec
from hippo_core.text_files import why_missing
from hippo_core.training import language

BATCHES, ROUNDS, SHOTS, PARAGRAPHS, BYTES = (1, 4, 16, 32), 3, 4, 40, (60, 150)
CONDITIONS = ("ours", "harness", "helped")
PRODUCTS: Any = torch.backends.mkldnn.matmul
BY_ITSELF = PRODUCTS.fp32_precision  # before the lab loads a model


@dataclass(frozen=True)
class Kind:
    """Requests of one kind: what ours and the harness make of them in a batch size, and the largest difference in nats of two results."""

    name: str
    count: int
    ours: Callable[[int], Any]
    helped: Callable[[int], Any]
    apart: Callable[[Any, Any], float]

    def harness(self, batch: int) -> Any:
        """The harness with the products that PyTorch computes by itself."""
        quick, PRODUCTS.fp32_precision = PRODUCTS.fp32_precision, BY_ITSELF
        try:
            return self.helped(batch)
        finally:
            PRODUCTS.fp32_precision = quick


def labels(lm: LanguageModel, peer: Callable[..., Any], name: str, before: str, count: int) -> Kind:
    """The two labels of SST-2 sentences as (context, continuation) requests, behind the text `before`."""
    sentences = [sentence for sentence, _ in language.reviews("test")[: count // 2]]
    contexts = [before + language.PROMPT.format(sentence=sentence) for sentence in sentences for _ in language.LABELS]
    words = list(language.LABELS) * len(sentences)
    opened, asked = [lm.template.begin + context for context in contexts], requests(zip(contexts, words, strict=True))
    return Kind(
        name,
        len(asked),
        lambda batch: [likelihood.nats for likelihood in log_likelihood(lm, opened, words, batch)],
        lambda batch: [nats for nats, _ in peer(batch).loglikelihood(asked, disable_tqdm=True)],
        largest,
    )


def paragraphs(lm: LanguageModel, peer: Callable[..., Any]) -> Kind:
    """Short paragraphs of Python's manual: ours are timed all together and compared one by one."""
    texts = [line for line in language.manual() if BYTES[0] <= len(line.encode()) <= BYTES[1]][:PARAGRAPHS]
    opening = "" if lm.template.begin else lm.tokenizer.bos_token or lm.tokenizer.eos_token
    opened, asked = [opening + text for text in texts], requests((text,) for text in texts)

    def rolling(batch: int) -> list[float]:
        return [-nats for nats in peer(batch, add_bos_token=False).loglikelihood_rolling(asked)]

    def apart(_: Any, theirs: Sequence[float]) -> float:
        return largest([text_loss(lm, [text]).nats for text in opened], theirs)

    return Kind("manual's paragraphs", len(asked), lambda batch: text_loss(lm, opened, batch_size=batch), rolling, apart)


def examples(count: int) -> str:
    """So many calibration sentences with their labels, as they stand before a question."""
    reviews = language.reviews("calibration")[:count]
    return "".join(f"{language.PROMPT.format(sentence=sentence)}{language.LABELS[positive]}\n\n" for sentence, positive in reviews)


def requests(arguments) -> list[SimpleNamespace]:
    """Requests as the harness takes them."""
    return [SimpleNamespace(args=each, task_name=None) for each in arguments]


def largest(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest difference between two lists of nats."""
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True))


def peer_of(lm: LanguageModel) -> Callable[..., Any]:
    """A function from a batch size to the harness around the same weights, with a tokenizer of its own."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return lambda batch, **more: around(lm, batch, **more)


def seconds(call: Callable[[], Any]) -> tuple[float, float, Any]:
    """How long a call takes in seconds of CPU and by the clock, and what it returns."""
    cpu, clock = time.process_time(), time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):  # the harness's progress bars
        result = call()
    return time.process_time() - cpu, time.perf_counter() - clock, result


def compare(kind: Kind, batches: Sequence[int], rounds: int) -> str:
    """Print a line a batch size and one for the best of each side; returns that one's ratios."""
    best = dict.fromkeys(CONDITIONS, (float("inf"), 0))
    kind.ours(batches[-1])  # the first call of a process is slow
    for batch in batches:
        times: dict[str, list[tuple[float, float]]] = {condition: [] for condition in CONDITIONS}
        results = {}
        for _ in range(rounds):
            for condition in CONDITIONS:
                cpu, clock, results[condition] = seconds(partial(getattr(kind, condition), batch))
                times[condition].append((cpu, clock))
        cpu = {condition: median(cpu for cpu, _ in times[condition]) for condition in CONDITIONS}
        clock = {condition: median(clock for _, clock in times[condition]) for condition in CONDITIONS}
        best = {condition: min(best[condition], (cpu[condition], batch)) for condition in CONDITIONS}
        apart = max(kind.apart(results["ours"], results[condition]) for condition in CONDITIONS[1:])
        texts = ", ".join(f"{condition} {cpu[condition]:.2f} s ({clock[condition]:.2f})" for condition in CONDITIONS)
        print(f"  batches of {batch:2}: {texts}, ratio {ratios(cpu)}; at most {apart:.1e} nats apart", flush=True)
    rates = ", ".join(f"{condition} {kind.count / times:.1f} a second in batches of {batch}" for condition, (times, batch) in best.items())
    speedups = ratios({condition: times for condition, (times, _) in best.items()})
    print(f"  best batches: {rates}, ratio {speedups}", flush=True)
    return speedups


def ratios(times: dict[str, float]) -> str:
    """Our time divided by the harness's, by itself and helped."""
    return f"{times['ours'] / times['harness']:.2f} ({times['ours'] / times['helped']:.2f} helped)"


def main(name: str = "hippo-tiny", count: int = 200) -> None:
    """Compare every kind of requests."""
    if importlib.util.find_spec("lm_eval") is None:
        print("lm-evaluation-harness is not installed, so nothing is compared with it: make peers")
        return
    if reason := why_missing([language.SST2]):
        print(f"nothing is compared with lm-evaluation-harness: {reason}")
        return
    spec = load_spec(name).model_copy(update={"dtype": "float32", "shots": 0})
    lm = load(spec, device="cpu", threads=torch.get_num_threads())
    peer = peer_of(lm)
    kinds = [
        (labels(lm, peer, "SST-2 labels", "", count), ROUNDS),
        (labels(lm, peer, f"SST-2 labels behind {SHOTS} examples", examples(SHOTS), count // 4), 1),
        (paragraphs(lm, peer), 1),
    ]
    results = []
    for kind, rounds in kinds:
        print(f"{name}, {kind.name}: {kind.count} requests, {torch.get_num_threads()} threads, median of {rounds}")
        results.append(compare(kind, BATCHES, rounds))
    print(f"ours / lm-evaluation-harness time ratio {results[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
