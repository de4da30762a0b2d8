"""Our greedy generation beside transformers' own, on the same model, prompts and batches, in turn; the last line is their ratio.

python benchmarks/generation.py [MODEL] [ITEMS]
"""

import sys
import time
from statistics import median

import torch

from hippo_core.models.generate import generate
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.models.load import load
from hippo_core.models.prompt import render
from hippo_core.models.spec import load_spec
from hippo_core.suites.datasets.build import worlds

NEW_TOKENS, BATCH, ROUNDS = 8, 32, 5


def prompts_of(lm: LanguageModel, count: int) -> list[str]:
    """Episodic questions behind one to eight of the facts taught for them: prompts of different length."""
    made = []
    for world in worlds("episodic", "default", count, 1337, "test", lm.spec.context_limit):
        texts = {fact.id: fact.text for fact in world.facts}
        for item in world.items:
            shown = [texts[fact] for fact in item.taught[: 1 + len(made) % 8]]
            made.append(render(lm, shown, item.question, "short"))
    return made


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
    end = next((place + 1 for place, token in enumerate(tokens) if token in stops), len(tokens))
    return tokens[:end]


def seconds(call) -> tuple[float, list[list[int]]]:
    """How long a call takes, and what it returns."""
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def main(name: str = "hippo-tiny", count: int = 200) -> None:
    """Time both sides in turn and compare their tokens."""
    lm = load(load_spec(name), threads=torch.get_num_threads())
    prompts = prompts_of(lm, count)
    times: dict[str, list[float]] = {"ours": [], "transformers": []}
    for _ in range(ROUNDS):
        spent, ours = seconds(lambda: [list(answer.tokens) for answer in generate(lm, prompts, NEW_TOKENS, BATCH)])
        times["ours"].append(spent)
        spent, theirs = seconds(lambda: reference(lm, prompts))
        times["transformers"].append(spent)
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    for side, spent in times.items():
        print(
            f"{side:13} {1000 * median(spent) / count:7.2f} ms an item (median of {ROUNDS}, {min(spent):.2f} to {max(spent):.2f} s in all)"
        )
    print(f"{same} of {count} answers have the same tokens; {torch.get_num_threads()} threads, batches of {BATCH}")
    print(f"ours / transformers time ratio {median(times['ours']) / median(times['transformers']):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
