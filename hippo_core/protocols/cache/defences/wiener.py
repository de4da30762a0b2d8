"""The Wiener filter over whole tokens: what a damaged cache most likely was, given what clean tokens are like.

All keys and values of a token, of every layer and head together, are one vector x [L 2 H D]. They follow from one hidden state a layer, so
few directions hold most of them: with keys turned back to position 0,

    x = mean + B f + e        f [R] standard normal; e normal, of one variance psi in each head of each layer, keys and values apart

is fitted to clean text by principal components (Tipping & Bishop 1999, section 3.2, with a psi for each head). What is seen of x is
y = x + noise, and some features are not seen at all. The estimate of x given y is linear in what is seen; it is found by conjugate
gradients. No fault is shown to the filter, and where the damage is nobody says:

    not seen    what is no number, exactly 0, outside the range of clean text, or further than `AWAY` deviations from the estimate
    noise       of each head over a span of tokens, from the median distance between y and the estimate; 0 unless clean text has less
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.probe import write
from hippo_core.protocols.cache.probes import TASKS, probes

PROBES, RANK = 32, 256  # clean caches a task, factors
NEAR = 1e-2  # how far a key may lie from itself, of its length, for a rotation to count as undone
SPAN = 16  # tokens that share a level of noise
ROUNDS, STEPS = 2, 3  # estimates of the noise, and steps of conjugate gradients in each
AWAY = 5.0
WIDER = 0.2  # by how much of itself the range of clean text is widened
MEDIAN = 0.4549  # of the square of a standard normal number
NOISE_QUANTILE, MARGIN = 0.999, 1.2  # the quantile of clean spans' deviations, and what it is multiplied by, that noise must exceed
HELD_OUT_EVERY = 8  # one clean cache in so many is not fitted: it measures how far clean text lies from the fit


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
        positions = torch.arange(start, start + kv.shape[3], device=kv.device)[None]
        cos, sin = (angle[0].to(kv) for angle in self._rotary(kv, positions))  # [T, R]
        keys, width = kv[:, 0], cos.shape[-1]  # a model may rotate a part of its features only
        turning, rest = keys[..., :width], keys[..., width:]
        half = torch.cat([-turning[..., width // 2 :], turning[..., : width // 2]], -1)
        return torch.stack([torch.cat([turning * cos + sign * half * sin, rest], -1), kv[:, 1]], 1)

    def _undoes(self, lm: LanguageModel) -> bool:
        """Whether one token at three places has one key in the first layer, once the rotation is undone."""
        [kv] = encode(lm, [[5, 5, 6, 5]])
        keys = self.undone(kv.float(), 0)[0, 0][:, [0, 1, 3]]
        return bool((keys - keys[:, :1]).norm(dim=-1).max() <= NEAR * keys.norm(dim=-1).max())


class TokenPrior:
    """The distribution of clean tokens; `of` fits it.

    Args:
        mean, basis, psi: [G, D], B [G, D, R] and [G], keys at position 0.
        low, high: the range of each feature as caches hold it, [G, 1, D].
    """

    def __init__(self, rotation: KeyRotation, mean: Tensor, basis: Tensor, psi: Tensor, low: Tensor, high: Tensor) -> None:
        self.rotation, self.mean, self.basis, self.psi, self.low, self.high = rotation, mean, basis, psi, low, high
        self._flat = basis.flatten(0, 1)  # [G D, R]
        self._grams = basis.transpose(1, 2) @ basis  # [G, R, R]
        self.most = torch.full_like(psi, torch.inf)  # deviation of clean spans; until it is known nothing counts as noise

    @classmethod
    def of(cls, rotation: KeyRotation, caches: Sequence[tuple[KV, int]], rank: int) -> "TokenPrior":
        """Fitted to clean caches [L, 2, H, T, D], each with the position of its first token; the rank is at most that of the data."""
        all_caches = [(kv.float().cpu(), start) for kv, start in caches]
        fitted = [cache for number, cache in enumerate(all_caches) if number % HELD_OUT_EVERY] or all_caches
        x = torch.cat([rotation.undone(kv, start).flatten(0, 2) for kv, start in fitted], 1)  # [G, N, D]
        mean, spread = x.mean(1), x.std(1).clamp(min=1e-6)  # [G, D]
        z = ((x - mean[:, None]) / spread[:, None]).transpose(0, 1).flatten(1)  # [N, G D]
        rank = min(rank, *z.shape)
        torch.manual_seed(0)
        _, values, directions = torch.svd_lowrank(z, q=min(rank + 32, *z.shape), niter=2)
        loadings = (directions * values / len(z) ** 0.5)[:, :rank].view(*mean.shape, rank) * spread[..., None]
        left = (spread.pow(2) - loadings.pow(2).sum(-1)).mean(-1)
        ends = torch.cat([kv.flatten(0, 2) for kv, _ in all_caches], 1)
        low, high = ends.amin(1, keepdim=True), ends.amax(1, keepdim=True)
        margin = WIDER / 2 * (high - low)
        psi = left.clamp(min=1e-4 * float(spread.pow(2).mean()))
        prior = cls(rotation, mean, loadings, psi, low - margin, high + margin)
        apart = [prior.estimate(kv, start, rounds=1)[1] for kv, start in all_caches[::HELD_OUT_EVERY]]
        prior.most = MARGIN * torch.cat(apart).quantile(NOISE_QUANTILE, dim=0)
        return prior

    @torch.inference_mode()
    def estimate(self, kv: KV, start: int, rounds: int = ROUNDS) -> tuple[KV, Tensor]:
        """What a cache most likely was whose first token stands at `start`, float32 [L, 2, H, T, D], and the variance of features about
        that with their noise, [S, G] for S spans and G = 2 L H heads. What neither its range nor its noise gives away stays as it is."""
        y = kv.float().cpu().flatten(0, 2)  # [G, T, D]
        possible = y.isfinite() & (y != 0) & (y >= self.low) & (y <= self.high)
        y, seen = y.where(possible, 0.0), possible
        mean = self._placed(self.mean[:, None].expand_as(y), kv, start)
        tokens = torch.arange(y.shape[1]) // SPAN
        noise = torch.zeros(int(tokens[-1]) + 1, len(y))  # [S, G]
        f = torch.zeros(y.shape[1], self.basis.shape[-1])
        for _ in range(rounds):
            weight = 1 / (self.psi + noise)
            share = torch.stack([part.float().mean((1, 2)) for part in seen.split(SPAN, dim=1)])
            f, inverse = self._factors(f, y - mean, weight.T[:, tokens, None] * seen, weight * share, kv, start)
            away = y - mean - self._decoded(f, kv, start)
            deviation = self._deviation(away, possible, inverse, weight, share)
            noise = torch.where(deviation > self.most, (deviation - self.psi).clamp(min=0), 0.0)
            usual = torch.maximum(self.psi + noise, self.most.where(self.most.isfinite(), self.psi))
            seen = possible & (away.pow(2) < AWAY**2 * usual.T[:, tokens, None])
        noise = noise.T[:, tokens, None]
        psi = self.psi[:, None, None]
        likely = y - away + torch.where(seen, psi / (psi + noise) * away, 0.0)
        return torch.where(seen & (noise == 0), y, likely).unflatten(0, kv.shape[:3]), deviation

    def _placed(self, x: Tensor, kv: KV, start: int) -> Tensor:
        """Features [G, T, D] at position 0 as a cache of this shape holds them."""
        return self.rotation.done(x.unflatten(0, kv.shape[:3]), start).flatten(0, 2)

    def _decoded(self, f: Tensor, kv: KV, start: int) -> Tensor:
        """The features that factors [T, R] give, [G, T, D]."""
        return self._placed((f @ self._flat.T).unflatten(1, self.mean.shape).transpose(0, 1), kv, start)

    def _factors(self, f: Tensor, y: Tensor, weights: Tensor, heads: Tensor, kv: KV, start: int) -> tuple[Tensor, Tensor]:
        """The factors [T, R] given the deviations y [G, T, D] and their weights; and the inverse [S, R, R] of each span's mean system,
        in which a head counts by `heads` [S, G], which makes the steps few."""
        rank = f.shape[1]
        systems = torch.eye(rank) + torch.einsum("sg,grq->srq", heads, self._grams)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(systems))

        def back(x: Tensor) -> Tensor:
            x = self.rotation.undone(x.unflatten(0, kv.shape[:3]), start).flatten(0, 2)
            return x.transpose(0, 1).flatten(1) @ self._flat

        def system(f: Tensor) -> Tensor:
            return f + back(weights * self._decoded(f, kv, start))

        def near(r: Tensor) -> Tensor:
            return torch.cat([part @ inverse[number] for number, part in enumerate(r.split(SPAN))])

        left = back(weights * y) - system(f)
        step = towards = near(left)
        length = (left * towards).sum(1, keepdim=True)
        for _ in range(STEPS):
            bent = system(step)
            by = length / (step * bent).sum(1, keepdim=True).clamp(min=1e-12)
            f, left = f + by * step, left - by * bent
            towards = near(left)
            before, length = length, (left * towards).sum(1, keepdim=True)
            step = towards + length / before.clamp(min=1e-12) * step
        return f, inverse

    def _deviation(self, away: Tensor, possible: Tensor, inverse: Tensor, weight: Tensor, share: Tensor) -> Tensor:
        """The variance of features about the estimate, by span and head [S, G]: by the median, so that few wild ones do not count, and
        for what the factors took up of it themselves."""
        squares = away.pow(2).where(possible, torch.nan).split(SPAN, dim=1)
        middle = torch.stack([part.flatten(1).nanmedian(1).values for part in squares]) / MEDIAN
        absorbed = torch.einsum("srq,grq->sg", inverse, self._grams) * weight / away.shape[-1]
        return (middle / (1 - absorbed.clamp(0, 0.9))).nan_to_num(0.0)


class Priors:
    """The priors of a model: of whole tokens, one, or one a layer. No text of theirs is a probe of validation or test."""

    def __init__(self, lm: LanguageModel, seed: int) -> None:
        self.lm, self.seed = lm, seed
        self._made: dict[bool, Sequence[TokenPrior]] = {}

    def __call__(self, by_layer: bool = False) -> Sequence[TokenPrior]:
        if by_layer not in self._made:
            rotation = KeyRotation(self.lm)
            written = [cache for task in TASKS for cache in write(self.lm, probes(self.lm, task, PROBES, self.seed, "train"))]
            caches = [(kv, cache.prefix.shape[3]) for cache in written for kv in cache.blocks]
            parts = caches[0][0].shape[0] if by_layer else 1
            self._made[by_layer] = [
                TokenPrior.of(rotation, [(kv.chunk(parts)[number], start) for kv, start in caches], RANK) for number in range(parts)
            ]
        return self._made[by_layer]


class Wiener(Defence):
    """Each token's keys and values become what they most likely were, given what the rest of them says."""

    name = "wiener"
    by_layer = False

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        if setting.priors is None:
            raise LabError("the Wiener filter needs clean text to be fitted to; give Setting its priors, or leave wiener out")
        self.priors = setting.priors(self.by_layer)

    def repair(self, damaged: DefenceInput) -> KV:
        start, parts = damaged.prefix.shape[3], damaged.kv.chunk(len(self.priors))
        return torch.cat([prior.estimate(part, start)[0] for prior, part in zip(self.priors, parts, strict=True)]).to(damaged.kv)


class ByLayer(Wiener):
    """Its ablation: what one layer's keys and values say of each other."""

    name = "wiener_layer"
    by_layer = True
