"""Fitting the reader of statements (methods/relational/encoder.py) on worlds of the bank of relations.

A step is one world: all of its statements are read once, and each of its questions chooses among all paths that lead from its name over
statements that share a name. What is learnt beside: how many hops a question asks and whether of now or before, how each statement is told,
what each name is in it, and what a later statement is to an earlier one of the same name.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, combinations
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy

from hippo_core.files import require_checkout, root
from hippo_core.methods.relational.encoder import INTENTS, KINDS, PAIRS, ROLES, Marker, PathEncoder, Statement, partings
from hippo_core.methods.relational.statement_reader import FIT, save
from hippo_core.models import minilm
from hippo_core.suites.relations.bank import SPLIT_PARTS, digest
from hippo_core.suites.types import Fact
from hippo_core.training.memory_parts import provenance
from hippo_core.training.path_lessons import ASSERTED, Lesson, Lessons
from hippo_core.training.train import Diverged, Log, set_rates, share_of_rate, train
from hippo_core.training.weights import WORKSHOP


def loss_of(model: PathEncoder, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
    """The loss of a lesson, and numbers for the log."""
    said = model.read(lesson.statements)
    leads = [one.leads() for one in said]
    tags, intents = model.part([question.text for question in lesson.questions])
    hops = model.ask([hop for question in lesson.questions for hop in question.hops]).split([len(one.hops) for one in lesson.questions])
    table, standing, first, sizes = pairs_of(said)
    losses, hop_losses, right = [], [], 0
    labels = labels_of(lesson)
    for row, question in enumerate(lesson.questions):
        likes = model.scale * hops[row] @ table.T + standing
        hop_losses += [_hop_loss(like, labels, relation) for like, relation in zip(likes, question.item.cue["path"].split(), strict=False)]
        scores = path_scores(likes, question.paths, first, sizes)
        good = torch.tensor(question.right)
        losses.append(torch.logsumexp(scores, 0) - torch.logsumexp(scores[good], 0))
        right += bool(good[scores.argmax()])
    path = torch.stack(losses).mean()
    hop = torch.stack(hop_losses).mean()
    further = lesson.parted and model.part([text for text, _ in lesson.parted])[0]
    tag = _labelled([*tags, *further], [*(question.tags for question in lesson.questions), *(labels for _, labels in lesson.parted)])
    name = torch.zeros(())
    if lesson.raw:
        name = _labelled(model.name([text for text, _ in lesson.raw]), [labels for _, labels in lesson.raw])
    intent = cross_entropy(intents, torch.tensor([INTENTS.index("before") if one.item.kind == "before" else 0 for one in lesson.questions]))
    kind = cross_entropy(torch.stack([one.kind for one in said]), torch.tensor([KINDS.index(fact.slots["told"]) for fact in lesson.facts]))
    roles = [
        (one.roles[place], role_of(name, fact))
        for one, own, fact in zip(said, lesson.names, lesson.facts, strict=True)
        for place, name in enumerate(own)
    ]
    role = cross_entropy(torch.stack([logits for logits, _ in roles]), torch.tensor([label for _, label in roles]))
    pairs = _pairs(lesson)
    pair = torch.zeros(())
    if pairs:
        one, other, same, labels = pair_tensors(leads, pairs)
        pair = cross_entropy(model.judge(one, other, same), labels)
    total = path + hop + 2 * tag + name + 0.3 * (intent + kind + role + pair)
    n = len(lesson.questions)
    return total, {
        "path": float(path.detach()),
        "hop": float(hop.detach()),
        "right": right / n,
        "tag": float(tag.detach()),
        "name": float(name.detach()),
        "intent": float(intent.detach()),
        "kind": float(kind.detach()),
        "role": float(role.detach()),
        "pair": float(pair.detach()),
    }


def _labelled(logits: Iterable[Tensor], labels: Sequence[Sequence[int]]) -> Tensor:
    """The cross-entropy of the labels of pieces, text by text."""
    of = [torch.tensor(own) for own in labels]
    return cross_entropy(torch.cat([one[: len(own)] for one, own in zip(logits, of, strict=True)]), torch.cat(of))


def pairs_of(said: Sequence[Statement]) -> tuple[Tensor, Tensor, list[int], list[int]]:
    """Every ordered pair of names of every statement: its lead [P, W] and how likely it stands [P]; where those of each statement begin,
    and how many names it has."""
    sizes = [len(one.numbers) for one in said]
    table, standing = torch.cat([one.leads().flatten(0, 1) for one in said]), torch.cat([one.standing().flatten() for one in said])
    return table, standing, [0, *accumulate(size**2 for size in sizes)], sizes


def labels_of(lesson: Lesson) -> list[str]:
    """What each of these pairs says: a relation, "^" before it from tail to head, "-" before it where it is not asserted; else ""."""
    labels = []
    for fact, names in zip(lesson.facts, lesson.names, strict=True):
        slots = fact.slots
        sign = "" if slots["told"] in ASSERTED else "-"
        of = {(slots["head"], slots["tail"]): sign, (slots["head"], slots.get("old", "")): "-"}
        for one in names:
            for other in names:
                back = "^" if (other, one) in of else ""
                mark = of.get((other, one) if back else (one, other))
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


def role_of(name: str, fact: Fact) -> int:
    slots = fact.slots
    if name == slots.get("teller"):
        return ROLES.index("teller")
    if name == slots.get("old") or (name == slots["tail"] and slots["told"] in ("denial", "former")):
        return ROLES.index("old")
    return ROLES.index("party" if name in (slots["head"], slots["tail"]) else "other")


Spot = tuple[int, int, int]  # a statement, and the places of two of its names


def _pairs(lesson: Lesson) -> list[tuple[Spot, Spot, bool, int]]:
    """Pairs of statements of one name: where, whether they lead to the same name, and what the later one is to the earlier one. From its
    tails on a relation leads to any number of heads, which have nothing to do with each other."""
    of: dict[tuple[str, bool], list[tuple[Spot, str]]] = defaultdict(list)
    for number, (fact, names) in enumerate(zip(lesson.facts, lesson.names, strict=True)):
        head, tail = fact.slots["head"], fact.slots["tail"]
        if head != tail and {head, tail} <= {*names}:
            places = names.index(head), names.index(tail)
            of[head, False].append(((number, *places), tail))
            of[tail, True].append(((number, *places[::-1]), head))
    found = []
    for (_, back), spots in of.items():
        for (early, end), (late, other) in combinations(spots, 2):
            one, two = lesson.facts[early[0]].slots, lesson.facts[late[0]].slots
            label = "unrelated"
            if one["relation"] == two["relation"] and end == other:
                label = "agrees"
            elif one["relation"] == two["relation"] and not back:
                label = "replaces" if two["told"] in ("plain", "update") else "disputes"
            found.append((early, late, end == other, PAIRS.index(label)))
    return found


def pair_tensors(leads: Sequence[Tensor], pairs: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors of the earlier and the later ones [N, W], whether they end alike [N], and the labels [N]."""
    one = torch.stack([leads[number][start, end] for (number, start, end), *_ in pairs])
    other = torch.stack([leads[number][start, end] for _, (number, start, end), *_ in pairs])
    return one, other, torch.tensor([same for _, _, same, _ in pairs]), torch.tensor([label for *_, label in pairs])


class PathRecipe(BaseModel):
    """Everything that a reader of statements depends on, but for MiniLM and the bank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1337
    steps: int = 1200  # a world each
    rank: int = 16
    rate: float = 3e-4  # AdamW, of the adapter
    head_rate: float = 1e-3
    warmup: int = 40
    cooldown: float = 0.9
    threads: int = 2
    bank: str = ""  # SHA-256 of the bank


def fit_reader(recipe: "PathRecipe | None" = None, say: Callable[[str], None] = print) -> None:
    """Fit the reader of statements, or go on where a killed run stopped, and write it beside MiniLM's other parts."""
    require_checkout("training")
    tokenizer, body = minilm.copied()
    recipe = recipe or PathRecipe(bank=digest(*SPLIT_PARTS, "training"))
    trainee, workshop = PathTrainee(recipe, body, Marker(tokenizer)), root() / WORKSHOP / "statement-reader"
    train(trainee, workshop, say, every=100)
    curve = list({line["step"]: line for line in map(json.loads, (workshop / "log.jsonl").read_text("utf-8").splitlines())}.values())
    save(trainee.model, {**provenance(FIT), "recipe": recipe.model_dump(mode="json"), "curve": curve})


class PathTrainee:
    """A reader of statements as a trainee."""

    def __init__(self, recipe: PathRecipe, body: Any, marker: Marker) -> None:
        self.recipe, self.lessons = recipe, Lessons(marker, "train", recipe.seed, semantic=True)
        torch.manual_seed(recipe.seed)
        self.model = PathEncoder(adapted(body, recipe.rank))
        of = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        body_of = [weight for name, weight in of.items() if name.startswith("body")]
        heads = [weight for name, weight in of.items() if not name.startswith("body")]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(chosen, lr=rate, weight_decay=0.01) for chosen, rate in ((body_of, recipe.rate), (heads, recipe.head_rate))
        ]
        validation = Lessons(marker, "val", 1)
        self._exam = [validation(index, n_items=10, hops=(1, 2, 3), about=("chain",)) for index in range(12)]

    def weights(self) -> dict[str, Tensor]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        set_rates(self.optimizers, (recipe.rate, recipe.head_rate), share_of_rate(step, recipe.steps, recipe.warmup, recipe.cooldown))
        self.model.train()
        self.model.body.eval()  # drawing what is dropped takes a processor as long as a layer
        loss, numbers = loss_of(self.model, self.lessons(step))
        if not loss.isfinite():
            raise Diverged(f"step {step}: the loss is {float(loss)}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights().values(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return numbers

    @torch.no_grad()
    def examine(self) -> Log:
        """On worlds of validation relations: the share of questions whose best path is right, by hops, and of pairs, kinds and roles."""
        self.model.eval()
        marks: dict[str, list[float]] = defaultdict(list)
        for one in self._exam:
            for name, values in examined(self.model, one).items():
                marks[f"val {name}"] += values
        return {name: sum(values) / len(values) for name, values in sorted(marks.items())}


def adapted(body: Any, rank: int) -> Any:
    """MiniLM with a low-rank adapter that can be trained, and nothing else of it."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.05, target_modules=["query", "key", "value", "dense"])
    return get_peft_model(body, config)


def examined(model: PathEncoder, lesson: Lesson) -> dict[str, list[float]]:
    """What is right of a lesson: each 0 or 1."""
    said = model.read(lesson.statements)
    leads = [one.leads() for one in said]
    table, standing, first, sizes = pairs_of(said)
    tags, _ = model.part([question.text for question in lesson.questions])
    hops = model.ask([hop for question in lesson.questions for hop in question.hops]).split([len(one.hops) for one in lesson.questions])
    marks: dict[str, list[float]] = defaultdict(list)
    for row, question in enumerate(lesson.questions):
        best = int(path_scores(model.scale * hops[row] @ table.T + standing, question.paths, first, sizes).argmax())
        marks[f"{question.item.hops} hops"].append(float(question.right[best]))
        cut = max(partings(tags[row][: len(question.text.ids)], question.text))[1]
        marks["parts"].append(float([one.ids for one in question.text.hops(cut)] == [one.ids for one in question.hops]))
    for (_, labels), logits in zip(lesson.raw, model.name([text for text, _ in lesson.raw]) if lesson.raw else (), strict=True):
        marks["named"].append(float(logits[: len(labels)].argmax(-1).tolist() == [*labels]))
    for one, fact in zip(said, lesson.facts, strict=True):
        marks["kind"].append(float(KINDS[int(one.kind.argmax())] == fact.slots["told"]))
    for one, own, fact in zip(said, lesson.names, lesson.facts, strict=True):
        marks["role"] += [float(int(one.roles[place].argmax()) == role_of(name, fact)) for place, name in enumerate(own)]
    if pairs := _pairs(lesson):
        one, other, same, labels = pair_tensors(leads, pairs)
        for label, right in zip(labels.tolist(), (model.judge(one, other, same).argmax(-1) == labels).tolist(), strict=True):
            marks[f"pair {PAIRS[label]}"].append(float(right))
    return marks


if __name__ == "__main__":
    fit_reader()
