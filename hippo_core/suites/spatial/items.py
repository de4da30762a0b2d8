"""The questions of a world: how many of each kind, and those that are chosen as items."""

from itertools import islice
from random import Random

from hippo_core.suites.spatial.facts import MapNarration, SpatialSettings
from hippo_core.suites.spatial.questions import CANDIDATES, MapQuestionDraft
from hippo_core.suites.types import Item, WorldSpec, after_all


def draw_items(random: Random, settings: SpatialSettings, spec: WorldSpec, telling: MapNarration) -> tuple[Item, ...] | None:
    """The world's questions in a random order; None where the map does not carry as many of a kind as the shares ask for."""
    drafts: list[MapQuestionDraft] = []
    training = spec.split == "train"
    for kind, count in share_out(random, kind_shares(settings, telling.map.is_grid), settings.n_items).items():
        candidates = CANDIDATES[kind](random, settings, telling, training)
        chosen = list(islice((draft for draft in candidates if competitors(telling, draft) >= settings.n_competitors), count))
        if len(chosen) < count:
            return None
        drafts += chosen
    random.shuffle(drafts)
    return tuple(make_item(spec, telling, draft, number) for number, draft in enumerate(drafts))


def kind_shares(settings: SpatialSettings, is_grid: bool) -> dict[str, float]:
    """The share of each kind of question on this kind of map."""
    walked = settings.trajectory_share if is_grid and settings.n_walkers else 0.0
    recall = settings.recall_share + settings.trajectory_share - walked
    path = "grid_path" if is_grid else "graph_path"
    neighbor = settings.neighbor_share if is_grid else 0.0
    return {
        path: settings.path_share + settings.neighbor_share - neighbor,
        "recall": recall,
        "procedure": settings.procedure_share,
        "trajectory": walked,
        "edge_label": settings.edge_label_share,
        "step_count": settings.step_count_share,
        "neighbor": neighbor,
        "exits": settings.exits_share,
    }


def share_out(random: Random, shares: dict[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to `total`, each on average (and up to one) its share of it: systematic sampling."""
    scale = total / sum(shares.values())
    mark, reached, counts = random.random(), 0.0, {}
    for name, share in shares.items():
        reached += share * scale
        counts[name] = 0
        while mark < reached - 1e-9 and sum(counts.values()) < total:
            counts[name] += 1
            mark += 1
    return counts


def make_item(spec: WorldSpec, telling: MapNarration, draft: MapQuestionDraft, number: int) -> Item:
    """The draft as an item. All facts of the world stand before it."""
    place = {fact.id: number for number, fact in enumerate(telling.facts)}
    new_name = telling.new_names and "who" in draft.cue
    return Item(
        id=f"{spec.id}.q{number}",
        world=spec.id,
        question=draft.question,
        answers=(draft.answer, *draft.more_answers),
        kind=draft.kind,
        rung=draft.rung,
        hops=draft.hops,
        chance=draft.chance,
        cue=draft.cue,
        **after_all(telling.facts, [place[fact] for fact in draft.gold]),
        slices=(*(("new_template",) if draft.held_out else ()), *(("new_name",) if new_name else ()), *draft.slices),
        truth=draft.truth,
    )


def competitors(telling: MapNarration, draft: MapQuestionDraft) -> int:
    """How many facts besides the gold ones share a slot's value with the cue."""
    values = set(draft.cue.values())
    return sum(not values.isdisjoint(fact.slots.values()) for fact in telling.facts if fact.id not in draft.gold)
