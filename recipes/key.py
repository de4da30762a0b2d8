"""Fit a model's key: a head on the states of its first blocks under which a cue's key finds the key of the fact that it is about.

InfoNCE (van den Oord et al. 2018, arXiv 1807.03748, section 2.3) over the facts of two train worlds at a time, whose facts share their
words, so that the near misses are among the wrong ones. What a person took back is no wrong one: a key says what a statement is about, and
which of several came last is for recall to see. The model itself stays as it is, so its states are computed once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, normalize

from hippo_core.models.matmul import half_products
from hippo_core.retrieval.key_encoder import KeyHead, KeySettings, TokenStates, padded
from hippo_core.retrieval.pieces import PieceHead, PieceSettings, matched
from hippo_core.suites import episodic, lexicon, multi, settings_for, wording
from hippo_core.suites.types import WorldSpec
from hippo_core.training.tasks import NOTES, rephrased, wide

RUNGS = ("exact", "partial", "paraphrase", "paraphrase", "paraphrase", "noisy")
OPENED = 0.2  # of the facts begin as a correction does
NESTED = (4, 2, 1)  # the units are cut to a quarter, to a half, not at all


class KeyRecipe(BaseModel):
    """Everything that a key depends on, but for the model. `blocks` are given as shares of the model's depth."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1337
    rooms: int = 1000  # train worlds whose states are kept
    facts: int = 64  # a room
    cues: int = 24  # a room
    steps: int = 1500
    together: int = 2  # rooms a step
    rate: float = 2e-3  # AdamW
    units: int = 2048
    winners: int = 64  # while it learns
    dropout: float = 0.1  # of what is read of a token, while it learns
    blocks: tuple[int, ...] = (0, 2)


@dataclass(frozen=True)
class ContrastiveBatch:
    """Facts, and cues each with the number of the fact that it is about; `extra_positives`: numbers of others that each cue is about."""

    facts: tuple[str, ...]
    cues: tuple[tuple[str, int], ...]
    extra_positives: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class States:
    """A batch's facts and cues as token states [T, D] in half precision."""

    facts: list[Tensor]
    cues: list[Tensor]
    gold: list[int]
    extra_positives: tuple[tuple[int, ...], ...]


def draw_batch(random: Random, recipe: KeyRecipe) -> ContrastiveBatch:
    """A train world: events, journeys, or what people say of themselves; two of three with words that the suites do not have."""
    if random.random() < 0.15:
        return _draw_statements(random, recipe)
    pools, motion = random.choice((lexicon.POOLS, wide(), wide())), random.random() < 0.2
    settings = episodic.EpisodicSettings(n_facts=recipe.facts, n_competitors=0, swaps=random.choice((0.0, 0.0, 0.5)))
    events = episodic.make_events(random, settings, WorldSpec("train", 0, 0), motion, pools)
    words = [wording.choose_words(random, event) for event in events]
    cues = []
    for _ in range(recipe.cues):
        gold, rung = random.randrange(len(events)), random.choice(RUNGS)
        drawn = episodic.make_question_about(random, events, words, gold, rung, settings, training=True)
        if drawn:
            otherwise = rung == "paraphrase" and random.random() < 0.4
            cues.append((rephrased(random, events[gold], words[gold], drawn) if otherwise else drawn.question, gold))
    return ContrastiveBatch(tuple(_sentence(random, word) for word in words), tuple(cues), ((),) * len(cues))


Draw = Callable[[Random, KeyRecipe], ContrastiveBatch]


def _sentence(random: Random, words: wording.Words) -> str:
    """A fact with what may stand around it."""
    text = wording.render_fact(random, words) + random.choice(NOTES)
    return random.choice(multi.CORRECTIONS).format(statement=text) if random.random() < OPENED else text


def _draw_statements(random: Random, recipe: KeyRecipe) -> ContrastiveBatch:
    settings: Any = settings_for("episodic_multi", "default", {"n_facts": recipe.facts // 2})
    world = multi.make_world(random, settings, WorldSpec("train", 0, 0))
    index_of = {fact.id: index for index, fact in enumerate(world.facts)}
    cues = tuple((item.question, index_of[item.gold_facts[-1]]) for item in world.items)
    about = [(fact.slots["who"], fact.slots["relation"]) for fact in world.facts]
    extra_positives = tuple(tuple(index for index, pair in enumerate(about) if pair == about[gold] and index != gold) for _, gold in cues)
    return ContrastiveBatch(tuple(fact.text for fact in world.facts), cues, extra_positives)


def states_of(source: TokenStates, batch: ContrastiveBatch) -> States:
    """The states that a head reads, of all texts of a batch."""
    states = [state.half() for state in source.of([*batch.facts, *(cue for cue, _ in batch.cues)])]
    return States(states[: len(batch.facts)], states[len(batch.facts) :], [gold for _, gold in batch.cues], batch.extra_positives)


def train_key(source: TokenStates, recipe: KeyRecipe, say: Callable[[str], None] = print, draw: Draw = draw_batch) -> KeyHead:
    """A head fitted from nothing to the batches that `draw` draws; deterministic for one number of threads."""
    random = Random(f"key/{recipe.seed}")
    torch.manual_seed(recipe.seed)
    return fit_key(random, draw_states(random, source, recipe, say, draw), source.shape, recipe, say)


def draw_states(
    random: Random, source: TokenStates, recipe: KeyRecipe, say: Callable[[str], None], draw: Draw = draw_batch
) -> list[States]:
    """The states of as many batches as the recipe says."""
    batches = []
    for number in range(recipe.rooms):
        batches.append(states_of(source, draw(random, recipe)))
        if number % 40 == 39:
            say(f"states of {number + 1} of {recipe.rooms} train worlds")
    return batches


def fit_key(
    random: Random, batches: Sequence[States], shape: tuple[tuple[int, ...], int], recipe: KeyRecipe, say: Callable[[str], None]
) -> KeyHead:
    """A head fitted to batches; `shape`: the blocks and the width of their states."""
    blocks, hidden = shape
    head = KeyHead(KeySettings(blocks=blocks, hidden=hidden, units=recipe.units))
    sharpness = torch.nn.Parameter(torch.tensor(3.0))
    minimise(
        [*head.parameters(), sharpness],
        lambda: _loss(head, sharpness, random.sample(batches, recipe.together), recipe),
        recipe.steps,
        recipe.rate,
        0.01,
        say,
    )
    return head.eval().requires_grad_(False)


def minimise(
    parameters: Sequence[Tensor],
    loss_of: Callable[[], tuple[Tensor, float]],
    steps: int,
    rate: float,
    decay: float,
    say: Callable[[str], None],
) -> None:
    """Go down a loss by AdamW, whose rate rises for 50 steps, then falls to nothing. `loss_of`: a loss, and how often it was right."""
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=decay)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50) * (1 - step / steps)
        loss, right = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step + 1 == steps:
            say(f"step {step}: loss {loss.item():.3f}, first {right:.3f}")


def targets(batches: Sequence[States]) -> tuple[Tensor, Tensor]:
    """Of batches laid end to end the fact that each cue is about [C], and what is added to scores [C, F]: what it is about as well is
    no wrong one."""
    before = [sum(len(batch.facts) for batch in batches[:number]) for number in range(len(batches))]
    gold = [start + index for start, batch in zip(before, batches, strict=True) for index in batch.gold]
    extra_positives = [
        [start + index for index in indices] for start, batch in zip(before, batches, strict=True) for indices in batch.extra_positives
    ]
    apart = torch.zeros(len(gold), sum(len(batch.facts) for batch in batches))
    for row, indices in enumerate(extra_positives):
        apart[row, indices] = -math.inf
    return torch.tensor(gold), apart


def _loss(head: KeyHead, sharpness: Tensor, batches: Sequence[States], recipe: KeyRecipe) -> tuple[Tensor, float]:
    """InfoNCE of the nested codes, in mean, and how often the whole code's nearest fact is the right one."""
    with half_products("cpu"):
        facts = head(*with_dropout([state for batch in batches for state in batch.facts], recipe.dropout)).float()
        cues = head(*with_dropout([state for batch in batches for state in batch.cues], recipe.dropout)).float()
    gold, apart = targets(batches)
    losses, right = [], math.nan
    for part in NESTED:
        units = recipe.units // part
        overlap = winners(cues[:, :units], recipe.winners) @ winners(facts[:, :units], recipe.winners).T
        scores = sharpness.exp() * overlap + apart
        losses.append(cross_entropy(scores, gold))
        right = (scores.argmax(1) == gold).float().mean().item()
    return torch.stack(losses).mean(), right


def with_dropout(states: Sequence[Tensor], share: float) -> tuple[Tensor, Tensor]:
    """States and mask with a share of the numbers left out."""
    laid, mask = padded([state.float() for state in states])
    return dropout(laid, share), mask


def winners(active: Tensor, count: int) -> Tensor:
    """The `count` strongest units of each row, the others 0, at length 1."""
    least = active.topk(count, dim=-1).values[:, -1:]
    return normalize(active * (active >= least), dim=-1)


class PieceRecipe(BaseModel):
    """What a projection depends on, but for its batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = 1400
    together: int = 2  # rooms a step
    rate: float = 5e-4  # AdamW
    width: int = 128
    dropout: float = 0.1  # of a piece's numbers, while it learns


def fit_pieces(random: Random, batches: Sequence[States], recipe: PieceRecipe, say: Callable[[str], None] = print) -> PieceHead:
    """The projection of retrieval/pieces.py, which begins as the directions in which pieces differ most, fitted to batches."""
    hidden = batches[0].facts[0].shape[-1]
    head = PieceHead(PieceSettings(hidden=hidden, width=recipe.width))
    with torch.no_grad():
        head.project.weight.copy_(principal(batches, recipe.width))
        head.weight.weight.zero_()
        head.weight.bias.fill_(math.log(math.e - 1))  # every piece counts 1
    sharpness = torch.nn.Parameter(torch.tensor(3.0))
    minimise(
        [*head.parameters(), sharpness],
        lambda: _piece_loss(head, sharpness, random.sample(batches, recipe.together), recipe.dropout),
        recipe.steps,
        recipe.rate,
        0.0,
        say,
    )
    return head.eval().requires_grad_(False)


def principal(batches: Sequence[States], width: int) -> Tensor:
    """The first directions [width, hidden] of the pieces of some facts, each of length 1 before."""
    some = normalize(torch.cat([state for batch in batches[:40] for state in batch.facts]).float(), dim=-1)
    return torch.linalg.eigh(some.T @ some / len(some)).eigenvectors.flip(1)[:, :width].T


def _piece_loss(head: PieceHead, sharpness: Tensor, batches: Sequence[States], share: float) -> tuple[Tensor, float]:
    """InfoNCE over the facts of all batches, and how often the first is the right one."""
    facts, cues = [state for batch in batches for state in batch.facts], [state for batch in batches for state in batch.cues]
    cue_states = dropout(torch.cat(cues).float(), share)
    best = matched(head(cue_states), head(dropout(torch.cat(facts).float(), share)), _owner(facts), len(facts))
    weight, of = head.weights(cue_states), _owner(cues)
    summed = best.new_zeros(len(cues), len(facts)).index_add(0, of, best * weight[:, None])
    scores = summed / weight.new_zeros(len(cues)).index_add(0, of, weight)[:, None]
    gold, apart = targets(batches)
    scores = sharpness.exp() * scores + apart
    return cross_entropy(scores, gold), (scores.argmax(1) == gold).float().mean().item()


def _owner(states: Sequence[Tensor]) -> Tensor:
    """The number of the text that each piece is of."""
    return torch.repeat_interleave(torch.arange(len(states)), torch.tensor([len(state) for state in states]))
