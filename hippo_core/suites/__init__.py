"""The suites by name, and what each can be told: profiles from `params/suites/<suite>.yaml`, with overrides on top."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hippo_core.files import LabError, read_yaml, root, unknown
from hippo_core.suites.babi import BABI
from hippo_core.suites.episodic import EPISODIC, EPISODIC_CAPACITY, EPISODIC_CROSS
from hippo_core.suites.folder import folder_suite, is_own
from hippo_core.suites.multi import EPISODIC_MULTI
from hippo_core.suites.semantic import SEMANTIC
from hippo_core.suites.spatial import SPATIAL
from hippo_core.suites.types import Settings, Suite

ALL = (EPISODIC, EPISODIC_MULTI, EPISODIC_CROSS, EPISODIC_CAPACITY, SEMANTIC, SPATIAL, BABI)
SUITES: dict[str, Suite] = {suite.name: suite for suite in ALL}
PROFILES = ("base", "default", "hard")


def get_suite(name: str) -> Suite:
    """The suite of this name, or the user's own: `folder:PATH`."""
    if is_own(name):
        return folder_suite(name)
    if name not in SUITES:
        raise unknown("suite", name, [*SUITES, "folder:PATH"])
    return SUITES[name]


def profile_settings(suite_name: str, profile: str) -> dict[str, Any]:
    """What the profile says; the user's own folders have no profiles but `default`, which says nothing."""
    path = root() / f"params/suites/{suite_name}.yaml"
    profiles = {"default": {}} if is_own(suite_name) else read_yaml(path)
    if not isinstance(profiles, dict) or not all(isinstance(values, dict) for values in profiles.values()):
        raise LabError(f"{path}: expected profiles ({', '.join(PROFILES)}), each a mapping of settings")
    if profile not in profiles:
        raise unknown(f"profile of suite {suite_name}", profile, profiles)
    return profiles[profile]


def settings_for(suite_name: str, profile: str = "default", overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of a suite under a profile. An unknown key or a wrong type is an error that says what is legal."""
    model = get_suite(suite_name).settings
    values = {**profile_settings(suite_name, profile), **(overrides or {})}
    for key in values:
        if key not in model.model_fields:
            raise unknown(f"setting of suite {suite_name}", key, model.model_fields)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LabError(f"suite {suite_name}, profile {profile}: {where}: {first['msg']}, got {first['input']!r}") from None
