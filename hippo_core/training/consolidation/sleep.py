"""Sleep: traces of a store are rehearsed into the model, between what it must not lose. One trainee of the training loop."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from pydantic import BaseModel, ConfigDict

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import retention
from hippo_core.training.consolidation.rehearsal import Rehearsed, rehearse, restatements
from hippo_core.training.consolidation.update_rules import UpdateRule
from hippo_core.training.lessons import Branch, Lesson
from hippo_core.training.packed_examples import IGNORE, LessonEncoder, PackedBatch
from hippo_core.training.train import Diverged, Log, answer_loss, set_rates

PASSES = 8  # orders that are drawn of the traces; then they come round again
KEY_BLOCKS = 3  # a key is made in the first third of the blocks, which stay as they are


def first_block(lm: LanguageModel) -> int:
    """The first block that a sleep may change: those before it make the keys by which a store's traces are found."""
    return lm.config.num_hidden_layers // KEY_BLOCKS


def shuffled(traces: int, seed: str) -> list[list[int]]:
    """For each pass a random order of so many traces."""
    return [Random(f"{seed}/{number}").sample(range(traces), traces) for number in range(PASSES)]


class SleepRecipe(BaseModel):
    """Everything that a sleep depends on, but for the model and the store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    way: str = "lora"
    rank: int = 16
    first_block: int = 0
    rate: float | None = None  # of AdamW; None: the rule's own for a model of this size
    steps: int = 200
    wordings: int = 40  # questions that are made of a trace
    questions: int = 64  # a step
    rehearse_earlier: float = 0.0  # share of a step's questions that are about traces of earlier sleeps
    restatements: float = 0.0  # share of the questions about new traces in whose place a trace is restated as a whole
    a_row: int = 16  # questions that are packed into one sequence
    lessons: int = 2  # a step, which are distilled from the unchanged model
    texts: int = 4  # a step, of the model's own and of plain English
    distilled: float = 0.0  # share of the loss that is the unchanged model's answer with the trace in its prompt, in place of its own
    kept_weight: float = 1.0
    warmup: int = 10
    seed: int = 1337
    threads: int = 1


@dataclass(frozen=True)
class ComputeUsed:
    """What a sleep spends on a trace: its rehearsals, and the tokens of the trained answers."""

    rehearsals: int = 0
    tokens: int = 0


class Sleep:
    """Training of an update rule on what traces say.

    Args:
        orders: for each pass over the traces the order in which they are rehearsed, by their indices in `traces`; passes go round.
        earlier: traces of earlier sleeps, about which a share of each step's questions is (`rehearse_earlier`).
        prepare: whether the rule prepares on the traces; False where it holds what an earlier sleep on them left.

    Raises:
        LabError: nothing can be asked about any of the traces.
    """

    def __init__(
        self,
        recipe: SleepRecipe,
        lm: LanguageModel,
        update_rule: UpdateRule,
        traces: Sequence[Trace],
        orders: Sequence[Sequence[int]],
        earlier: Sequence[Trace] = (),
        prepare: bool = True,
    ):
        self.recipe, self.lm, self.update_rule = recipe, lm, update_rule
        self.questions, known = self.asked(traces), self.asked(earlier)
        self.restated = [restatements(trace) for trace in traces]
        passes = shuffled(len(earlier), f"{recipe.seed}/earlier")
        self.earlier = [known[index] for order in passes for index in order if known[index]]
        self.order = [index for order in orders for index in order if self.questions[index]]
        if not self.order:
            raise LabError(f"none of {len(traces)} traces says anything that could be asked for; teach the store first")
        self.encoder = LessonEncoder(lm.tokenizer, lm.template, device=lm.device)
        with update_rule.unchanged():
            self.texts = torch.cat([retention.own_text(lm, recipe.seed), retention.plain_text(lm, recipe.seed)])
        self.text_states = retention.last_states(update_rule, self.texts) if recipe.texts else None
        self.text_of = {trace.id: trace.text for trace in (*earlier, *traces)}
        if prepare:
            asked = [[question.question for question in questions] for questions in (*known, *self.questions)]
            update_rule.prepare([trace.text for trace in (*earlier, *traces)], asked, len(earlier))
        for weight in update_rule.weights().values():
            weight.requires_grad_(True)
        self.optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(self.weights().values(), lr=self.rate, weight_decay=0.0)]
        self.samples = self.tokens = 0
        self.rehearsed: set[int] = set()
        self.loss = math.nan

    @property
    def rate(self) -> float:
        """The full learning rate."""
        return self.update_rule.full_rate() if self.recipe.rate is None else self.recipe.rate

    def weights(self) -> dict[str, torch.Tensor]:
        return self.update_rule.weights()

    def asked(self, traces: Sequence[Trace]) -> list[list[Rehearsed]]:
        """The questions of each trace: the same in every sleep of a seed."""
        return [rehearse(Random(f"sleep/{self.recipe.seed}/{trace.text}"), trace, self.recipe.wordings) for trace in traces]

    def drawn(self, step: int) -> list[Rehearsed]:
        """The questions of a step: a function of seed and step alone."""
        random = Random(f"sleep/{self.recipe.seed}/{step}")
        old = round(self.recipe.rehearse_earlier * self.recipe.questions) if self.earlier else 0
        new = self.recipe.questions - old
        indices = [self.order[(step * new + number) % len(self.order)] for number in range(new)]
        asked = [self.questions[index] for index in indices]
        asked += [self.earlier[(step * old + number) % len(self.earlier)] for number in range(old)]
        drawn = [random.choice(questions) for questions in asked]
        restated = Random(f"restatements/{self.recipe.seed}/{step}")
        for number in restated.sample(range(new), round(self.recipe.restatements * new)):
            drawn[number] = restated.choice(self.restated[indices[number]])
        return drawn

    def compute_used(self) -> dict[int, ComputeUsed]:
        """What all steps spend on each trace, by id; the recipe decides it, so that a resumed sleep knows it too."""
        drawn = Counter(question for step in range(self.recipe.steps) for question in self.drawn(step))
        used = dict.fromkeys(self.text_of, ComputeUsed())
        for question, times in drawn.items():
            tokens = len(self.encoder.ids(question.answer)) + 1  # and its end
            used[question.trace] = ComputeUsed(used[question.trace].rehearsals + times, used[question.trace].tokens + times * tokens)
        return used

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        left = 1 - max(0, step - recipe.steps / 3) / (recipe.steps * 2 / 3)
        set_rates(self.optimizers, (self.rate,), min(1.0, (step + 1) / recipe.warmup) * left)
        questions = self.drawn(step)
        if recipe.distilled:
            batch, informed = self.informed(questions)
            loss = recipe.distilled * retention.context_divergence(self.update_rule, informed, batch)
            if recipe.distilled < 1:
                loss = loss + (1 - recipe.distilled) * answer_loss(self.update_rule.model, batch)[0]
            answers = loss.detach()
        else:
            [batch] = self.encoder.batches(self.rows(questions), [], 1)
            loss, answers = answer_loss(self.update_rule.model, batch)
        random = Random(f"kept/{recipe.seed}/{step}")
        lost, of_text = loss.new_zeros(()), loss.new_zeros(())
        if recipe.lessons:
            parts = self.encoder.batches(retention.lessons(random, recipe.lessons), [], 2)
            lost = torch.stack([retention.context_divergence(self.update_rule, part, part) for part in parts]).mean()
        if self.text_states is not None:
            chosen = random.sample(range(len(self.texts)), recipe.texts)
            of_text = retention.text_divergence(self.update_rule, self.texts[chosen], self.text_states[chosen])
        total = loss + recipe.kept_weight * (lost + of_text)
        if not total.isfinite():
            raise Diverged(f"the loss of step {step} is {total.item()}: lower the rate ({self.rate})")
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.weights().values(), 1.0)
        if not norm.isfinite():
            raise Diverged(f"the gradient of step {step} is {norm.item()}: lower the rate ({self.rate})")
        self.optimizers[0].step()
        self.optimizers[0].zero_grad(set_to_none=True)
        self.samples, self.tokens = self.samples + len(questions), self.tokens + int((batch.labels != IGNORE).sum())
        self.rehearsed |= {question.trace for question in questions}
        self.loss = float(answers)
        return {"answers": float(answers), "reading": float(lost.detach()), "text": float(of_text.detach())}

    def rows(self, questions: Sequence[Rehearsed], facts: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> list[Lesson]:
        """Lessons of so many questions each as go into a sequence, behind the same facts."""
        branches = [Branch(question.question, question.answer, ()) for question in questions]
        size = self.recipe.a_row
        return [Lesson(facts, tuple(branches[first : first + size])) for first in range(0, len(branches), size)]

    def informed(self, questions: Sequence[Rehearsed]) -> tuple[PackedBatch, PackedBatch]:
        """The questions without their trace, and with it in the prompt; one trace a sequence."""
        of_trace: dict[int, list[Rehearsed]] = {}
        for question in questions:
            of_trace.setdefault(question.trace, []).append(question)
        bare = [row for asked in of_trace.values() for row in self.rows(asked)]
        with_facts = [row for trace, asked in of_trace.items() for row in self.rows(asked, ((self.text_of[trace], ()),))]
        return self.encoder.batch(bare), self.encoder.batch(with_facts)

    def examine(self) -> Log:
        return {}
