"""The suites by name, and their settings: profiles from `params/suites/<suite>.yaml`, with overrides on top."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from hippo_core.discovery import members
from hippo_core.errors import LabError, unknown
from hippo_core.files import read_yaml, root
from hippo_core.plugins import imported, is_path
from hippo_core.suites.folder import folder_suite, is_own
from hippo_core.suites.types import Settings, Suite

PROFILES = ("base", "default", "hard")


def suite_names() -> tuple[str, ...]:
    """The names of the lab's own suites, in the order of tables: each is a `Suite` in a module of this folder."""
    return tuple(members(__name__, "Suite"))


def drawn_suites() -> tuple[str, ...]:
    """The names of the suites that draw their worlds. The others read files: data/notes, or the user's folder (data/README.md)."""
    return tuple(name for name in suite_names() if get_suite(name).make_world)


def suite_constants(name: str) -> Mapping[str, Any]:
    """The constants that a suite of ours gives itself (`order`, `asks`); none for the user's own."""
    member = members(__name__, "Suite").get(name)
    return member.constants if member else {}


def get_suite(name: str) -> Suite:
    """The suite of this name, or the user's own: `folder:PATH`, or `package.module:NAME`."""
    if is_own(name):
        return folder_suite(name)
    ours = members(__name__, "Suite")
    path = ours[name].path if name in ours else name
    if not is_path(path):
        raise unknown("suite", name, [*ours, "folder:PATH", "package.module:NAME"])
    suite = imported(path, f"suite {path}")
    if not isinstance(suite, Suite):
        raise LabError(f"suite {path} is no hippo_core.suites.types.Suite")
    if name not in ours and (suite.name in ours or not suite.name.replace("_", "").replace("-", "").isalnum()):
        raise LabError(f"suite {path} is called {suite.name!r}; expected letters, digits, - and _, and none of {', '.join(ours)}")
    return replace(suite, module=path.partition(":")[0])


def profile_settings(suite_name: str, profile: str) -> dict[str, Any]:
    """The settings of a profile; without a file, `default` has none."""
    path = root() / f"params/suites/{get_suite(suite_name).name}.yaml"
    profiles = read_yaml(path) if path.is_file() else {"default": {}}
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
