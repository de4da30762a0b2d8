"""Faults, quantisation and eviction on one axis: what is left of the score behind a cache that lost this share of its bits."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from hippo_core.protocols.cache.cached_probe import write
from hippo_core.protocols.cache.corruption import Corruption
from hippo_core.protocols.cache.damage import damaged
from hippo_core.protocols.cache.eviction import PRESSES, press
from hippo_core.protocols.cache.information import WAYS, removed
from hippo_core.protocols.cache.probes import probes
from hippo_core.protocols.cache.reading import read
from hippo_core.protocols.cache.table import REMOVE


def remove(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row a probe, a way and a severity; `removed` is the share of the cache's information that is gone."""
    parameters, lm, rows = cell.parameters, cell.language_model, []
    for task in parameters.tasks:
        written = write(lm, probes(lm, task, parameters.items, parameters.seed, "test"))
        for way in WAYS:
            for severity in (0.0, *parameters.severities):
                if way in PRESSES:
                    caches = [tuple(press(way, kv, severity) for kv in one.blocks) for one in written]
                else:
                    fault = Corruption(way, severity, stored="bfloat16")
                    caches = [tuple(one.kv for one in damaged(written, at, fault, parameters.seed)) for at in range(len(written))]
                for at, found in zip(written, read(lm, written, caches), strict=True):
                    named = {"probe": at.probe.id, "cluster": at.probe.cluster, "chance": at.probe.chance, "task": task}
                    rows.append({**named, "way": way, "severity": severity, "removed": removed(way, severity), **found})
        say(f"{task}: {len(written)} probes by {len(WAYS)} ways")
    return pd.DataFrame(rows, columns=list(REMOVE.columns))
