"""Keys without the rotation that their position gave them (RoPE), so that a token's keys are alike wherever it stands."""

import torch
from torch import Tensor

from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel

NEAR = 1e-2  # how far a key may lie from itself, of its length, for a rotation to count as undone


class KeyRotation:
    """A model's rotation of keys, as its own module says it. A model that has none, or one that this does not undo, is left as it is."""

    def __init__(self, lm: LanguageModel) -> None:
        self._rotary = getattr(lm.model.base_model, "rotary_emb", None)
        if self._rotary is not None and not self._undoes(lm):
            self._rotary = None

    def undone(self, kv: KV, start: int) -> KV:
        """The cache [L, 2, H, T, D], whose first token stands at `start`, with keys as at position 0."""
        return self._turned(kv, start, -1.0)

    def done(self, kv: KV, start: int) -> KV:
        """The cache with keys at position 0 turned to where their tokens stand."""
        return self._turned(kv, start, 1.0)

    @torch.inference_mode()
    def _turned(self, kv: KV, start: int, sign: float) -> KV:
        if self._rotary is None:
            return kv
        cos, sin = self._angles(kv, start)
        keys, width = kv[:, 0], cos.shape[-1]  # a model may rotate a part of its features only
        turning, rest = keys[..., :width], keys[..., width:]
        half = torch.cat([-turning[..., width // 2 :], turning[..., : width // 2]], -1)
        return torch.stack([torch.cat([turning * cos + sign * half * sin, rest], -1), kv[:, 1]], 1)

    def _angles(self, kv: KV, start: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the tokens of a cache, each [T, R]."""
        assert self._rotary is not None
        places = torch.arange(start, start + kv.shape[3], device=kv.device)[None]
        cos, sin = self._rotary(kv, places)
        return cos[0].to(kv), sin[0].to(kv)

    def _undoes(self, lm: LanguageModel) -> bool:
        """Whether one token at three places has one key in the first layer, once the rotation is undone."""
        [kv] = encode(lm, [[5, 5, 6, 5]])
        keys = self.undone(kv.float(), 0)[0, 0][:, [0, 1, 3]]
        return bool((keys - keys[:, :1]).norm(dim=-1).max() <= NEAR * keys.norm(dim=-1).max())
