"""The cells of experiments that ask: the data set that they need, and what a cell rests on besides it."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from hippo_core.delivery import module_of as delivery_module
from hippo_core.errors import unknown
from hippo_core.models import checksums
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.parameters import AskingParameters, Resolved, check, resolve, with_model
from hippo_core.results.records import key_of, suite_folder
from hippo_core.suites.datasets import card
from hippo_core.suites.draw import CONTEXT_LIMIT
from hippo_core.suites.types import Regime

if TYPE_CHECKING:
    from hippo_core.protocols.base.experiment import Experiment

DATASETS = "01_build_datasets"
STORE = "store"  # the folder of a record that holds what was taught, and what cells that read it call their need
AXES = {  # what fields are called in a grid, where their plural does not say it
    "suites": "suite",
    "presets": "preset",
    "regimes": "regime",
    "sizes": "n",
    "profiles": "profile",
    "splits": "split",
    "encoders": "encoder",
}
LABEL_FIELDS = ("suite", "preset", "model", "n", "seed", "step")
AXIS_DEFAULTS = {"regime": ("immediate", "delayed")}
ENCODERS = ("own", "minilm")
MODULES = ("hippo_core.evaluation.table",)  # that rows of all of them pass


def dataset_plan(resolved: Resolved) -> CellPlan:
    """The cell of `01_build_datasets` that builds what such a cell reads; both splits at once."""
    parameters = resolved.parameters
    values: dict[str, Any] = {
        "run_id": parameters.run_id,
        "suites": [parameters.suite],
        "profile": parameters.profile,
        "n": parameters.items,
        "seed": parameters.seed,
        "context_limit": resolved.spec.context_limit if resolved.suite.uses_context_limit else CONTEXT_LIMIT,
        "overrides": [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())],
    }
    size = f"{parameters.items}_{parameters.seed}"
    return CellPlan(
        notebook=DATASETS,
        parameters=values,
        kind=f"{parameters.profile}-build",
        folder=("datasets", suite_folder(parameters.suite), size),
        label=" ".join([parameters.suite, "data", parameters.profile, size, *values["overrides"]]),
        inputs={"data": card.source(resolved.suite, resolved.settings)},
    )


def asking_plan(
    experiment: "Experiment",
    resolved: Resolved,
    needs: Mapping[str, CellPlan],
    step: str = "test",
    own: str = "",
) -> CellPlan:
    """The cell with these parameters. Of a method's settings it rests on those that its step depends on, and on the weights that the method
    declares; `own` is the checksum of a file of the user's own that it reads."""
    parameters, preset, spec, suite = resolved.parameters, resolved.preset, resolved.spec, resolved.suite
    asks = step == "test"
    kind = parameters.regime if asks else step
    usual = AskingParameters.model_fields
    extra = [getattr(parameters, name) for name in ("split", "model") if getattr(parameters, name) != usual[name].default]
    size = f"{parameters.n}_{parameters.seed}"
    settings = [preset.of_step(step), spec.model_dump(mode="json"), checksums.shots() if spec.shots else None]
    declared = preset.method.weights
    return CellPlan(
        experiment=experiment.name,
        notebook=experiment.notebook,
        parameters=parameters.model_dump(),
        kind=f"{parameters.regime}-{step}",
        folder=(parameters.preset, suite_folder(parameters.suite), size),
        label=" ".join([parameters.suite, parameters.preset, kind, size, *extra, *parameters.overrides]),
        condition=parameters.preset,
        step=step,
        needs=needs,
        modules=(experiment.run, *preset.modules, delivery_module(preset.settings.delivery), *MODULES),
        inputs={
            "data": next(iter(needs.values())).inputs["data"],
            "weights": checksums.weights(spec.name),
            "settings": checksums.digest(settings),
            **({"own": own} if own else {}),
            **({"fitted": checksums.fitted(declared, spec.name)} if declared else {}),
        },
        models=(spec.name,),
        encoders=preset.settings.requires,
        config={
            "items": parameters.items,
            "suite": {"name": suite.name, "primary": suite.primary, "settings": resolved.settings.model_dump(mode="json")},
            "preset": preset.described(),
            "model": spec.model_dump(mode="json"),
            "decoding": {"greedy": True, "max_new_tokens": suite.answer_budget, "use_chat_template": preset.settings.decoding == "short"},
        },
        expected=_expected(resolved, step) if asks and parameters.split == "test" else None,
    )


def plan(experiment: "Experiment", parameters: Any) -> CellPlan:
    """The cell of an experiment that needs its data set and nothing else."""
    resolved = resolve(parameters)
    return asking_plan(experiment, resolved, {"data": dataset_plan(resolved)})


def _expected(resolved: Resolved, step: str) -> dict[str, Any]:
    """A row of what the cell will hold, with as many worlds as its questions can come from."""
    parameters = resolved.parameters
    a_world = max(1, min(resolved.settings.n_items, resolved.settings.n_facts))  # questions, at least
    sections = {"preset": resolved.preset.described(), "suite": {"settings": resolved.settings.model_dump()}}
    key = key_of({**parameters.model_dump(), "step": step}, sections)
    return key | {"stage": "test", "item_id": "", "world": "", "n_worlds": -(-parameters.items // a_world)}


def variants(experiment: "Experiment", values: dict[str, Any], where: str) -> Iterator[Any]:
    """The parameters of a grid's values. `encoder` is an axis of presets that read one, `after_sleep` a regime of memories that have a
    replay. Where the other two regimes give the same prompts, the delayed cell stands for both."""
    values, _ = with_model(values)
    encoder, regime = values.pop("encoder", None), values.get("regime", "delayed")
    for axis, value, legal in (("encoder", encoder, ENCODERS), ("regime", regime, get_args(Regime))):
        if value is not None and value not in legal:
            raise unknown(f"{where}: {axis}", value, legal)
    delayed = resolve(check(experiment, {**values, "regime": "delayed"}, where))
    settings = delayed.preset.settings
    if regime == "after_sleep" and "replay" not in delayed.preset.method.steps:
        return
    if encoder and (getattr(settings, "encoder", encoder) != encoder or delayed.preset.auto_encoder):
        overrides = [*values.get("overrides", []), f"encoder={encoder}"]
        delayed = resolve(check(experiment, {**values, "regime": "delayed", "overrides": overrides}, where))
    once = delayed.ignores_window and regime != "after_sleep"
    yield delayed.parameters if once else delayed.changed(regime=regime).parameters
