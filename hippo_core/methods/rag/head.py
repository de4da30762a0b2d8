"""Retrieval by a head over MiniLM's word pieces, fitted as a memory's key is: on the same pairs, with as many steps, by the same code.

It says what is left of a memory's lead where a published encoder may learn what facts and cues look like, too. The head does not hang on
the model that answers (`python benchmarks/memory/minilm_head.py` fits it). With more channels than `key`, which is the head here, they
are added up by weights that were fitted as the memory's are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hippo_core.methods.rag.fitted import Fitted, FittedSettings
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from torch import Tensor

    from hippo_core.models.artifacts import Owner
    from hippo_core.retrieval.trace_index import Channel, KeyEncoder, TraceIndex

SEEDS = (1337, 1338, 1339)  # from which heads were trained


class HeadSettings(FittedSettings):
    """`channels`: what is added up, `key` being the head; `head`: the seed that it was trained from."""

    channels: Annotated[tuple[Literal["words", "grams", "key", "minilm"], ...], Field(min_length=1)] = ("key",)
    head: Literal[1337, 1338, 1339] = SEEDS[0]


class Head(Fitted):
    """The k best by a head over MiniLM's word pieces, alone or with other channels."""

    Settings = HeadSettings
    weights = ("minilm/head-*",)

    @property
    def channels(self) -> "Sequence[Channel]":
        return self.settings.channels

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        from hippo_core.models import artifacts

        return artifacts.read_part(owner(), part_of(self.settings.head))

    def _trace_index(self, traces: Sequence[Trace]) -> "TraceIndex":
        from hippo_core.models import artifacts, minilm
        from hippo_core.retrieval.encoded import kept
        from hippo_core.retrieval.key_encoder import KeyModel, MiniLMStates, load_head
        from hippo_core.retrieval.payload import Payload
        from hippo_core.retrieval.sparse_key import SparseKey
        from hippo_core.retrieval.trace_index import KeyEncoder, TraceIndex

        code, device = self._made["fitted_with"], str(self.lm.device)
        model = KeyModel(MiniLMStates(device), load_head(owner(), part_of(self.settings.head)))
        encoder = KeyEncoder(model, code["expansion"], code["winners"])
        texts = [trace.text for trace in traces]
        name = f"{minilm.identity()} head {artifacts.digest_of(owner(), part_of(self.settings.head))} {code['expansion']} {code['winners']}"
        rows = kept(name, texts, lambda: codes_of(encoder, texts))
        keys = [SparseKey.unpadded(*row, code["expansion"]) for row in zip(rows["indices"].numpy(), rows["values"].numpy(), strict=True)]
        keyed = [replace(trace, payload=Payload((), key)) for trace, key in zip(traces, keys, strict=True)]
        return TraceIndex(keyed, self.channels, encoder, device)


def codes_of(encoder: "KeyEncoder", texts: Sequence[str]) -> "dict[str, Tensor]":
    """The texts' keys as tensors, which can be written down."""
    import torch

    keys = encoder.matrix(texts)
    return {"indices": torch.from_numpy(keys.indices), "values": torch.from_numpy(keys.values)}


def part_of(seed: int) -> str:
    """What the head of a seed is called."""
    return f"head-{seed}"


def owner() -> "Owner":
    """MiniLM as that which heads belong to."""
    from hippo_core.models import minilm
    from hippo_core.models.artifacts import Owner

    base = {"name": "minilm", "sha256": minilm.PUBLISHED["model.safetensors"]}
    return Owner("minilm", base, "python benchmarks/memory/minilm_head.py")
