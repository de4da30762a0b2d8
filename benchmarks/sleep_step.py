"""A step of sleep beside peft with transformers.Trainer, on the same questions, low-rank updates and processor; the last line is the ratio.

python benchmarks/sleep_step.py [MODEL] [STEPS]

Both sides learn the answers to the same 64 questions a step, by updates of the same rank in the same layers, with AdamW. Trainer does so as
it usually does: a question a row, rows padded to the longest of their batch; once in float32, as it runs by itself, and once in bfloat16
("bf16"), as ours does. Ours packs many questions behind one beginning. What ours learns besides, so that nothing is lost, Trainer has not:
"whole" is with it, and the ratio is without. Times are seconds of CPU (in brackets by the clock), so that other jobs do not count.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from transformers import DataCollatorForSeq2Seq, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.store.trace import Trace
from hippo_core.suites.draw import worlds
from hippo_core.training.consolidation.rehearsal import Rehearsed
from hippo_core.training.consolidation.sleep import Sleep, SleepRecipe, first_block, shuffled
from hippo_core.training.consolidation.update_rules import make_update_rule
from hippo_core.training.lessons import Branch, Lesson
from hippo_core.training.packed_examples import IGNORE, LessonEncoder

FACTS, FIRST = 50, 2  # the first steps of each side are slow
BY_ITSELF = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]  # before the lab loads a model


@dataclass(frozen=True)
class Measured:
    """What a side's steps took after the first ones: seconds of CPU and by the clock, and the loss of the very first."""

    name: str
    cpu: float
    clock: float
    loss: float

    def __str__(self) -> str:
        return f"{self.name:26} {self.cpu:7.3f} s of CPU a step ({self.clock:.3f} by the clock), first loss {self.loss:.3f}"


def traces_of(count: int) -> list[Trace]:
    """So many facts as traces."""
    drawn = [fact for world in worlds("consolidation", "default", count, 1337, "val") for fact in world.facts][:count]
    return [Trace("w", fact.id, fact.text, id=number) for number, fact in enumerate(drawn, 1)]


def measured(name: str, marks: Sequence[tuple[float, float]], loss: float) -> Measured:
    """The medians of the times between marks (seconds of CPU, clock)."""
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in zip(marks[FIRST:], marks[FIRST + 1 :], strict=False)]
    return Measured(name, median(cpu for cpu, _ in steps), median(clock for _, clock in steps), loss)


def now() -> tuple[float, float]:
    """Seconds of CPU and by the clock."""
    return time.process_time(), time.perf_counter()


def ours(lm: LanguageModel, recipe: SleepRecipe, name: str, see: Callable[[Sleep], None] = lambda _: None) -> Measured:
    """Our steps, with the drawing and packing of their questions; `see` is shown the sleep before."""
    update_rule, traces = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block), traces_of(FACTS)
    sleep = Sleep(recipe, lm, update_rule, traces, shuffled(len(traces), "bench"))
    see(sleep)
    marks, losses = [now()], []
    for step in range(recipe.steps):
        losses.append(sleep.learn(step)["answers"])
        marks.append(now())
    update_rule.detach()
    return measured(name, marks, losses[0])


def rows_of(lm: LanguageModel, questions: Sequence[Rehearsed]) -> list[dict[str, list[int]]]:
    """A row a question, as Trainer takes them; the loss is on the answer alone."""
    encoder = LessonEncoder(lm.tokenizer, lm.template)
    rows = [encoder.row(Lesson((), (Branch(question.question, question.answer, ()),))) for question in questions]
    return [{"input_ids": row.ids, "attention_mask": [1] * len(row.ids), "labels": [IGNORE, *row.labels[:-1]]} for row in rows]


class Marks(TrainerCallback):
    """When each step of a Trainer ended."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The first step begins."""
        self.marks.append(now())

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """A step has ended."""
        self.marks.append(now())


class InOrder(Trainer):
    """Rows come in the order in which ours meets them."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return torch.utils.data.SequentialSampler(self.train_dataset)  # type: ignore[arg-type]


def theirs(lm: LanguageModel, recipe: SleepRecipe, rows: list[dict[str, list[int]]], name: str, bf16: bool) -> Measured:
    """Trainer on the same updates, which are attached as ours are."""
    rule, marks = make_update_rule(recipe.way, lm, recipe.rank, recipe.first_block), Marks()
    quick, products = torch.backends.mkldnn.matmul.fp32_precision, torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    products.fp32_precision = BY_ITSELF
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=recipe.questions, max_steps=recipe.steps, learning_rate=rule.rate, bf16=bf16, use_cpu=True,
            weight_decay=0.0, report_to="none", save_strategy="no", logging_steps=1, disable_tqdm=True,
        )  # fmt: skip
        collator = DataCollatorForSeq2Seq(lm.tokenizer, padding=True)
        trainer = InOrder(rule.adapted, arguments, collator, train_dataset=rows, callbacks=[marks])  # type: ignore[attr-defined,arg-type]
        trainer.pop_callback(
            type(next(callback for callback in trainer.callback_handler.callbacks if "Printer" in type(callback).__name__))
        )
        trainer.train()
    products.fp32_precision = quick
    rule.adapted.eval()  # type: ignore[attr-defined]
    rule.detach()
    return measured(name, marks.marks, trainer.state.log_history[0]["loss"])


def main(name: str = "hippo-tiny", steps: int = 12) -> None:
    """Time all sides and compare."""
    logging.set_verbosity_error()
    lm = load(load_spec(name).model_copy(update={"dtype": "float32"}), "cpu", threads=torch.get_num_threads())
    recipe = SleepRecipe(steps=steps, first_block=first_block(lm))
    rows: list[dict[str, list[int]]] = []
    bare = recipe.model_copy(update={"lessons": 0, "texts": 0})
    print(
        f"{name}, {FACTS} facts, {recipe.questions} questions a step, rank {recipe.rank}; {torch.get_num_threads()} threads, {steps} steps"
    )
    conditions = [
        ours(lm, bare, "ours", lambda sleep: rows.extend(rows_of(lm, [item for step in range(steps) for item in sleep.drawn(step)]))),
        theirs(lm, recipe, rows, "peft + Trainer", bf16=False),
        theirs(lm, recipe, rows, "peft + Trainer, bf16", bf16=True),
        ours(lm, recipe, "ours, whole"),
    ]
    print(*conditions, sep="\n", flush=True)
    own, plain, half, full = (item.cpu for item in conditions)
    print(f"whole step / Trainer's time ratio {full / plain:.2f} ({full / half:.2f} bf16)")
    print(f"ours / peft + Trainer time ratio {own / plain:.2f} ({own / half:.2f} bf16)")


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))  # type: ignore[arg-type]
