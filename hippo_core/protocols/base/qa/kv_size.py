"""What keys and values of passages take in a cell that asks, said before it runs."""

import json
import math
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

from hippo_core.errors import LabError
from hippo_core.files import read_object
from hippo_core.models.kv_storage import MB, Precision, shape_of
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.qa.parameters import AskingParameters, resolve
from hippo_core.suites.draw import worlds

CHARACTERS, LINE = 3, 4  # of a token (3.7 to 4.1 on average in the shipped suites); tokens of a passage's line besides its text
SAMPLE = 20  # questions whose worlds stand for all that a suite draws with a profile: a thousand take a minute


@dataclass(frozen=True)
class KVSize:
    """MiB of keys and values, at most: in memory at a time, on disk, and all that others may leave there too."""

    memory_mb: float
    disk_mb: float
    disk_limit_mb: int


def kv_size(parameters: AskingParameters) -> KVSize | None:
    """Those of the cell with these parameters; None where nothing is kept. The limits of its settings where its passages or the shape of
    its model are not on this machine."""
    resolved = resolve(parameters)
    settings = resolved.preset.settings
    if not settings.keeps_kv:
        return None
    storage, limit = settings.kv_storage, resolved.spec.context_limit
    n, seed = parameters.items, parameters.seed
    drawn = n if resolved.suite.stream else min(n, SAMPLE)
    data = parameters.suite, parameters.profile, drawn, seed if drawn == n else 1337, parameters.split, limit
    sizes = _world_sizes(*data, json.dumps(resolved.suite_overrides), resolved.spec.name, storage.precision)
    memory = disk = math.inf
    if sizes:
        items, mb = sizes
        worlds_per_batch = max(1, math.ceil(parameters.batch_size / min(items)))
        memory, disk = max(mb) * min(worlds_per_batch, math.ceil(len(mb) * n / drawn)), sum(mb) * n / drawn
    on_disk = min(disk, storage.disk_mb) if storage.store == "disk" else 0.0
    return KVSize(min(memory, storage.memory_mb), on_disk, storage.disk_mb)


@cache
def _world_sizes(
    suite: str, profile: str, n: int, seed: int, split: str, limit: int, overrides: str, model: str, precision: Precision
) -> tuple[list[int], list[float]] | None:
    """Of each world its questions, and MiB of the keys and values of all its facts."""
    file = load_spec(model).path / "config.json"
    config = {"num_key_value_heads": None, "head_dim": None} | (read_object(file) if file.is_file() else {})
    if not {"num_hidden_layers", "num_attention_heads", "hidden_size"} <= config.keys():
        return None
    shape = shape_of(SimpleNamespace(**config))
    try:
        drawn = list(worlds(suite, profile, n, seed, split, limit, json.loads(overrides)))  # type: ignore[arg-type]
    except LabError:  # texts of others are not there; a cell says so when it begins
        return None
    tokens = [[math.ceil(len(fact.text) / CHARACTERS) + LINE for fact in world.facts] for world in drawn]
    mb = [sum(shape.kv_bytes(count, precision) for count in counts) / MB for counts in tokens]
    return ([max(1, len(world.items)) for world in drawn], mb) if drawn else None
