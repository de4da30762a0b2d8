"""Learning rates of the ways into a model: uplift, reading lost and the last loss at half, all and twice the usual rate, at equal steps.

Everything is of validation worlds and validation lessons; what it prints chose the rates in hippo_core/training/consolidation/update_rules.

    python benchmarks/memory/sleep_rates.py [way ...]
"""

import sys
import tempfile
import time
from pathlib import Path

from hippo_core.discovery import member
from hippo_core.evaluation.run import answer
from hippo_core.methods.base import Observation
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.consolidation.run import reading
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.update_rules import make_update_rule
from hippo_core.training.train import train

FACTS, STEPS, SEED = 20, 100, 1337
TIMES = (0.5, 1.0, 2.0)


def right(lm, drawn):
    """The share of the worlds' questions that the model answers with its memory off."""
    preset = load_preset("baselines/span_short")
    return answer(lm, get_suite("consolidation"), drawn, preset.method(lm, preset.settings))["score"].mean()


def slept(lm, drawn, name, rate):
    """Uplift, reading lost, the loss of the last step and the seconds of one sleep."""
    facts = [fact for world in drawn for fact in world.facts]
    traces = [Observation.of(fact).trace(id=number) for number, fact in enumerate(facts, 1)]
    recipe = SleepRecipe(way=name, rate=rate, steps=STEPS, first_block=first_block(lm), seed=SEED)
    before = right(lm, drawn)
    update_rule = make_update_rule(name, lm, recipe.rank, recipe.first_block)
    sleep = Sleep(recipe, lm, update_rule, traces, shuffled(len(traces), str(SEED)))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        train(sleep, Path(folder), say=lambda line: None, every=STEPS)
    seconds = time.perf_counter() - began
    measures = right(lm, drawn) - before, reading(sleep, False) - reading(sleep, True), sleep.loss, seconds
    update_rule.detach()
    return measures


if __name__ == "__main__":
    model, val = load(load_spec("hippo-tiny"), "cpu"), list(worlds("consolidation", "default", FACTS, SEED, "val"))
    print("| way | rate | uplift | reading lost | last loss | s |\n|---|--:|--:|--:|--:|--:|")
    for name in sys.argv[1:] or ("sparse", "lora"):
        for times in TIMES:
            rate = times * member("hippo_core.training.consolidation.update_rules", name, "way").rate
            uplift, lost, loss, seconds = slept(model, val, name, rate)
            print(f"| {name} | {rate:g} | {uplift:+.2f} | {lost:+.3f} | {loss:.2f} | {seconds:.0f} |", flush=True)
