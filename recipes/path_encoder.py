"""Fitting the reader of statements (methods/relational/encoder.py) on worlds of the bank of relations.

A step is one world: all of its statements are read once, and each of its questions chooses among all paths that lead from its name over
statements that share a name. What is learnt beside: how many hops a question asks and whether of now or before, how each statement is told,
what each name is in it, and what a later statement is to an earlier one of the same name.
"""

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy

from hippo_core.errors import unknown
from hippo_core.files import require_checkout, root
from hippo_core.methods.relational.encoder import ROLES, Cutter, EncodedStatement, Marker, PathEncoder, StatementEncoder, Tagger, cuts
from hippo_core.methods.relational.statement_reader import FIT
from hippo_core.models import minilm
from hippo_core.models.adapted_minilm import save
from hippo_core.suites.relations.bank import FURTHER_NAMES, FURTHER_PARTS, SPLIT_PARTS, digest
from hippo_core.training.train import Diverged, Log, curve_of, descend, set_rates, share_of_rate, train
from recipes.memory_parts import provenance
from recipes.path_lessons import ASSERTED, Contrast, CutLessons, Lesson, Lessons, TagLessons, contrast, role_of
from recipes.weights import CHECKPOINT_DIR

CONTRAST = 10.0  # how much a cosine counts beside others
RELATIONS = 40  # that are told apart at a step, besides those of a world
FALLEN = -4.0  # how much less likely a step is from or to who tells it, or what is no longer so
NOT_STANDING = {ROLES.index("teller"), ROLES.index("old")}
Model = TypeVar("Model", bound=StatementEncoder)


def loss_of(model: PathEncoder, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
    """The loss of a lesson, and numbers for the log."""
    encoded = model.read(lesson.statements)
    likes_of, first, sizes = likes(model, lesson, encoded)
    losses, hop_losses, right = [], [], 0
    labels = labels_of(lesson)
    for row, question in enumerate(lesson.questions):
        relations = question.item.cue["path"].split()
        hop_losses += [_hop_loss(like, labels, relation) for like, relation in zip(likes_of[row], relations, strict=False)]
        scores = path_scores(likes_of[row], question.paths, first, sizes)
        good = torch.tensor(question.right)
        losses.append(torch.logsumexp(scores, 0) - torch.logsumexp(scores[good], 0))
        right += bool(good[scores.argmax()])
    path = torch.stack(losses).mean()
    hop = torch.stack(hop_losses).mean()
    same = _same_relation(torch.cat([statement.leads().flatten(0, 1) for statement in encoded]), labels, first)
    total = path + hop + 0.5 * same
    numbers = {"path": path, "hop": hop, "same": same}
    return total, {name: float(value.detach()) for name, value in numbers.items()} | {"right": right / len(lesson.questions)}


def _same_relation(leads: Tensor, labels: Sequence[str], first: Sequence[int]) -> Tensor:
    """That pairs of names are nearer to those of other statements of their relation than to any others (Khosla et al. 2020, arXiv
    2004.11362, equation 2, with the sum inside); leads [P, W]."""
    labelled = [row for row, label in enumerate(labels) if label and not label.startswith("-")]
    of, kinds = np.searchsorted(first, labelled, side="right"), np.array([labels[row] for row in labelled])
    elsewhere = torch.from_numpy(of[:, None] != of[None])
    positive = torch.from_numpy(kinds[:, None] == kinds[None]) & elsewhere
    likes = (CONTRAST * leads[labelled] @ leads[labelled].T).masked_fill(~elsewhere, -torch.inf)
    rows = positive.any(1)
    return (torch.logsumexp(likes, 1) - torch.logsumexp(likes.masked_fill(~positive, -torch.inf), 1))[rows].mean()


def contrast_loss(model: PathEncoder, of: Contrast) -> Tensor:
    """That each hop leads over its own statement, and each statement is led over by its own hop, among those of all relations (both ways of
    van den Oord et al. 2018, arXiv 1807.03748, equation 4)."""
    likes, own, direction = contrasted(model, of)
    forth = cross_entropy(likes.flatten(1), 2 * own + direction)
    back = cross_entropy(likes[own[:, None], own[None], direction[:, None]].T, own)
    return forth + 0.5 * back


def contrasted(model: PathEncoder, of: Contrast) -> tuple[Tensor, Tensor, Tensor]:
    """How like each hop is to each statement, read from its first name to its second and back [H, S, 2]; and of each hop the number of its
    own statement, and 1 where it leads back over it."""
    encoded, (vectors, words) = model.read(of.statements), model.ask(of.hops)
    similarity = model.similarity(words, [statement.words for statement in encoded])
    leads = [statement.leads() for statement in encoded]
    directions = torch.stack([torch.stack([lead[0, 1], lead[1, 0]]) for lead in leads])
    likes = torch.einsum("hw,sdw->hsd", vectors, directions) + similarity[..., None]
    return likes, torch.arange(len(encoded)), torch.tensor([int(start > end) for start, end in of.right])


def _labelled(logits: Iterable[Tensor], labels: Sequence[Sequence[int]]) -> Tensor:
    """The cross-entropy of the labels of pieces, text by text."""
    of = [torch.tensor(own) for own in labels]
    return cross_entropy(torch.cat([text_logits[: len(own)] for text_logits, own in zip(logits, of, strict=True)]), torch.cat(of))


def likes(model: PathEncoder, lesson: Lesson, encoded: Sequence[EncodedStatement]) -> tuple[Sequence[Tensor], list[int], list[int]]:
    """Of each question how like its hops are to every ordered pair of names of every statement [H, P]; where the pairs of each statement
    begin, and how many names it has."""
    sizes, named_facts = [len(statement.numbers) for statement in encoded], zip(lesson.facts, lesson.names, strict=True)
    table = torch.cat([statement.leads().flatten(0, 1) for statement in encoded])
    standing = torch.tensor([FALLEN * (role_of(name, fact) in NOT_STANDING) for fact, names in named_facts for name in names])
    standing = torch.cat([(of[:, None] + of[None]).flatten() for of in standing.split(sizes)])
    vectors, words = model.ask([hop for question in lesson.questions for hop in question.hops])
    similarity = model.similarity(words, [statement.words for statement in encoded])
    of = torch.tensor([number for number, size in enumerate(sizes) for _ in range(size**2)])
    logits = (vectors @ table.T + similarity[:, of] + standing).split([len(question.hops) for question in lesson.questions])
    return logits, [0, *accumulate(size**2 for size in sizes)], sizes


def labels_of(lesson: Lesson) -> list[str]:
    """What each of these pairs says: a relation, "^" before it from tail to head, "-" before it where it is not asserted; else ""."""
    labels = []
    for fact, names in zip(lesson.facts, lesson.names, strict=True):
        slots = fact.slots
        sign = "" if slots["told"] in ASSERTED else "-"
        of = {(slots["head"], slots["tail"]): sign, (slots["head"], slots.get("old", "")): "-"}
        for first in names:
            for second in names:
                back = "^" if (second, first) in of else ""
                mark = of.get((second, first) if back else (first, second))
                labels.append("" if mark is None else f"{mark}{back}{slots['relation']}")
    return labels


def _hop_loss(likes: Tensor, labels: Sequence[str], relation: str) -> Tensor:
    """Of one hop: all pairs of the world that say its relation against all that say another; likes [P]."""
    right = torch.tensor([label == relation for label in labels])
    left = right | torch.tensor([label.lstrip("-") != relation for label in labels])
    return torch.logsumexp(likes[left], 0) - torch.logsumexp(likes[right], 0)


def path_scores(likes: Tensor, paths: Sequence[Sequence[tuple[int, int, int]]], first: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Of each path how like its steps are what is asked hop by hop, [P]; `likes`: of each hop to every ordered pair of names [H, pairs]."""
    steps = torch.tensor([[first[number] + start * sizes[number] + end for number, start, end in path] for path in paths])
    return likes.gather(1, steps.T).sum(0)


class PathRecipe(BaseModel):
    """Everything that an encoder depends on, but for MiniLM and the bank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    part: Literal["statements", "tags", "cuts", "places"] = "statements"
    seed: int = 1337
    steps: int = 400
    second: int = 0  # of these: a second descent of the rate, from half of it
    rank: int = 16
    rate: float = 2e-4  # AdamW, of the adapter
    head_rate: float = 5e-4
    warmup: int = 40
    cooldown: float = 0.9
    threads: int = 1
    bank: str = ""  # SHA-256 of the bank


RECIPES = {
    "statements": PathRecipe(),
    "tags": PathRecipe(part="tags", steps=850, second=250, rate=4e-4, head_rate=1e-3),
    "cuts": PathRecipe(part="cuts", steps=1200, rate=4e-4, head_rate=1e-3),
}


def fit_part(part: str, say: Callable[[str], None] = print, **changes: Any) -> None:
    """Fit one of the encoders, or go on where a killed run stopped, and write it beside MiniLM's other parts.

    Args:
        changes: fields of the recipe that differ from the shipped one, as the seed.
    """
    if part not in RECIPES:
        raise unknown("part of the reader of statements", part, RECIPES)
    bank = digest(*SPLIT_PARTS, *FURTHER_PARTS, FURTHER_NAMES)
    fit_encoder(RECIPES[part].model_copy(update={"bank": bank, **changes}), TRAINEES[part], f"{FIT} {part}", say)


def fit_encoder(recipe: PathRecipe, trainee_of: Callable[[PathRecipe, Any, Marker], Any], command: str, say: Callable[[str], None]) -> None:
    """Fit the encoder of a recipe, which `command` does, or go on where a killed run stopped."""
    require_checkout("training")
    tokenizer, body = minilm.copied()
    trainee, checkpoint_dir = trainee_of(recipe, body, Marker(tokenizer)), root() / CHECKPOINT_DIR / f"minilm-{recipe.part}"
    train(trainee, checkpoint_dir, say, every=100)
    made = {**provenance(command), "recipe": recipe.model_dump(mode="json"), "curve": curve_of(checkpoint_dir)}
    save(recipe.part, trainee.model, made, command)


class EncoderTrainee(ABC, Generic[Model]):
    """An encoder over MiniLM with an adapter as a trainee."""

    encoder: type[Model]

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe, self.model, self.marker = recipe, self.encoder(adapted(body, recipe.rank)), marker
        of = self.weights()
        parts = [[weight for name, weight in of.items() if name.startswith("body") == body] for body in (True, False)]
        rates = recipe.rate, recipe.head_rate
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(chosen, lr=rate, weight_decay=0.01) for chosen, rate in zip(parts, rates, strict=True)
        ]

    @abstractmethod
    def loss(self, step: int) -> tuple[Tensor, Log]:
        """The loss of a step's lessons, and numbers for the log."""

    @abstractmethod
    def examined(self) -> Mapping[str, Sequence[float]]:
        """What is right on validation relations: each 0 or 1, by name."""

    def weights(self) -> dict[str, Tensor]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        first = recipe.steps - recipe.second
        second = 0.5 * (recipe.steps - step) / max(1, recipe.second)
        share = share_of_rate(step, first, recipe.warmup, recipe.cooldown) if step < first else second
        set_rates(self.optimizers, (recipe.rate, recipe.head_rate), share)
        self.model.train()
        self.model.body.eval()  # drawing what is dropped takes a processor as long as a layer
        loss, numbers = self.loss(step)
        if not loss.isfinite():
            raise Diverged(f"step {step}: the loss is {float(loss)}")
        loss.backward()
        descend(self.weights().values(), self.optimizers)
        return numbers

    @torch.no_grad()
    def examine(self) -> Log:
        self.model.eval()
        return {f"val {name}": sum(values) / len(values) for name, values in sorted(self.examined().items())}


class PathTrainee(EncoderTrainee[PathEncoder]):
    """The reader of statements: a world a step."""

    encoder = PathEncoder

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        super().__init__(recipe, body, marker)
        self.lessons, validation = Lessons(marker, "train", recipe.seed, semantic=True), Lessons(marker, "val", 1)
        self._exam = [validation(index, n_items=10, hops=(1, 2, 3), about=("chain",)) for index in range(24)]

    def loss(self, step: int) -> tuple[Tensor, Log]:
        total, numbers = loss_of(self.model, self.lessons(step))
        of = contrast(Random(f"contrast {self.recipe.seed} {step}"), self.lessons.marker, "train", RELATIONS)
        among = contrast_loss(self.model, of)
        return total + among, numbers | {"contrast": float(among.detach())}

    def examined(self) -> Mapping[str, Sequence[float]]:
        """Whether the best path is right, by hops."""
        marks: dict[str, list[float]] = defaultdict(list)
        for lesson in self._exam:
            for name, values in examined(self.model, lesson).items():
                marks[name] += values
        for number in range(6):
            likes, own, direction = contrasted(self.model, contrast(Random(number), self.lessons.marker, "val", RELATIONS))
            marks["of all relations"] += (likes.flatten(1).argmax(1) == 2 * own + direction).float().tolist()
        return marks


class TagTrainee(EncoderTrainee[Tagger]):
    """The tagger: texts of three worlds a step."""

    encoder = Tagger

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        super().__init__(recipe, body, marker)
        self.lessons, validation = TagLessons(marker, "train", recipe.seed), TagLessons(marker, "val", 1)
        self._exam = [validation(index) for index in range(12)]

    def loss(self, step: int) -> tuple[Tensor, Log]:
        raw = [raw_text for number in range(3) for raw_text in self.lessons(3 * step + number)]
        named, roles, kinds = self.model([raw_text.text for raw_text in raw])
        losses = {
            "name": _labelled(named, [raw_text.named for raw_text in raw]),
            "role": 0.5 * _labelled(roles, [raw_text.roles for raw_text in raw]),
            "kind": 0.5 * cross_entropy(kinds, torch.tensor([raw_text.kind for raw_text in raw])),
        }
        return _summed(losses)

    def examined(self) -> Mapping[str, Sequence[float]]:
        """Whether all names of a text are found, and none else; how it is told, and whether all names are what they are in it."""
        marks: dict[str, list[float]] = defaultdict(list)
        for raw in self._exam:
            for raw_text, named, roles, kind in zip(raw, *self.model([raw_text.text for raw_text in raw]), strict=True):
                marks["names"].append(float(named[: len(raw_text.named)].argmax(-1).tolist() == [*raw_text.named]))
                if raw_text.kind >= 0:
                    marks["kind"].append(float(int(kind.argmax()) == raw_text.kind))
                    pieces = zip(raw_text.roles, roles.argmax(-1).tolist(), strict=False)
                    marks["roles"].append(float(all(right in (-100, got) for right, got in pieces)))
        return marks


class CutTrainee(EncoderTrainee[Cutter]):
    """What cuts questions: those of four worlds a step."""

    encoder = Cutter

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        super().__init__(recipe, body, marker)
        self.lessons, validation = CutLessons(marker, "train", recipe.seed), CutLessons(marker, "val", 1)
        self._exam = [validation(index) for index in range(16)]

    def loss(self, step: int) -> tuple[Tensor, Log]:
        asked = [text for number in range(4) for text in self.lessons(4 * step + number)]
        hops, intents = self.model([text for text, *_ in asked])
        wanted = torch.tensor([before for *_, before in asked])
        return _summed({"hop": _labelled(hops, [tags for _, tags, _ in asked]), "intent": 0.3 * cross_entropy(intents, wanted)})

    def examined(self) -> Mapping[str, Sequence[float]]:
        """Whether a question is cut right, by hops, and what time it is about."""
        marks: dict[str, list[float]] = defaultdict(list)
        for asked in self._exam:
            for (text, right, before), logits, intent in zip(asked, *self.model([text for text, *_ in asked]), strict=True):
                marks[f"{max(right)} hops"].append(float(cuts(logits[: len(text.ids)], text)[0][1] == right))
                marks["intent"].append(float(int(intent.argmax()) == before))
        return marks


def _summed(losses: Mapping[str, Tensor]) -> tuple[Tensor, Log]:
    return torch.stack([*losses.values()]).sum(), {name: float(loss.detach()) for name, loss in losses.items()}


TRAINEES = {"statements": PathTrainee, "tags": TagTrainee, "cuts": CutTrainee}


def adapted(body: Any, rank: int) -> Any:
    """MiniLM with a low-rank adapter that can be trained, and nothing else of it."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules=["query", "key", "value", "dense"])
    return get_peft_model(body, config)


def examined(model: PathEncoder, lesson: Lesson) -> dict[str, list[float]]:
    """What is right of a lesson: each 0 or 1."""
    encoded = model.read(lesson.statements)
    likes_of, first, sizes = likes(model, lesson, encoded)
    marks: dict[str, list[float]] = defaultdict(list)
    for row, question in enumerate(lesson.questions):
        best = int(path_scores(likes_of[row], question.paths, first, sizes).argmax())
        marks[f"{question.item.hops} hops"].append(float(question.right[best]))
    return marks


if __name__ == "__main__":
    arguments = ArgumentParser(description="Fit the encoders that read statements; what is shipped is replaced.")
    arguments.add_argument("parts", nargs="*", default=[*RECIPES])
    arguments.add_argument("--seed", type=int, default=PathRecipe().seed)
    given = arguments.parse_args()
    for name in given.parts:
        fit_part(name, seed=given.seed)
