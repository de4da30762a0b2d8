"""A sandbox for inspect_ai without Docker: `sandbox="hippo"`, the same containment as agent tasks have. Needs inspect_ai installed.

    from hippo_core.protocols.paired.agents.inspect_sandbox import register
    register()

https://inspect.aisi.org.uk/extensions-sandboxes.html. Each sample gets one empty workspace. Of a command nothing outlives it, so tools that
keep a server running in the sandbox do not work. Files are read and written in the workspace only.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import Any

from hippo_core.errors import LabError
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.agents.containment import Containment
from hippo_core.protocols.paired.agents.workspace import MOST, read, relative, temporary
from hippo_core.protocols.paired.items import Limits, StrictModel

LONGEST = 86_400.0  # seconds of a command for which no timeout is named
OUTPUT = 10.0  # megabytes of each stream; inspect_ai's own limit


class SandboxConfig(StrictModel):
    """What a sandbox may be told."""

    limits: Limits = Limits()
    network: bool = False


def settings(config: Any) -> SandboxConfig:
    """A sandbox's configuration, a mapping or an object with `limits` and `network`; LabError for another key."""
    if isinstance(config, str):
        raise LabError(f"sandbox hippo: expected limits and network as values, got the file {config!r}")
    values = dict(config or {}) if isinstance(config, Mapping | None) else config.model_dump()
    limits = {"output": OUTPUT} | dict(values.get("limits") or {})
    return validated(SandboxConfig, values | {"limits": limits}, "sandbox hippo")


def register() -> type:
    """Make `sandbox="hippo"` known to inspect_ai; returns the class. LabError where inspect_ai is not installed."""
    try:
        from inspect_ai.util import ExecResult, SandboxEnvironment, sandboxenv  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise LabError("inspect_ai is not installed in this Python; pip install inspect-ai") from None

    class HippoSandbox(SandboxEnvironment):
        """A sample's environment: one containment around an empty workspace."""

        def __init__(self, config: SandboxConfig) -> None:
            super().__init__()
            self.stack = ExitStack()
            folder = self.stack.enter_context(temporary("hippo-sandbox."))
            folder.chmod(0o711)
            (folder / "workspace").mkdir()
            self.box = self.stack.enter_context(Containment.open(folder / "workspace", limits=config.limits, network=config.network))

        @classmethod
        async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, Any]:
            return {"default": cls(settings(config))}

        @classmethod
        async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool) -> None:
            for environment in environments.values():
                environment.stack.close()

        async def exec(
            self,
            cmd: list[str],
            input: str | bytes | None = None,
            cwd: str | None = None,
            env: dict[str, str] | None = None,
            user: str | None = None,
            timeout: int | None = None,
            timeout_retry: bool = True,
            concurrency: bool = True,
        ) -> Any:
            stdin = input.encode() if isinstance(input, str) else input or b""
            where = None if cwd is None else str(PurePosixPath(self.box.directory) / cwd)
            seconds = LONGEST if timeout is None else float(timeout)
            try:
                ran = await asyncio.to_thread(self.box.run, cmd, stdin, env, seconds, where)
            except LabError as error:
                if "PermissionError" in str(error):
                    raise PermissionError(str(error)) from None
                return ExecResult(False, 127, "", str(error))  # no such program, as a shell says it
            if ran.ended == "timeout":
                raise TimeoutError(ran.why)
            status = -9 if ran.status is None else ran.status
            stderr = ran.stderr.decode("utf-8") + (f"{ran.why}\n" if ran.status is None else "")
            return ExecResult(status == 0, status, ran.stdout.decode("utf-8"), stderr)

        async def write_file(self, file: str, contents: str | bytes) -> None:
            """By a contained command, so that a link which an agent left leads nowhere outside."""
            path = f"{self.box.directory}/{_path(self.box, file)}"
            content = contents.encode() if isinstance(contents, str) else contents
            line = 'mkdir -p -- "$(dirname -- "$1")" && if [ -d "$1" ]; then exit 21; fi; cat > "$1"'
            ran = await asyncio.to_thread(self.box.run, ["/bin/sh", "-c", line, "sh", path], content)
            if ran.status == 21:
                raise IsADirectoryError(file)
            if ran.status != 0:
                raise PermissionError(f"{file}: {ran.stderr.decode(errors='replace').strip() or ran.why}")

        async def read_file(self, file: str, text: bool = True) -> str | bytes:
            path = _path(self.box, file)
            target = self.box.workspace / path
            if not os.path.lexists(target):
                raise FileNotFoundError(file)
            if target.is_dir() and not target.is_symlink():
                raise IsADirectoryError(file)
            try:
                content = read(self.box.workspace, path)
            except LabError as error:
                raise PermissionError(f"{error} (at most {MOST} bytes, no links)") from None
            return content.decode("utf-8") if text else content

    return sandboxenv(name="hippo")(HippoSandbox)


def _path(box: Containment, file: str) -> str:
    """A path below the workspace; PermissionError for one that leads elsewhere."""
    given = PurePosixPath(file)
    if given.is_absolute() and given.is_relative_to(box.directory):
        given = given.relative_to(box.directory)
    try:
        return str(relative(str(given)))
    except LabError as error:
        raise PermissionError(str(error)) from None
