"""Models that answer a prompt, wherever they run: in this process, behind a command, behind an endpoint.

from hippo_core.providers import load_provider
load_provider("local:hippo-tiny").answer("Who has the lamp?", max_tokens=8)
"""

import re
from dataclasses import dataclass

from hippo_core.errors import unknown
from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.retry import RetryPolicy

LEGAL = ("local:MODEL", "claude[:MODEL]", "gemini[:MODEL]", "codex[:MODEL]", "openai:MODEL[@URL]", "ollama:MODEL[@URL]")


@dataclass(frozen=True)
class Reached:
    """What a provider would run or reach, "" where nothing: a program, a URL with the variable that holds its key, a model's weights."""

    program: str = ""
    url: str = ""
    key_env: str = ""
    model: str = ""


def reached(name: str, key_env: str = "") -> Reached:
    """What the provider of a name would run or reach; nothing is opened. LabError as of `load_provider`."""
    kind, _, rest = name.partition(":")
    if kind == "local" and rest:
        return Reached(model=rest)
    provider = load_provider(name, key_env=key_env, check=False)
    if program := getattr(provider, "argv", None):
        return Reached(program=program[0])
    return Reached(url=getattr(provider, "base", ""), key_env=getattr(provider, "key_env", ""))


def load_provider(name: str, policy: RetryPolicy | None = None, key_env: str = "", check: bool = True) -> Provider:
    """The provider of a name. `check`: whether its command, its key or its model must be there now, which a dry run does not need. LabError
    where there is no such provider, or it is not there; the message says what is legal."""
    from hippo_core.providers.command import COMMANDS, CommandProvider
    from hippo_core.providers.endpoint import KINDS, EndpointProvider

    kind, _, rest = name.partition(":")
    if kind in COMMANDS:
        return CommandProvider(kind, rest, policy, check)
    if kind == "local" and rest:
        from hippo_core.providers.local import LocalProvider  # loads torch

        return LocalProvider(rest, policy)
    if kind in KINDS:
        model_and_url = re.split(r"@(?=\w+://)", rest, maxsplit=1)  # a model's name may have an @ of its own
        return EndpointProvider(kind, *model_and_url, key_env=key_env, policy=policy, check=check)
    raise unknown("provider", name, LEGAL)
