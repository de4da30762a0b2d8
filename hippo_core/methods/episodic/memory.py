"""HEI-NW, the episodic memory: a loaded model with all that was fitted for it, under one preset's settings.

    encode -> gate -> store (writing.py)          recall -> complete -> rank (recall/)          inject (inject/)

Keys k-WTA: McNaughton and Morris 1987; completion Hopfield 1982, Ramsauer et al. 2020 (arXiv 2008.02217).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hippo_core.delivery import AdapterInjection, Injection, injection
from hippo_core.delivery.kv import KVInjection, prefix_of
from hippo_core.delivery.trace_kv import StoreKV, TraceKV
from hippo_core.files import LabError, root
from hippo_core.methods.episodic.recall import How, Recaller
from hippo_core.methods.episodic.settings import MemoryPreset
from hippo_core.models import artifacts
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.spec import validated
from hippo_core.retrieval.key_encoder import KeyEncoder, KeyHead, KeySettings
from hippo_core.retrieval.question_likelihood import Predictive
from hippo_core.retrieval.trace_index import Coder, Scope, name_of
from hippo_core.store import Identity
from hippo_core.store.trace import Trace

KIND = "units of the model's first blocks, k-WTA"
MADE_UP = ("A warm stone lay by the river.", "A cold stone lay on the hill.")
ON_DISK = "data/generated/kv"  # below the lab's root; named by what they hold, so that many runs share them


@dataclass(frozen=True)
class Episodic:
    """The memory of a model by a preset. What was fitted is read when it is first needed, and must be that of this very model."""

    lm: LanguageModel
    preset: MemoryPreset
    folder: Path | None = None  # of what was fitted; None: beside the model's weights

    @cached_property
    def encoder(self) -> KeyEncoder:
        """The encoder of keys: one for cues and for what is told."""
        return load_encoder(self.lm, self.folder)

    @cached_property
    def coder(self) -> Coder:
        """The encoder with the preset's expansion and winners; without sparsity every active unit is kept."""
        code = self.preset.episodic.code
        return Coder(self.encoder, code.expansion, code.winners if self.preset.episodic.use_sparsity else None)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """What each of the preset's channels counts, by completion."""
        name, found = name_of(self.preset.episodic.code.channels), artifacts.read_part(self.lm, "recall", self.folder)["weights"]
        if name not in found:
            raise LabError(f"{self.lm.spec.name} has no weights for the channels {name}; those that have: {', '.join(found)}")
        return found[name]

    @cached_property
    def injection(self) -> Injection:
        """How what is recalled reaches the model."""
        return injection(self.lm, self.preset.inject, self.preset.decoding, *self._kept)

    @cached_property
    def known(self) -> TraceKV:
        """The keys and values of traces that the model predicts a cue from: those that are injected, where they are."""
        if isinstance(self.injection, KVInjection):
            return self.injection.known
        return TraceKV(self.lm, prefix_of(self.lm, self.preset.decoding), *self._kept)

    @property
    def _kept(self) -> tuple[StoreKV, Path | None]:
        """How the keys and values of traces are kept, and the folder of those on disk."""
        kept = self.preset.episodic.store.kv
        return kept, root() / ON_DISK if kept == "disk" else None

    def make_ready(self, traces: Sequence[Trace]) -> float:
        """Run those of these traces that were not run before to the keys and values that are injected; how many milliseconds it took.
        Nothing is done where none are kept."""
        begin, way = time.perf_counter(), self.injection
        if not traces or not isinstance(way, KVInjection | AdapterInjection) or way.known.store == "none":
            return 0.0
        way.known.get([trace.token_ids for trace in traces])
        return (time.perf_counter() - begin) * 1e3

    def identity(self) -> Identity:
        """What a store of this memory is written with."""
        base = artifacts.base_of(self.lm)
        code = self.coder
        weights = "+".join([base["sha256"], *([base["merged"]] if "merged" in base else [])])
        made = f"{KIND} {artifacts.digest_of(self.lm, 'key', self.folder)}, lines of {self.preset.decoding} prompts"
        return Identity(self.lm.spec.name, weights, made, code.expansion, self.winners)

    @property
    def winners(self) -> int:
        """How many units of a key there are at most."""
        return self.coder.winners or self.coder.expansion

    def recaller(self, traces: Sequence[Trace]) -> Recaller:
        """Recall from the traces of one world."""
        told = self.preset.episodic
        how = How(told.use_completion, told.recall.candidates, self.judged, told.hopfield.beta, told.hopfield.steps, self.weights)
        predictive = Predictive(self.known, self.preset.decoding) if told.use_completion == "predictive" else None
        coder = self.coder if "key" in told.code.channels else None
        return Recaller(Scope(traces, told.code.channels, coder, str(self.lm.device)), how, predictive)

    @property
    def judged(self) -> int:
        """How many candidates completion looks at; as many as are injected, at least."""
        told = self.preset.episodic
        judged = told.predictive.candidates if told.use_completion == "predictive" else 3 * told.recall.candidates
        if judged < self.preset.k:
            raise LabError(
                f"k={self.preset.k} traces are to be injected, but only {judged} are judged; raise episodic.predictive.candidates"
            )
        return judged

    def warm_up(self) -> None:
        """Recall once from made-up traces, with a Hopfield step where there are keys. What is compiled once a machine (some seconds) and
        read once a process is then in no question's time."""
        told = self.preset.episodic
        quick = told.model_copy(update={"use_completion": "hopfield" if "key" in told.code.channels else "off"})
        keys = zip(MADE_UP, self.coder.keys(MADE_UP), strict=True)
        traces = [Trace("", "", text, (), key, id=number) for number, (text, key) in enumerate(keys, start=1)]
        memory = replace(self, preset=self.preset.model_copy(update={"episodic": quick, "k": 1}))
        memory.recaller(traces).recall(MADE_UP[0])

    def forget(self) -> None:
        """Let go of what is kept of a world in this process."""
        self.known.forget()


def load_encoder(lm: LanguageModel, folder: Path | None = None) -> KeyEncoder:
    """The encoder that was fitted for a model. LabError where there is none, where it is damaged or belongs to other weights."""
    made: dict[str, Any] = artifacts.read_part(lm, "key", folder)
    head = KeyHead(validated(KeySettings, made.get("settings", {}), "key.json"))
    artifacts.fill(head, (folder or artifacts.folder_of(lm)) / "key.safetensors")
    return KeyEncoder(lm, head.eval().requires_grad_(False))
