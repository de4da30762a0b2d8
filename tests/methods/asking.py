"""What a preset brings for an item, asked as an experiment asks it."""

from dataclasses import dataclass

import pytest

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Query, Retrieved
from hippo_core.methods.controls import open_controlled
from hippo_core.methods.presets import load_preset
from hippo_core.models.packages.pins import available
from hippo_core.retrieval.world_index import WorldIndex

needs_minilm = pytest.mark.skipif(bool(available("minilm")), reason="MiniLM is not on the disk: `make models`")


@dataclass(frozen=True)
class RetrievedIds:
    """What was retrieved, by the ids of facts."""

    retrieved: Retrieved

    @property
    def shown(self):
        return tuple(trace.source for trace in self.retrieved.shown)

    @property
    def ranking(self):
        return None if self.retrieved.ranking is None else tuple(trace.source for trace in self.retrieved.ranking)

    @property
    def computed_tokens(self):
        return self.retrieved.computed_tokens

    @property
    def retrieval_ms(self):
        return self.retrieved.retrieval_ms


def bound(name, lm, **overrides):
    """The method of a preset on a model."""
    preset = load_preset(name, overrides)
    return preset.method(lm, preset.settings)


def query_of(item, regime="delayed"):
    return Query(item.question, item.taught, item.window if regime == "immediate" else ())


def asker(name, lm, world, others=(), **overrides):
    """A function from an item (and a regime) to what the preset brings, with one index for all."""
    method, traces = bound(name, lm, **overrides), passages_of(world)
    retrieve = open_controlled(method, traces, others)

    def ask(item, regime="delayed"):
        return RetrievedIds(retrieve(item, query_of(item, regime)).retrieved)

    return ask


def choose(name, lm, world, item, regime="delayed", **overrides):
    """The same for one item."""
    return asker(name, lm, world, **overrides)(item, regime)


def index_of(lm, world):
    return WorldIndex(lm, passages_of(world))
