"""The policy: which macro to take at a place, on the way to a goal. A head of two layers, cloned from replayed routes that succeeded.

    p(macro | here, goal) = softmax(tanh(A[here] + B[goal]) C)          one of the outputs is "none": the planner is asked

Behaviour cloning (Pomerleau 1989): what was done there is what is to be done. Its weights and macros are one safetensors file in the
payload of the last route that it was learnt from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hippo_core.errors import LabError
from hippo_core.methods.spatial.macros import Example, Macro, Trajectory, examples, mined

HIDDEN, STEPS, RATE, SEED = 32, 150, 0.05, 1337
POLICY_THRESHOLD = 0.8  # least probability of a proposed macro
WORDS = "words"  # the tensor that holds macros and names of places, as JSON


@dataclass(frozen=True, eq=False)
class MacroPolicy:
    """What a sleep learnt from a world's routes: M macros, P places that the head knows, and the routes that lead to their ends.
    `weights`: `here` and `goal` float32 [P, hidden], `out` [hidden, M + 1], the last of which is "none"; empty without macros."""

    macros: tuple[Macro, ...]
    places: tuple[str, ...]
    routes: frozenset[str]
    weights: Mapping[str, NDArray[np.float32]]

    def __post_init__(self) -> None:
        shapes = {"here": (len(self.places), HIDDEN), "goal": (len(self.places), HIDDEN), "out": (HIDDEN, len(self.macros) + 1)}
        actual = {name: array.shape for name, array in self.weights.items()}
        if actual != (shapes if self.macros else {}):
            raise LabError(
                f"a policy of {len(self.macros)} macros and {len(self.places)} places has weights {shapes}, got {actual}; sleep anew"
            )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {place: number for number, place in enumerate(self.places)}

    def propose(self, here: str, goal: str) -> Macro | None:
        """The macro to take at a place on the way to a goal; None: none starts here, or none is likely enough."""
        starts = [number for number, macro in enumerate(self.macros) if macro.start == here]
        if not starts or here not in self._numbers or goal not in self._numbers:
            return None
        hidden = np.tanh(self.weights["here"][self._numbers[here]] + self.weights["goal"][self._numbers[goal]])
        logits = hidden @ self.weights["out"]
        odds = np.exp(logits - logits.max())
        best = max(starts, key=lambda number: odds[number])
        return self.macros[best] if odds[best] / odds.sum() >= POLICY_THRESHOLD else None

    def to_bytes(self) -> bytes:
        """As safetensors."""
        content = {"macros": [asdict(macro) for macro in self.macros], "places": self.places, "routes": sorted(self.routes)}
        written = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        return save({**self.weights, WORDS: np.frombuffer(written, np.uint8)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "MacroPolicy":
        """LabError where `to_bytes` has not written them."""
        try:
            tensors = load(data)
            content = json.loads(tensors.pop(WORDS).tobytes())
            macros = tuple(Macro(**{**values, "words": tuple(values["words"])}) for values in content["macros"])
            return cls(macros, tuple(content["places"]), frozenset(content["routes"]), tensors)
        except (SafetensorError, KeyError, TypeError, ValueError):
            raise LabError(
                "what a sleep learnt is kept as safetensors with macros, places and routes; these bytes are not; sleep anew"
            ) from None


def learn(trajectories: Sequence[Trajectory], seed: int = SEED) -> MacroPolicy:
    """The policy of these trajectories. The same ones and the same seed give the same weights."""
    macros = mined(trajectories)
    counts = examples(trajectories, macros) if macros else {}
    places = tuple(sorted({place for here, goal, _ in counts for place in (here, goal)}))
    routes = frozenset(trajectory.name for trajectory in trajectories if trajectory.leads)
    return MacroPolicy(tuple(macros), places, routes, clone(counts, places, len(macros), seed) if macros else {})


def clone(counts: Mapping[Example, int], places: Sequence[str], macros: int, seed: int = SEED) -> dict[str, NDArray[np.float32]]:
    """The head's weights, trained on the counted examples, and once on "none" for each place and goal without an example."""
    import torch

    number = {place: index for index, place in enumerate(places)}
    seen = {(here, goal) for here, goal, _ in counts}
    rows = sorted({**counts, **{(here, goal, -1): 1 for here in places for goal in places if (here, goal) not in seen}}.items())
    here = torch.tensor([number[example[0]] for example, _ in rows])
    goal = torch.tensor([number[example[1]] for example, _ in rows])
    chosen = torch.tensor([macros if example[2] < 0 else example[2] for example, _ in rows])
    weight = torch.tensor([float(count) for _, count in rows])
    random = torch.Generator().manual_seed(seed)
    shapes = {"here": (len(places), HIDDEN), "goal": (len(places), HIDDEN), "out": (HIDDEN, macros + 1)}
    weights = {name: (0.1 * torch.randn(shape, generator=random)).requires_grad_() for name, shape in shapes.items()}
    optimizer = torch.optim.AdamW(list(weights.values()), lr=RATE, weight_decay=1e-3)
    with torch.enable_grad():
        for _ in range(STEPS):
            hidden = torch.tanh(weights["here"][here] + weights["goal"][goal])
            losses = torch.nn.functional.cross_entropy(hidden @ weights["out"], chosen, reduction="none")
            optimizer.zero_grad()
            ((losses * weight).sum() / weight.sum()).backward()
            optimizer.step()
    return {name: value.detach().numpy() for name, value in weights.items()}


@dataclass(frozen=True)
class MacroPolicyCodec:
    """The codec of what a sleep learnt; most traces have no payload."""

    settings: Mapping[str, Any] = field(default_factory=lambda: {"payload": "habits"})

    def check(self, payload: Any) -> None:
        if payload is not None and not isinstance(payload, MacroPolicy):
            raise LabError(f"expected what a sleep learnt, or nothing, got {type(payload).__name__}; let the spatial memory sleep")

    def encode(self, payload: MacroPolicy | None) -> bytes:
        return payload.to_bytes() if payload else b""

    def decode(self, data: bytes) -> MacroPolicy | None:
        return MacroPolicy.from_bytes(data) if data else None

    def to_json(self, payload: MacroPolicy | None, dense: bool = False) -> dict[str, Any]:
        return {"safetensors": self.encode(payload).hex()}

    def from_json(self, values: Mapping[str, Any]) -> MacroPolicy | None:
        try:
            return self.decode(bytes.fromhex(values["safetensors"]))
        except (KeyError, TypeError, ValueError):
            raise LabError(
                f"what a sleep learnt is written as safetensors in hexadecimal, got {str(values)[:80]}; export it anew"
            ) from None
