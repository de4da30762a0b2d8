"""The settings of a run besides its suite."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict

from hippo_core.errors import LabError, unknown
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.conditions import CONDITIONS

PROFILES, MODES, ENCODERS = ("offline", "llm"), ("auto", "deterministic", "llm"), ("minilm", "own")
COMMAND = "command:"  # begins the name of a memory that is a program
DRY = 8  # items of a dry run
LONGEST = 86_400.0  # seconds that a program may have for a message


class RunSettings(BaseModel):
    """The settings of a run besides its suite; `require` checks them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    conditions: Annotated[tuple[str, ...], Strict(False)] = CONDITIONS  # by name, those of conditions.py
    memory: str = "memory/hei_nw"  # under test: a preset, `package.module:NAME`, or `command:PROGRAM ARGUMENTS`
    profile: str = "offline"  # or llm: a model answers
    answer_mode: str = "auto"  # who answers: auto (as the profile says), deterministic, llm
    encoder: str = "minilm"  # of presets that have one; or own
    repeats: int = 1  # how often each item is asked; random-memory draws anew each time
    seed: int = 1337  # of the order, and of what is drawn
    timeout_s: float = 60.0  # of a program under test, for one message
    limit: int = 0  # items at most, 0: all
    provider: str = ""  # who answers in profile llm, as `ollama:MODEL`; "": a model of this lab
    key_env: str = ""  # the variable with the provider's key

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


def restored(values: Mapping[str, Any]) -> RunSettings:
    """The settings of a run that was read. LabError where they are not of the form of settings."""
    return validated(RunSettings, dict(values), "settings of a paired run")
