"""Run a run again, from what it says of itself, and see whether every answer is the same.

A record may come from anybody. So nothing in it chooses a program, a module, a URL, a variable of the environment or a folder of weights:
whoever runs it again allows each of these anew, and gets a list of all that are missing before anything is opened.
"""

import shlex
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hippo_core.errors import LabError
from hippo_core.models.spec import model_names
from hippo_core.plugins import is_path
from hippo_core.protocols.paired.agents.run import Permissions, run_all_items
from hippo_core.protocols.paired.comparison import require_same
from hippo_core.protocols.paired.conditions import MEMORY
from hippo_core.protocols.paired.run_files import PairedRun
from hippo_core.protocols.paired.settings import COMMAND, restored
from hippo_core.protocols.paired.suite import PairedSuite
from hippo_core.providers import reached
from hippo_core.results.formatting import missing

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

SAME = ("place", "success", "answer", "ranking", "tokens_in", "tokens_out", "error")


@dataclass(frozen=True)
class Allowed:
    """What the caller allows of what a record names. `shell`: the suite's commands (contained), and a program as memory or answerer (not
    contained); `imports`: a memory `package.module:NAME`; `urls`: of endpoints, whole or HOST:PORT; `variables`: of the environment, for a
    key or for agents; `models`: that are not the lab's own."""

    shell: bool = False
    imports: bool = False
    urls: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


def reproduce(
    old: PairedRun, suite: PairedSuite, lm: "str | LanguageModel", log: Callable[[str], None] = print, allowed: Allowed | None = None
) -> list[tuple[str, str, str]]:
    """Run it again with its settings, and list what differs: entry, condition, column. What agents leave is thrown away. LabError where the
    suite is no longer the same, or the run asks for what is not allowed."""
    allowed = allowed or Allowed()
    require_allowed(old, suite, allowed)
    require_same(old, PairedRun(old.folder, {"checksums": suite.checksums}, old.rows))
    agents = old.about.get("agents") or {}
    passed, agent, sandbox = agents.get("passed", ()), agents.get("agent", ""), agents.get("sandbox", "")
    permitted = Permissions(allowed.shell, passed=tuple(passed), agent=agent, sandbox=sandbox)
    with tempfile.TemporaryDirectory(prefix="hippo-paired-") as folder:
        rows = run_all_items(suite, restored(old.about["settings"]), lm, Path(folder, "tasks"), permitted, log)
    before = {(row["entry"], row["condition"]): row for row in old.rows.to_dict("records")}
    after = {(row["entry"], row["condition"]): row for row in rows}
    differing = [(*key, "there once") for key in before.keys() ^ after.keys()]
    for key in before.keys() & after.keys():
        differing += [(*key, name) for name in SAME if not _equal(before[key][name], after[key][name])]
    return sorted(differing)


def require_allowed(old: PairedRun, suite: PairedSuite, allowed: Allowed) -> None:
    """LabError that lists all that the run and its suite ask for and nobody allowed, each with the flag that allows it."""
    if lacking := [f"{what} ({flag})" for what, flag, granted in _asked_for(old, suite, allowed) if not granted]:
        raise LabError(f"{old.folder} asks for {'; '.join(lacking)}. A record may not choose these; read it, then allow them")


def _asked_for(old: PairedRun, suite: PairedSuite, allowed: Allowed) -> Iterator[tuple[str, str, bool]]:
    """What it is, the flag that allows it, and whether it is allowed."""
    settings, agents = restored(old.about["settings"]), old.about.get("agents") or {}
    models, variables = [old.about.get("model", "")], list(agents.get("passed", ()))
    if suite.shell:
        yield f"the commands of {suite.folder}", "--allow-shell", allowed.shell
    if MEMORY in settings.conditions and settings.memory.startswith(COMMAND):
        yield f"the program {settings.memory.removeprefix(COMMAND)!r}", "--allow-shell", allowed.shell
    elif MEMORY in settings.conditions and is_path(settings.memory):
        yield f"an import of {settings.memory}", "--allow-import", allowed.imports
    if agents.get("agent"):
        yield f"the agent {agents['agent']!r}", "--allow-shell", allowed.shell
    if settings.provider:
        endpoint = reached(settings.provider, settings.key_env)
        if endpoint.program:
            yield f"the program {endpoint.program!r}", "--allow-shell", allowed.shell
        if endpoint.url:
            granted = {endpoint.url, urlsplit(endpoint.url).netloc} & {url.rstrip("/") for url in allowed.urls}
            yield f"the URL {endpoint.url!r}", f"--allow-url {shlex.quote(endpoint.url)}", bool(granted)
        models.append(endpoint.model)
        variables.append(endpoint.key_env)
    for name in filter(None, variables):
        yield f"the variable {name!r}", f"--key-env or --pass-env {shlex.quote(name)}", name in allowed.variables
    for name in filter(None, models):
        yield f"the model {name!r}", f"--model {shlex.quote(name)}", name in {*model_names(), *allowed.models}


def _equal(a: object, b: object) -> bool:
    return a == b or (missing(a) and missing(b))
