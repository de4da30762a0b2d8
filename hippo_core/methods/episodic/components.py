"""The components of the episodic memory for one loaded model: its fitted weights, and the cache of keys and values of traces."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hippo_core.delivery import ON_DISK
from hippo_core.delivery.kv import prefix_of
from hippo_core.files import LabError, root
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models import artifacts
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import PassageKV
from hippo_core.retrieval.key_encoder import BlockStates, KeyModel, load_head
from hippo_core.retrieval.payload import Payload, PayloadCodec
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.trace_index import KeyEncoder, TraceIndex, name_of
from hippo_core.store.trace import Trace

KEY = "units of the model's first blocks, k-WTA"
MADE_UP = ("A warm stone lay by the river.", "A cold stone lay on the hill.")


class Components:
    """The components of a model's memory. Each is read when it is first needed. It must have been fitted for this model.

    Args:
        passage_kv: the cache that the delivery reads keys and values from; None makes a new one.
        folder: the folder of the fitted weights; None for the folder beside the model's weights.
    """

    def __init__(self, lm: LanguageModel, settings: HeiNWSettings, passage_kv: PassageKV | None = None, folder: Path | None = None) -> None:
        self.lm, self.settings, self._passage_kv, self._folder = lm, settings, passage_kv, folder

    @cached_property
    def encoder(self) -> KeyEncoder:
        """The key encoder, used for cues and statements alike. Without sparsity it keeps every active unit."""
        code = self.settings.episodic.code
        return KeyEncoder(
            load_key_model(self.lm, self._folder), code.expansion, code.winners if self.settings.episodic.use_sparsity else None
        )

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """The fitted weights for the channels of the settings: for each completion, the weight of each feature.

        Raises:
            LabError: no weights were fitted for these channels.
        """
        name, weights = name_of(self.settings.episodic.code.channels), artifacts.read_part(self.lm, "recall", self._folder)["weights"]
        if name not in weights:
            raise LabError(f"{self.lm.spec.name} has no weights for the channels {name}; those that have: {', '.join(weights)}")
        return weights[name]

    @cached_property
    def passage_kv(self) -> PassageKV:
        """The keys and values of traces, from which the model predicts a cue. It is the cache of the delivery, if that has one."""
        if self._passage_kv is not None:
            return self._passage_kv
        storage = self.settings.episodic.store.kv
        return PassageKV(self.lm, prefix_of(self.lm, self.settings.decoding), storage, root() / ON_DISK if storage == "disk" else None)

    def codec(self) -> PayloadCodec:
        """The codec of the payloads. Its settings say how the key was made."""
        made = f"{KEY} {artifacts.digest_of(self.lm, 'key', self._folder)}, lines of {self.settings.decoding} prompts"
        encoder = self.encoder
        return PayloadCodec(made, encoder.expansion, encoder.winners or encoder.expansion, self.lm.spec.context_limit)

    def recaller(self, traces: Sequence[Trace]) -> Recaller:
        """A recaller over the traces of one world."""
        return self._recaller(traces, self.settings.episodic.use_completion, self.rerank_candidates)

    def _recaller(self, traces: Sequence[Trace], completion: Any, rerank_candidates: int) -> Recaller:
        settings = self.settings.episodic
        hopfield = settings.hopfield.beta, settings.hopfield.steps
        config = RecallConfig(completion, settings.recall.candidates, rerank_candidates, *hopfield, self.weights, self.settings.decoding)
        index = TraceIndex(traces, settings.code.channels, self.encoder if "key" in settings.code.channels else None, str(self.lm.device))
        return Recaller(index, config, self.passage_kv if completion == "predictive" else None)

    @property
    def rerank_candidates(self) -> int:
        """How many candidates completion looks at.

        Raises:
            LabError: completion looks at fewer candidates than are shown (`k`).
        """
        settings = self.settings.episodic
        most = settings.predictive.candidates if settings.use_completion == "predictive" else 3 * settings.recall.candidates
        if most < self.settings.k:
            raise LabError(
                f"k={self.settings.k} traces are to be injected, but only {most} are judged; raise episodic.predictive.candidates"
            )
        return most

    def warm_up(self) -> None:
        """Recall once from made-up traces, with a Hopfield step if there is a key channel.

        This compiles what is compiled once per machine (some seconds) and reads what is read once per process. So no question's time
        contains them.
        """
        keys = zip(MADE_UP, self.encoder.keys(MADE_UP), strict=True)
        traces = [Trace("", "", text, id=number, payload=Payload((), key)) for number, (text, key) in enumerate(keys, start=1)]
        completion = "hopfield" if "key" in self.settings.episodic.code.channels else "off"
        self._recaller(traces, completion, 3 * self.settings.episodic.recall.candidates).recall(MADE_UP[0])


def load_key_model(lm: LanguageModel, folder: Path | None = None) -> KeyModel:
    """Load the key head that was fitted for a model.

    Raises:
        LabError: there is no key head, it is damaged, or it belongs to other weights.
    """
    head = load_head(lm, "key", folder)
    return KeyModel(BlockStates(lm, head.settings.blocks), head)
