"""The parameters of cells that ask: names and types checked once, before anything runs, then resolved to what they stand for."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from hippo_core.errors import LabError, unknown
from hippo_core.files import BRING_MODELS
from hippo_core.methods.presets import Preset, load_preset, settings_of
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import READER, ModelSpec, load_spec, validated
from hippo_core.protocols.base.assignments import assignments
from hippo_core.protocols.base.parameters import Parameters, Positive, require_run_id
from hippo_core.results.records.read import override_owner
from hippo_core.suites import get_suite
from hippo_core.suites.draw import suite_settings
from hippo_core.suites.folder import FolderSettings, count_questions, is_own, require_folder
from hippo_core.suites.types import Regime, Settings, Suite

if TYPE_CHECKING:
    from hippo_core.protocols.base.experiment import Experiment

DRY_ITEMS = 5


class AskingParameters(Parameters):
    """The parameters of every notebook that asks questions."""

    suite: str = "episodic"
    preset: str = "baselines/span_short"
    regime: Regime = "delayed"
    profile: str = "default"  # of params/suites/<suite>.yaml
    n: Positive = 50
    split: Literal["val", "test"] = "test"
    batch_size: Positive = 32
    max_new_tokens: Positive | None = None  # of an answer; None: the suite's budget
    use_chat_template: bool | None = None  # None: as the preset says
    overrides: list[str] = Field(default_factory=list)

    @property
    def items(self) -> int:
        """How many questions are asked: `n`, or five in a dry run."""
        return min(self.n, DRY_ITEMS) if self.dry_run else self.n

    def check_preset(self, preset: Preset) -> None:
        """LabError for a preset that no cell of this experiment can ask with."""


@dataclass(frozen=True)
class Resolved:
    """Parameters of a cell and what they stand for. `suite_overrides` and `preset_overrides` are the overrides that either reads,
    `origin` is the preset at the bottom of what the preset extends, itself where it extends none."""

    parameters: Any
    suite: Suite
    settings: Settings
    preset: Preset
    spec: ModelSpec
    suite_overrides: dict[str, Any]
    preset_overrides: dict[str, Any]
    origin: Preset

    @property
    def ignores_window(self) -> bool:
        """Whether the immediate and the delayed regime give the same prompts, so that one cell stands for both."""
        return self.preset.method.ignores_window or not self.suite.has_window

    def changed(self, **parameters: Any) -> "Resolved":
        """The same with other values of some parameters."""
        return resolve(self.parameters.model_copy(update=parameters))


def check(experiment: "Experiment", values: dict[str, Any], where: str) -> AskingParameters:
    """The parameters, if every type and name in them is right; LabError with what is legal otherwise. Loads no torch.

    A folder of the user's own is read through, so that a mistake in it is said before anything starts or is written.
    """
    if settings := [name for name in values if name not in experiment.parameters.model_fields and _is_setting(name, values)]:
        meant = ", ".join(f"{name}={values[name]}" for name in settings)
        raise LabError(f"{where}: {settings[0]} is a setting of the suite or of the preset, not of the cell: overrides='[{meant}]'")
    parameters: Any = validated(experiment.parameters, values | ({"n": 1} if values.get("n") == "all" else {}), where)
    if values.get("n") == "all":
        if not is_own(parameters.suite):
            rule = "n=all is for folder:PATH, which has so many questions and no more"
            raise LabError(f"{rule}; give suite {parameters.suite} a number, as in n=50")
        parameters = parameters.model_copy(update={"n": max(1, count_questions(parameters.suite, parameters.split))})
    require_run_id(parameters)
    resolved = resolve(parameters)
    parameters.check_preset(resolved.preset)
    if is_own(parameters.suite) and not parameters.record_dir:  # a runner has checked it before it started this kernel
        settings = resolved.preset.settings
        require_folder(
            parameters.suite, parameters.split, parameters.items, calibrates=settings.calibrates, shuffles=settings.control == "shuffled"
        )
    return parameters


def _is_setting(name: str, values: dict[str, Any]) -> bool:
    """Whether an override of the suite or the preset of these values has this name; not where one of them is unknown."""
    usual = AskingParameters.model_fields
    suite, preset = (str(values.get(field, usual[field].default)) for field in ("suite", "preset"))
    with suppress(LabError):
        return override_owner(name, fields := get_suite(suite).settings.model_fields)[1] in {*fields, *settings_of(preset)}
    return False


def usual_model(suite: str) -> str:
    """The model that a suite is asked with where none is said: of a folder of the user's own the one that reads everyday sentences, where
    its files are on the disk; hippo-tiny, which reads the shipped suites' own sentences, otherwise."""
    tiny = AskingParameters.model_fields["model"].default
    return READER if is_own(suite) and not missing(load_spec(READER)) else tiny


def with_model(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The values with that model where they name none and the suite is a folder of the user's own, and a line on that choice."""
    suite = str(values.get("suite", ""))
    if "model" in values or not is_own(suite):
        return values, ""
    model = usual_model(suite)
    reads = "reads everyday sentences" if model == READER else f"cannot read everyday sentences; `{BRING_MODELS}` brings one that can"
    return {**values, "model": model}, f"no model= is given: {suite} is asked with {model}, which {reads}"


def resolve(parameters: AskingParameters) -> Resolved:
    """The suite, its settings, the preset and the model that the parameters name, overrides applied."""
    chosen = parameters.suite, parameters.profile, parameters.preset, parameters.model, tuple(parameters.overrides)
    resolved = replace(_resolve(*chosen, parameters.max_new_tokens, parameters.use_chat_template), parameters=parameters)
    if parameters.regime == "immediate" and not resolved.preset.method.ignores_window and not resolved.suite.has_window:
        raise LabError(f"suite {parameters.suite} has no window: its facts are taught in another session; use regime=delayed")
    return resolved


@cache
def _resolve(
    suite_name: str,
    profile: str,
    preset_name: str,
    model: str,
    overrides: tuple[str, ...],
    max_new_tokens: int | None,
    use_chat_template: bool | None,
) -> Resolved:
    suite, spec = get_suite(suite_name), load_spec(model)
    of_suite, of_preset = split_overrides(overrides, suite, preset_name)
    if use_chat_template is not None:
        if "decoding" in of_preset:
            raise LabError("use_chat_template and the override decoding say the same thing; give one of them")
        of_preset["decoding"] = "short" if use_chat_template else "plain"
    settings = suite_settings(suite_name, profile, spec.context_limit, of_suite)
    answer_tokens = max_new_tokens or (settings.answer_tokens if isinstance(settings, FolderSettings) else None)
    suite = replace(suite, answer_budget=answer_tokens or suite.answer_budget)
    preset = load_preset(preset_name, of_preset)
    return Resolved(None, suite, settings, preset, spec, of_suite, of_preset, load_preset(preset.origin))


@cache
def is_taught(preset: str) -> bool:
    """Whether a preset is a memory."""
    return load_preset(preset).taught


def forget() -> None:
    """Read all names and settings from disk again, as a notebook does in which a person works while files change."""
    _resolve.cache_clear()
    is_taught.cache_clear()


def split_overrides(texts: Iterable[str], suite: Suite, preset: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Overrides split: those of the suite's settings and those of the preset. `suite.` or `preset.` before a key says which is meant."""
    apart: dict[str, dict[str, Any]] = {"suite": {}, "preset": {}}
    legal = {"suite": set(suite.settings.model_fields), "preset": set(settings_of(preset))}
    for key, value in assignments(texts).items():
        owner, name = override_owner(key, legal["suite"])
        if key in legal["suite"] & legal["preset"]:
            raise LabError(f"override {key!r} is a setting of the suite and of the preset; write suite.{key}=... or preset.{key}=...")
        if name not in legal[owner]:
            raise unknown("override", key, legal["suite"] | legal["preset"])
        apart[owner][name] = value
    return apart["suite"], apart["preset"]
