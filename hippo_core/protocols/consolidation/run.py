"""Ask, sleep, ask again: the rows of the experiment `consolidation`."""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.errors import LabError
from hippo_core.evaluation.run import AnsweredItem, ask, passages_of
from hippo_core.files import home, new_folder, remove_made, sha256, write_json
from hippo_core.methods.base import Memory
from hippo_core.methods.episodic.replay import Due, arrivals_of, draw, queue_of, recalled
from hippo_core.methods.episodic.settings import ReplaySettings
from hippo_core.methods.presets import Preset, load_preset
from hippo_core.models import checksums
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import text_loss
from hippo_core.protocols.consolidation.table import ABOUT_STORE, COLUMNS, OTHER_SUITES, PROBES, SPENT, changes
from hippo_core.results.frames import Frame
from hippo_core.results.records.write import write_rows
from hippo_core.results.scores import score_item
from hippo_core.store import TraceStore
from hippo_core.store.trace import Trace
from hippo_core.suites import get_suite, settings_for
from hippo_core.suites.draw import cut, drawn_worlds
from hippo_core.suites.types import Suite, World
from hippo_core.training import language
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation.rehearsal import rehearse
from hippo_core.training.consolidation.sleep import PASSES, ComputeUsed, Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.update_rules import UpdateRule, make_update_rule
from hippo_core.training.train import right_answers, train

CHECKPOINTS, LEDGER = "data/training/consolidation", "ledger.csv"
READ_SEED = 424_243  # of the worlds whose facts stand in the prompt: no store is taught them
EPISODES = ("episodic", "base")  # suite and profile of the facts that stand in the prompt
BATCH = 32
PARAGRAPHS, DRY_PARAGRAPHS = 40, 5  # of plain text
LESSONS = 24  # validation lessons by which a cycle is rolled back or not
COUNTERS = ("cycles", "rolled_back", "replay_samples", "tokens", "seconds")


class Ledger:
    """What all cycles so far spent on each trace, by its id: rehearsals, trained tokens and seconds.

    Args:
        traces: those of each world. A question is about the traces that were made of its gold facts.
    """

    def __init__(self, worlds: Sequence[World], traces: Mapping[str, Sequence[Trace]]) -> None:
        self.traces = {trace.id: trace for of_world in traces.values() for trace in of_world}
        ids = {trace.source: trace.id for trace in self.traces.values()}
        self.about = {item.id: [ids[fact] for fact in item.gold_facts if fact in ids] for world in worlds for item in world.items}
        self.spent: dict[int, dict[str, float]] = {trace: dict.fromkeys(map(str, SPENT), 0.0) for trace in self.traces}

    def add(self, spent: Mapping[int, ComputeUsed], seconds: float) -> None:
        """A cycle more. A trace's share of its seconds is its share of the tokens."""
        total = sum(cost.tokens for cost in spent.values())
        for trace, cost in spent.items():
            values = {"rehearsals": cost.rehearsals, "tokens": cost.tokens, "seconds": seconds * cost.tokens / total}
            self.spent[trace] = {name: self.spent[trace][name] + value for name, value in values.items()}

    def of_row(self, row: Mapping[str, Any]) -> dict[str, float]:
        """What was spent on the traces that a row's question is about; NaN where it is about none of this store."""
        traces = self.about.get(row["question_id"], []) if row["probe"] in ABOUT_STORE else []
        return {name: sum(self.spent[trace][name] for trace in traces) if traces else math.nan for name in SPENT}

    def table(self, rows: Frame) -> pd.DataFrame:
        """A row a trace.

        Returns:
            `questions` about it, the share of them that is right `before` and `after` with the memory off, the questions `won` by replay
            (right after that were wrong before), what was spent, and the collateral damage of the whole sleep against the unchanged model:
            `reading_lost` (share of answers about other facts in the prompt) and `text_lost` (nats a token of plain text).
        """
        off = rows[rows["probe"] == "off"]
        stages = list(dict.fromkeys(off["stage"]))
        before, after = (off[off["stage"] == stage].set_index("question_id")["score"] for stage in (stages[0], stages[-1]))
        changed = changes(rows)
        damage = {
            "reading_lost": -changed["in_context"][stages[-1]]["difference"],
            "text_lost": changed["text"][stages[-1]]["difference"],
        }
        lines = []
        for number, trace in self.traces.items():
            asked = [question for question, about in self.about.items() if number in about]
            first, last = before.reindex(asked), after.reindex(asked)
            answered = {"before": first.mean(), "after": last.mean(), "won": int((last > first).sum())}
            identity = {"trace": number, "world": trace.world, "source": trace.source, "text": trace.text, "questions": len(asked)}
            lines.append(identity | answered | self.spent[number] | damage)
        return pd.DataFrame(lines)


def read_store(memory: Memory, path: Path, worlds: Sequence[World]) -> dict[str, list[Trace]]:
    """The traces of each world. The store's file stays as it is."""
    with TraceStore.open(path.parent.parent, path.parent.name, memory.identity(), read_only=True) as store:
        return {world.id: store.traces(world.id) for world in worlds}


def consolidate(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """Probe, let the model sleep on the store's traces, and probe again after each cycle; what was learnt lies in the record, and the
    ledger of all traces.

    `cell.slept` says what it took. A cycle that loses more of reading than `lost` on validation lessons is rolled back.
    """
    parameters, lm, preset = cell.parameters, cell.language_model, cell.resolved.preset
    worlds = cell.worlds()
    memory: Any = preset.method(lm, preset.settings)
    traces = read_store(memory, cell.store, worlds)
    all_traces = [trace for world in worlds for trace in traces[world.id]]
    ledger = Ledger(worlds, traces)
    rows = [row | ledger.of_row(row) for row in probe(cell, traces, "pre")]
    recipe = recipe_of(parameters, lm, len(all_traces))
    update_rule = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block)
    try:
        slept: dict[str, Any] = {"way": recipe.way, "numbers": update_rule.number(), **dict.fromkeys(COUNTERS, 0)}
        for cycle in range(1, parameters.cycles + 1):
            if parameters.replay:
                sleep_once(cell, update_rule, all_traces, recipe, cycle, slept, ledger, say)
            with nullcontext() if slept["cycles"] else update_rule.unchanged():  # until a cycle is kept there is nothing to be on
                rows += [row | ledger.of_row(row) for row in probe(cell, traces, f"post_{cycle}", update_rule)]
        slept |= {"facts": len(all_traces), "seconds_a_fact": slept["seconds"] / len(all_traces)}
        if slept["cycles"]:
            keep(update_rule, cell, recipe, slept)
    finally:
        update_rule.detach()
    cell.slept = slept
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    write_rows(cell.record / LEDGER, ledger.table(table))
    return table


def recipe_of(parameters: Any, lm: LanguageModel, traces: int) -> SleepRecipe:
    """What the parameters of a cell ask for; without a number of steps so many that each trace is rehearsed `rehearsals` times."""
    same = {name: getattr(parameters, name) for name in ("way", "rank", "rate", "wordings", "restatements", "distilled", "seed", "threads")}
    questions = SleepRecipe.model_fields["questions"].default
    steps = parameters.steps or math.ceil(parameters.rehearsals * traces / questions)
    blocks = first_block(lm) if parameters.first_block is None else parameters.first_block
    return SleepRecipe(**same, steps=steps, first_block=blocks)


def sleep_once(
    cell: Any,
    update_rule: UpdateRule,
    traces: Sequence[Trace],
    recipe: SleepRecipe,
    cycle: int,
    slept: dict[str, Any],
    ledger: Ledger,
    say: Callable[[str], None],
) -> None:
    """One cycle, which goes on from those before it that were kept, and adds to `slept` and to the ledger what it took."""
    parameters, before = cell.parameters, update_rule.kept()
    recipe = recipe.model_copy(update={"seed": recipe.seed + 1000 * (cycle - 1)})
    passes = orders(traces, parameters.policy, cycle, recipe.seed)
    sleep = Sleep(recipe, cell.language_model, update_rule, traces, passes, prepare=not slept["cycles"])
    seconds = train_once(cell, sleep, slept, say, parameters.policy, cycle)
    ledger.add(sleep.compute_used(), seconds)
    lost = reading(sleep, False) - reading(sleep, True)
    slept["reading_lost"] = lost
    if lost > parameters.lost:
        update_rule.set_tensors(before)
        slept["rolled_back"] += 1
        cell.warn(f"cycle {cycle} lost {lost:.0%} of reading on validation lessons (lost={parameters.lost}): it is rolled back")
    else:
        slept["cycles"] += 1


def train_once(cell: Any, sleep: Sleep, slept: dict[str, Any], say: Callable[[str], None], *inputs: Any) -> float:
    """Train a sleep to its end, add to `slept` what it took, and return the seconds; one that was killed goes on from its checkpoint."""
    recipe = sleep.recipe
    identity = [recipe.model_dump(), sha256(cell.store), checksums.weights(cell.parameters.model), *inputs, str(cell.record)]
    folder = home() / CHECKPOINTS / checksums.digest(identity)[:24]
    begin = time.perf_counter()
    train(sleep, folder, say, every=max(1, recipe.steps // 2))
    seconds, spent = time.perf_counter() - begin, sleep.compute_used().values()
    remove_made(folder)
    slept["seconds"] += seconds
    slept["replay_samples"] += sum(cost.rehearsals for cost in spent)
    slept["tokens"] += sum(cost.tokens for cost in spent)
    slept["loss"] = sleep.loss
    return seconds


def reading(sleep: Sleep, consolidated: bool) -> float:
    """The share of validation lessons' answers that are right."""
    drawn = kept.lessons(Random("kept/validation"), LESSONS, "val")
    batches = sleep.encoder.batches(drawn, [], 4)

    with nullcontext() if consolidated else sleep.update_rule.unchanged():
        return float(np.mean([right for batch in batches for _, right in right_answers(sleep.update_rule.model, batch)]))


def orders(traces: Sequence[Trace], policy: str, cycle: int, seed: int) -> list[list[int]]:
    """Indexes of the traces in the order of each pass, as a policy of replay draws them.

    `spaced`: passes take in the traces by and by, an eighth each; a rehearsal counts as a recall, so that a trace is due again after 2, 4
    and 8 passes (expanding rehearsal, Landauer & Bjork 1978).
    LabError where traces have no keys, which every policy but `uniform` goes by.
    """
    if policy == "uniform":
        return shuffled(len(traces), f"{seed}/{cycle}")
    if any(trace.payload is None for trace in traces):
        raise LabError(f"policy={policy} goes by the keys of traces, which this store has none of; use policy=uniform")
    index = {trace.id: number for number, trace in enumerate(traces)}
    settings = ReplaySettings(policy=policy, rate=1.0)  # type: ignore[arg-type]
    queue, first = queue_of(arrivals_of(traces), max(1, len(traces))), PASSES * cycle
    schedule = {trace: Due(first + number % PASSES, 1) for number, trace in enumerate(draw(queue, settings, first, len(traces), seed))}
    passes = []
    for number in range(first, first + PASSES):
        drawn = draw(queue, settings, number, len(traces), seed, schedule)
        schedule = recalled(schedule, number, drawn, ())
        passes.append([index[trace] for trace in drawn])
    return passes


def probe(cell: Any, traces: Mapping[str, Sequence[Trace]], stage: str, update_rule: UpdateRule | None = None) -> Iterator[dict[str, Any]]:
    """Rows of every probe with the model as it is now; the unchanged model answers what the update rule does not cover."""
    parameters, lm, worlds = cell.parameters, cell.language_model, cell.worlds()
    passages = {world.id: passages_of(world) for world in worlds}
    for name, preset_name in PROBES.items():
        if name == "text":
            rows = plain_text(lm, parameters.dry_run, update_rule)
        elif name == "in_context":
            rows = reading_suite(lm, *EPISODES, parameters.in_context, parameters.seed, update_rule)
        elif name == "other_suites":
            asking = (reading_suite(lm, suite, "default", parameters.other_suites, parameters.seed, update_rule) for suite in OTHER_SUITES)
            rows = chain.from_iterable(asking)
        else:
            preset = load_preset(preset_name) if preset_name else cell.resolved.preset
            rows = asked(lm, cell.suite, worlds, preset, traces if name == "memory" else passages, update_rule)
        yield from ({"probe": name, "stage": stage} | row for row in rows)


def asked(
    lm: LanguageModel,
    suite: Suite,
    worlds: Sequence[World],
    preset: Preset,
    traces: Mapping[str, Sequence[Trace]],
    update_rule: UpdateRule | None = None,
) -> list[dict[str, Any]]:
    """A row for every question of the worlds, asked with what a preset brings of the traces."""
    items = [item for world in worlds for item in world.items]

    def answers(indexes: Sequence[int]) -> list[dict[str, Any]]:
        chosen = {items[index].id for index in indexes}
        parts = (replace(world, items=tuple(item for item in world.items if item.id in chosen)) for world in worlds)
        answered = ask(suite, [world for world in parts if world.items], preset.method(lm, preset.settings), "delayed", traces, BATCH)
        return [row_of(suite, answer) for answer in answered]

    return update_rule.apart([item.question for item in items], answers) if update_rule else answers(range(len(items)))


def reading_suite(
    lm: LanguageModel, suite: str, profile: str, count: int, seed: int, update_rule: UpdateRule | None = None
) -> list[dict[str, Any]]:
    """Rows of so many questions of a suite about worlds that no store was taught, whose facts stand in the prompt; none for 0."""
    if not count:
        return []
    worlds = list(cut(drawn_worlds(suite, profile, count, READ_SEED + seed, "test", settings_for(suite, profile)), count))
    traces = {world.id: passages_of(world) for world in worlds}
    rows = asked(lm, get_suite(suite), worlds, load_preset(PROBES["in_context"]), traces, update_rule)
    return [row | {"question_id": f"{suite}.{row['question_id']}", "world": f"{suite}.{row['world']}"} for row in rows]


def row_of(suite: Suite, answered: AnsweredItem) -> dict[str, Any]:
    """The columns of an answer."""
    item, given = answered.item, answered.answer
    scored = score_item(suite, answered.world, item, given.text)
    return {
        "question_id": item.id,
        **{column: getattr(item, column) for column in ("world", "kind", "rung", "question")},
        **{column: getattr(given, column) for column in ("prompt_tokens", "generated_tokens", "latency_ms")},
        "answer": " | ".join(item.answers),
        "pred": given.text,
        "read": json.dumps(answered.read, ensure_ascii=False),
        **{column: scored[column] for column in ("score", "f1", "abstained")},
        "nats": math.nan,
    }


def plain_text(lm: LanguageModel, dry_run: bool, update_rule: UpdateRule | None = None) -> Iterator[dict[str, Any]]:
    """The loss on paragraphs of Python's manual, which every machine has; of a dry run the first of them."""
    texts = sorted(language.manual(), key=len, reverse=True)[: DRY_PARAGRAPHS if dry_run else PARAGRAPHS]

    def losses(indexes: Sequence[int]) -> list[float]:
        return [text_loss(lm, [texts[index]], min(language.WINDOW, lm.spec.context_limit)).per_token for index in indexes]

    nats = update_rule.apart(texts, losses) if update_rule else losses(range(len(texts)))
    empty = dict.fromkeys(("score", "f1", "abstained", "prompt_tokens", "generated_tokens", "latency_ms"), math.nan)
    words = dict.fromkeys(("kind", "rung", "question", "answer", "pred", "read"), "")
    for number, loss in enumerate(nats):
        yield {"question_id": f"text.{number}", "world": f"text-{number}", **words, **empty, "nats": loss}


def keep(update_rule: UpdateRule, cell: Any, recipe: SleepRecipe, slept: Mapping[str, Any]) -> Path:
    """Write what was learnt, and from what, into the record."""
    folder = cell.record / "consolidated"
    lineage = {
        "store": sha256(cell.store),
        "model": {"name": cell.parameters.model, "weights": checksums.weights(cell.parameters.model)},
        "recipe": recipe.model_dump(),
        "recipe_sha256": checksums.digest(recipe.model_dump()),
        "slept": dict(slept),
    }
    with new_folder(folder) as new:
        update_rule.save(new)
        write_json(new / "lineage.json", lineage)
    return folder


def examples(cell: Any, traces: int) -> pd.DataFrame:
    """A few traces of the store, with two of the questions that are made of each."""
    memory: Any = cell.resolved.preset.method(cell.language_model, cell.resolved.preset.settings)
    all_traces = [trace for of_world in read_store(memory, cell.store, cell.worlds()).values() for trace in of_world]
    made = [(trace.text, rehearsal) for trace in all_traces[:traces] for rehearsal in rehearse(Random(trace.text), trace, 2)]
    return pd.DataFrame([{"trace": text, "question": rehearsal.question, "answer": rehearsal.answer} for text, rehearsal in made])
