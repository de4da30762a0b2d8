"""The components of the episodic memory for one loaded model: its fitted weights, and the cache of keys and values of traces."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from hippo_core.delivery import folder_of
from hippo_core.errors import LabError
from hippo_core.methods.episodic.settings import HeiNWSettings
from hippo_core.models import artifacts, minilm
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from hippo_core.retrieval.confidence import Confidence, load_confidence
from hippo_core.retrieval.fusion import name_of
from hippo_core.retrieval.key_encoder import BlockStates, KeyModel, load_head
from hippo_core.retrieval.minilm_head import MINILM_HEAD, PIECES, head_encoder, owner
from hippo_core.retrieval.payload import PayloadCodec
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.text_encoder import KeyEncoder, with_payloads
from hippo_core.retrieval.trace_index import ENCODED, TraceIndex
from hippo_core.store.trace import Trace

KEYS = {"own": "units of the model's first blocks, k-WTA", "minilm": "units over MiniLM's word pieces, k-WTA, and MiniLM's vectors"}
MADE_UP = ("A warm stone lay by the river.", "A cold stone lay on the hill.")


class Components:
    """The components of a model's memory, each read when it is first needed. `passage_kv`: the cache that the delivery reads keys and
    values from; None makes a new one."""

    def __init__(self, lm: LanguageModel, settings: HeiNWSettings, passage_kv: PassageKV | None = None) -> None:
        self.lm, self.settings, self._passage_kv = lm, settings, passage_kv

    @cached_property
    def encoder(self) -> KeyEncoder:
        """The key encoder, used for cues and statements alike. Without sparsity it keeps every active unit."""
        code = self.settings.episodic.code
        winners = code.winners if self.settings.episodic.use_sparsity else None
        if self.settings.encoder == "minilm":
            return head_encoder(MINILM_HEAD, code.expansion, winners, str(self.lm.device), "pieces" in self.settings.channels)
        name = f"{self.lm.spec.name} key {self._key_digest} {code.expansion} {winners}"
        return KeyEncoder(load_key_model(self.lm), code.expansion, winners, name)

    @property
    def _key_digest(self) -> str:
        part = (owner(), MINILM_HEAD) if self.settings.encoder == "minilm" else (self.lm, "key")
        return artifacts.digest_of(*part)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """The fitted weight of each channel of the settings, by completion."""
        name, completion = name_of(self.settings.channels), self.settings.episodic.use_completion
        part = (owner(), MINILM_HEAD) if self.settings.encoder == "minilm" else (self.lm, "recall")
        weights = artifacts.read_part(*part)["weights"]
        if completion not in weights.get(name, {}):
            has = ", ".join(some for some in weights if completion in weights[some])
            raise LabError(f"there are no fitted weights for {name} with completion {completion}; {has} have them, or use fusion=sum")
        return weights[name]

    @cached_property
    def confidence(self) -> Confidence | None:
        """How sure the sum is, where that was fitted; it must be where it decides what is "unknown", or when completion looks."""
        if not (self.settings.says_confidence or self.settings.completes_in_doubt):
            return None
        by = owner() if self.settings.encoder == "minilm" else self.lm
        required = self.settings.abstention == "method" or self.settings.completes_in_doubt
        return load_confidence(by, self.settings.channels, required)

    @cached_property
    def passage_kv(self) -> PassageKV:
        """The keys and values of traces, from which the model predicts a cue. It is the cache of the delivery, if that has one."""
        if self._passage_kv is not None:
            return self._passage_kv
        storage = self.settings.kv_storage
        return PassageKV(self.lm, prefix_of(self.lm, self.settings.decoding), storage, folder_of(storage))

    def codec(self) -> PayloadCodec:
        """The codec of what the memory keeps of a text; it names the key."""
        of_minilm, encoder = self.settings.encoder == "minilm", self.encoder
        made = f"{KEYS[self.settings.encoder]} {self._key_digest}, lines of {self.settings.decoding} prompts"
        width, pieces = minilm.WIDTH if of_minilm else 0, 0
        if encoder.pieces:
            made, pieces = f"{made}, pieces {artifacts.digest_of(owner(), PIECES)}", encoder.pieces.settings.width
        return PayloadCodec(made, encoder.expansion, encoder.winners or encoder.expansion, self.lm.spec.context_limit, width, pieces)

    def recaller(self, traces: Sequence[Trace], warming: Any = None) -> Recaller:
        """A recaller over the traces of one world; `warming`: with this completion in the place of that of the settings."""
        settings = self.settings.episodic
        completion = warming or settings.use_completion
        config = RecallConfig(
            completion,
            settings.recall.candidates,
            3 * settings.recall.candidates if warming else self.rerank_candidates,
            settings.hopfield.beta,
            settings.hopfield.steps,
            self.weights if settings.recall.fusion == "fitted" else None,
            self.settings.decoding,
            settings.recall.recency,
            self.confidence if completion == settings.use_completion else None,
            settings.predictive.below if completion == "predictive" else 1.0,
        )
        encoder = self.encoder if ENCODED & set(self.settings.channels) else None  # by which cues are read
        index = TraceIndex(traces, self.settings.channels, encoder)
        return Recaller(index, config, self.passage_kv if completion == "predictive" else None)

    @property
    def rerank_candidates(self) -> int:
        """How many candidates completion looks at. LabError where these are fewer than are shown (`k`)."""
        settings = self.settings.episodic
        most = settings.predictive.candidates if settings.use_completion == "predictive" else 3 * settings.recall.candidates
        if most < self.settings.k:
            raise LabError(
                f"k={self.settings.k} traces are to be injected, but only {most} are judged; raise episodic.predictive.candidates"
            )
        return most

    def warm_up(self) -> None:
        """Recall once from made-up traces, with a Hopfield step where there are keys, so that no question's time contains what is compiled
        once a machine (some seconds) and read once a process."""
        traces = with_payloads(self.encoder, [Trace("", "", text, id=number) for number, text in enumerate(MADE_UP, start=1)])
        completion = "hopfield" if "key" in self.settings.channels and self.settings.episodic.recall.fusion == "sum" else "off"
        self.recaller(traces, completion).recall(MADE_UP[0])


def load_key_model(lm: LanguageModel) -> KeyModel:
    """Load the key head that was fitted for a model. LabError where it is missing, damaged, or belongs to other weights."""
    head = load_head(lm, "key")
    return KeyModel(BlockStates(lm, head.settings.blocks), head)
