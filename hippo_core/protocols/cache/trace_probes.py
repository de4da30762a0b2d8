"""Questions that are answered behind the keys and values of the traces that the episodic memory recalls."""

from tempfile import TemporaryDirectory
from typing import Any

from hippo_core.methods.base import Observation, Query
from hippo_core.methods.presets import load_preset
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.names import RECALLING
from hippo_core.protocols.cache.probe import Probe
from hippo_core.protocols.cache.probes import in_words, item_of, worlds
from hippo_core.store import TraceStore
from hippo_core.suites.splits import Split

RECALLED = 2  # traces a question


def traces(lm: LanguageModel, n: int, seed: int, split: Split) -> list[Probe]:
    """Questions of worlds that the episodic memory was taught, with the traces that it recalls, each a block of its own."""
    preset = load_preset(RECALLING, {"k": RECALLED, "encoder": "own"})
    method: Any = preset.method(lm, preset.settings)
    made: list[Probe] = []
    with TemporaryDirectory(prefix="hippo-cache-") as folder, TraceStore.create(folder, "probes", method.identity()) as store:
        for number, world in enumerate(worlds(seed + 2, split, n)):
            method.teach([Observation.of(fact) for fact in world.facts], store)
            item = item_of(world, number)
            recalled = method.open(store.traces(world.id))(Query(item.question, item.taught)).delivered
            made.append(in_words(lm, item, world, "traces", [[trace.text] for trace in recalled]))
    return made
