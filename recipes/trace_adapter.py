"""Fitting the trace adapter: the base model frozen, loss on the answers alone, traces of train worlds as a memory would recall them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import DynamicCache

from hippo_core.delivery.trace_adapter import AdapterSettings, TraceAdapter, Traces, lay_traces
from hippo_core.models.kv import KV, encode, tokens_of
from hippo_core.models.language_model import LanguageModel, pad_left
from hippo_core.models.matmul import half_products
from hippo_core.suites.types import Split
from hippo_core.training import tasks
from hippo_core.training.lessons import UNKNOWN, Branch
from hippo_core.training.packed_examples import IGNORE, LessonEncoder
from hippo_core.training.train import Log, descend, set_rates, share_of_rate

EXAM, AT_ONCE = 96, 32  # cues
SHARES: Mapping[tasks.Drill, float] = {
    tasks.slots: 0.45,
    tasks.journeys: 0.15,
    tasks.other_words: 0.15,
    tasks.corrected_once: 0.08,
    tasks.chains: 0.12,
    tasks.plainly_unsaid: 0.05,
}
N_FACTS = 10  # of a lesson, from which distractors are drawn


class AdapterRecipe(BaseModel):
    """Everything that a trace adapter depends on, but for the base."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    shape: AdapterSettings
    seed: int = 1337
    steps: int = 500
    lessons: int = 4  # a batch; each has up to eight cues
    most: int = 5  # traces a cue
    rate: float = 3e-3  # AdamW
    gate_rate: float = 2e-2
    gate_start: float = 0.5  # trained from here: at 0 the updates would have no gradient
    warmup: int = 20
    cooldown: float = 0.7
    autocast: bool = True  # products in bfloat16: twice as fast where matrices are large
    threads: int = 1


@dataclass(frozen=True)
class TrainingQuery:
    """A question, its answer, and the texts of the traces recalled for it: the gold ones and distractors, or distractors alone where
    nothing says the answer."""

    question: str
    answer: str
    traces: tuple[str, ...]
    skill: str


def draw_cues(random: Random, most: int, split: Split = "train") -> list[TrainingQuery]:
    """The cues of one lesson, each with up to `most` traces (more where the answer needs more)."""
    drill = random.choices(list(SHARES), list(SHARES.values()))[0]
    while True:
        lesson = drill(random, N_FACTS, split)
        branches = [branch for branch in lesson.branches if branch.question and (branch.gold or branch.answer == UNKNOWN)]
        if branches:
            facts = [text for text, _ in lesson.facts]
            return [_cue(random, branch, facts, random.randint(1, most)) for branch in branches]


def _cue(random: Random, branch: Branch, facts: Sequence[str], n_traces: int) -> TrainingQuery:
    others = [index for index in range(len(facts)) if index not in branch.gold]
    extra = random.sample(others, min(len(others), max(0, n_traces - len(branch.gold))))
    return TrainingQuery(branch.question, branch.answer, tuple(facts[index] for index in sorted({*branch.gold, *extra})), branch.skill)


class CueBatch(NamedTuple):
    """Cues as one batch: token ids, mask over prefix and ids, positions, labels [B, T] and traces."""

    ids: Tensor
    mask: Tensor
    positions: Tensor
    labels: Tensor
    traces: Traces


class AdapterTrainee:
    """A trace adapter on a loaded model as a trainee."""

    def __init__(self, recipe: AdapterRecipe, lm: LanguageModel) -> None:
        self.recipe, self.lm = recipe, lm
        lm.model.requires_grad_(False)
        self.adapter = TraceAdapter(lm, recipe.shape, recipe.seed)
        self.encoder = LessonEncoder(lm.tokenizer, lm.template)
        self.prefix: KV = encode(lm, [self.encoder.head])[0].clone()
        gates = [weight for name, weight in self.weights().items() if name.endswith("gate")]
        updates = [weight for name, weight in self.weights().items() if not name.endswith("gate")]
        for gate in gates:
            torch.nn.init.constant_(gate, recipe.gate_start)
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(chosen, lr=full, betas=(0.9, 0.98), weight_decay=0.0)
            for chosen, full in ((gates, recipe.gate_rate), (updates, recipe.rate))
        ]

    def weights(self) -> dict[str, Tensor]:
        return dict(self.adapter.named_parameters())

    def cues(self, step: int) -> list[TrainingQuery]:
        """The cues of a step: a function of seed and step alone."""
        random = Random(f"adapter/{self.recipe.seed}/{step}")
        return [cue for _ in range(self.recipe.lessons) for cue in draw_cues(random, self.recipe.most)]

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        set_rates(self.optimizers, (recipe.gate_rate, recipe.rate), share_of_rate(step, recipe.steps, recipe.warmup, recipe.cooldown))
        loss, marks = self._loss(self.cues(step))
        loss.backward()
        descend(self.weights().values(), self.optimizers)
        return {"answers": float(loss.detach()), "right": sum(marks) / len(marks)}

    @torch.no_grad()
    def examine(self) -> Log:
        """Share of validation cues, of a fixed set, that greedy decoding would answer right, by skill."""
        random, cues = Random("exam/adapter"), []
        while len(cues) < EXAM:
            cues += draw_cues(random, self.recipe.most, "val")
        marks: dict[str, list[bool]] = {}
        for first in range(0, len(cues), AT_ONCE):
            part = cues[first : first + AT_ONCE]
            for cue, right in zip(part, self._loss(part)[1], strict=True):
                marks.setdefault(f"val {cue.skill}", []).append(right)
        return {skill: sum(skill_marks) / len(skill_marks) for skill, skill_marks in marks.items()}

    def _loss(self, cues: Sequence[TrainingQuery]) -> tuple[Tensor, list[bool]]:
        """Mean loss of the answers' tokens, and of each cue whether greedy decoding would give its answer."""
        with half_products(self.lm.device, self.recipe.autocast):
            batch = self.ask(cues)
            chosen = batch.labels != IGNORE
            logits = self._logits(batch, chosen).float()
        right = torch.ones_like(chosen)
        right[chosen] = logits.detach().argmax(-1) == batch.labels[chosen]
        return cross_entropy(logits, batch.labels[chosen]), right.all(1).tolist()

    def _logits(self, batch: CueBatch, chosen: Tensor) -> Tensor:
        """Of the tokens `chosen` [B, T]; the beginning lies in the cache."""
        cache, model = DynamicCache(), self.lm.model
        for number, layer in enumerate(self.prefix):
            keys, values = layer[:, None].expand(-1, len(batch.ids), -1, -1, -1)
            cache.update(keys, values, number)
        with self.adapter.attached(self.lm, batch.traces):
            states = model.get_decoder()(
                input_ids=batch.ids, attention_mask=batch.mask, position_ids=batch.positions, past_key_values=cache, use_cache=True
            )[0]
        return model.get_output_embeddings()(states[chosen])

    def ask(self, cues: Sequence[TrainingQuery]) -> CueBatch:
        """Cues made ready: their traces run through the frozen model, question and answer as token ids."""
        encoder = self.encoder
        rows, labels = [], []
        for cue in cues:
            lead, answer = [*encoder.ids(cue.question), *encoder.lead], encoder.ids(cue.answer)
            rows.append([*lead, *answer])
            labels.append([*[IGNORE] * (len(lead) - 1), *answer, encoder.stop])
        ids, mask, positions = pad_left(self.lm, rows)
        begin = tokens_of(self.prefix)
        targets = torch.tensor([[IGNORE] * (ids.shape[1] - len(row)) + row for row in labels])
        full_mask = torch.cat([mask.new_ones(len(rows), begin), mask], dim=1)
        return CueBatch(ids, full_mask, positions + begin, targets, self._traces(cues))

    def _traces(self, cues: Sequence[TrainingQuery]) -> Traces:
        encoder = self.encoder
        texts = sorted({text for cue in cues for text in cue.traces}, key=len)
        rows = [[*encoder.ids(text), encoder.newline] for text in texts]
        blocks = list(self.recipe.shape.blocks)
        kvs: list[KV] = []
        for first in range(0, len(rows), 32):
            kvs += [kv[blocks].clone() for kv in encode(self.lm, rows[first : first + 32], self.prefix)]
        known = dict(zip(texts, kvs, strict=True))
        return lay_traces([[known[text] for text in cue.traces] for cue in cues], self.prefix[blocks])
