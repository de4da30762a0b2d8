"""Our greedy generation beside transformers' own, on the same model, prompts and batches, in turn; each last line is their ratio.

python benchmarks/generation.py [MODEL] [ITEMS]
"""

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

import torch

from hippo_core.models.generate import generate
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.models.load import load
from hippo_core.models.prompt import fit, render
from hippo_core.models.spec import load_spec
from hippo_core.suites.draw import worlds

T = TypeVar("T")
NEW_TOKENS, BATCH, ROUNDS = 8, 32, 3
FACTS, PER_CONTEXT = 24, 8  # behind the same facts, as many questions: few enough that none is cut off


def prompts_of(lm: LanguageModel, count: int) -> dict[str, list[str]]:
    """Episodic questions, each behind one to eight facts taught for it, and behind facts that it shares with its neighbours."""
    drawn = list(worlds("episodic", "default", count, 1337, "test", lm.spec.context_limit))
    texts = {fact.id: fact.text for world in drawn for fact in world.facts}
    facts = list(texts.values())
    own, shared = [], []
    for number, item in enumerate(item for world in drawn for item in world.items):
        shown = [texts[fact] for fact in item.taught[: 1 + number % 8]]
        own.append(render(lm, shown, item.question, "short"))
        first = number // PER_CONTEXT * FACTS % len(facts)
        shared.append(fit(lm, facts[first : first + FACTS], item.question, "short", NEW_TOKENS).prompt)
    return {"facts of its own": own, f"{FACTS} facts shared by {PER_CONTEXT} questions": shared}


@torch.inference_mode()
def reference(lm: LanguageModel, prompts: list[str]) -> list[list[int]]:
    """`model.generate` in batches of the prompts as they come, cut at the first stop token."""
    answers = []
    for start in range(0, len(prompts), BATCH):
        ids, mask, _ = pad_left(lm, [lm.encode(prompt) for prompt in prompts[start : start + BATCH]])
        stops = {"eos_token_id": list(lm.stop_ids), "pad_token_id": lm.tokenizer.pad_token_id}
        made = lm.model.generate(ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False, **stops)
        answers += [until_stop(row, lm.stop_ids) for row in made[:, ids.shape[1] :].tolist()]
    return answers


def until_stop(tokens: list[int], stops: tuple[int, ...]) -> list[int]:
    """Tokens up to and with the first stop token."""
    end = next((index + 1 for index, token in enumerate(tokens) if token in stops), len(tokens))
    return tokens[:end]


def seconds(call: Callable[[], T]) -> tuple[float, T]:
    """How long a call takes, and what it returns."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def main(name: str = "hippo-tiny", count: int = 200) -> None:
    """Time both sides in turn and compare their tokens."""
    lm = load(load_spec(name), threads=torch.get_num_threads())
    for kind, prompts in prompts_of(lm, count).items():
        print(f"{name}, {count} questions, {kind}; {torch.get_num_threads()} threads, batches of {BATCH}")
        compare(lm, prompts)


def compare(lm: LanguageModel, prompts: list[str]) -> None:
    """Both sides on these prompts."""
    times: dict[str, list[float]] = {"ours": [], "transformers": []}
    for _ in range(ROUNDS):
        took, answers = seconds(lambda: generate(lm, prompts, NEW_TOKENS, BATCH))
        times["ours"].append(took)
        took, theirs = seconds(lambda: reference(lm, prompts))
        times["transformers"].append(took)
    for name, took in times.items():
        each = 1000 * median(took) / len(prompts)
        print(f"{name:13} {each:7.2f} ms an item (median of {ROUNDS}, {min(took):.2f} to {max(took):.2f} s in all)")
    tokens = [sum(getattr(answer, count) for answer in answers) / len(answers) for count in ("prompt_tokens", "computed_tokens")]
    print(f"{tokens[0]:.0f} prompt tokens an item, of which ours runs {tokens[1]:.0f}")
    same = sum(list(ours.tokens) == other for ours, other in zip(answers, theirs, strict=True))
    print(f"{same} of {len(prompts)} answers have the same tokens")
    print(f"ours / transformers time ratio {median(times['ours']) / median(times['transformers']):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
