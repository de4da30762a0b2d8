"""The settings of a run besides its suite."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.paired.conditions import CONDITIONS

PROFILES, MODES, ENCODERS = ("offline", "llm"), ("auto", "deterministic", "llm"), ("minilm", "own")
COMMAND = "command:"  # begins the name of a memory that is a program
DRY = 8  # items of a dry run
LONGEST = 86_400.0  # seconds that a program may have for a message


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run besides its suite.

    Args:
        conditions: by name, those of conditions.py.
        memory: the memory under test: a preset, `package.module:NAME`, or `command:PROGRAM ARGUMENTS`.
        profile: offline (no model answers) or llm.
        answer_mode: who answers: auto (as the profile says), deterministic, llm.
        encoder: of presets that have one: minilm or own.
        repeats: how often each item is asked; random-memory draws anew each time.
        seed: of the order, and of what is drawn.
        timeout_s: of a program under test, for one message.
        limit: items at most, 0: all.
        provider: who answers in profile llm, as `ollama:MODEL`; "": a model of this lab. `key_env`: the variable with its key.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    conditions: tuple[str, ...] = CONDITIONS
    memory: str = "memory/hei_nw"
    profile: str = "offline"
    answer_mode: str = "auto"
    encoder: str = "minilm"
    repeats: int = 1
    seed: int = 1337
    timeout_s: float = 60.0
    limit: int = 0
    provider: str = ""
    key_env: str = ""

    def require(self) -> None:
        """LabError for a name that is none, a number out of its range, or a condition that is named twice."""
        named = (("profile", self.profile, PROFILES), ("answer_mode", self.answer_mode, MODES), ("encoder", self.encoder, ENCODERS))
        for name, value, legal in named:
            if value not in legal:
                raise unknown(name, value, legal)
        ranges = (("repeats", self.repeats, 1, 1000), ("limit", self.limit, 0, 10**9), ("timeout", self.timeout_s, 0.1, LONGEST))
        for name, number, least, most in ranges:
            if not least <= number <= most:
                raise LabError(f"{name}: expected a number from {least:g} to {most:g}, got {number}")
        for name in self.conditions:
            if name not in CONDITIONS:
                raise unknown("condition", name, CONDITIONS)
        if not self.conditions or len(set(self.conditions)) < len(self.conditions):
            raise LabError(f"conditions: expected different ones, at least one, got {list(self.conditions)}")
        if self.profile == "offline" and self.answer_mode == "llm":
            raise LabError("answer_mode llm needs profile llm; offline no model answers")
        if self.provider and not self.by_model:
            got = f"profile {self.profile}, answer_mode {self.answer_mode}"
            raise LabError(f"provider {self.provider} answers in profile llm alone, and not where answer_mode is deterministic; got {got}")
        if self.key_env and not self.provider:
            raise LabError("key_env goes with a provider; name one")

    @property
    def by_model(self) -> bool:
        """Whether a model answers."""
        return self.profile == "llm" and self.answer_mode != "deterministic"


def settings_of(parameters: Any, default_repeats: int) -> RunSettings:
    """The settings of a run in the cell with these parameters; a dry run has few items."""
    return RunSettings(
        conditions=tuple(parameters.conditions),
        memory=parameters.memory,
        profile=parameters.profile,
        answer_mode=parameters.answer_mode,
        encoder=parameters.encoder,
        repeats=parameters.repeats or default_repeats,
        seed=parameters.seed,
        limit=min(parameters.n or DRY, DRY) if parameters.dry_run else parameters.n,
    )


def described(settings: RunSettings) -> Mapping[str, Any]:
    """The settings as plain values."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}


def restored(values: Mapping[str, Any]) -> RunSettings:
    """The settings that `described` made plain. LabError where they are not of the form of settings."""
    try:
        return TypeAdapter(RunSettings).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, got {fault['input']!r:.80}" for fault in error.errors()]
        raise LabError(f"settings of a paired run: {'; '.join(faults)}") from None
