"""The extension point of jupyter_client: kernels of a kernelspec that names `hippo-warm` are forked, and talk by ipc.

Every kernel has a folder of its own for its sockets, in that of its owner: by TCP two kernels can race for a port, and with
jupyter_client's own ipc default all kernels of a process share one path until they have connection files.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from jupyter_client.launcher import launch_kernel
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from hippo_core.lab.process_env import folder
from hippo_core.lab.warm import client


class WarmProvisioner(LocalProvisioner):
    """LocalProvisioner, but that the process is a fork of this process's fork server."""

    sockets: str | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Give the kernel's sockets a place; then as usual."""
        manager = self.parent
        if manager is not None and self.sockets is None:
            self.sockets = tempfile.mkdtemp(dir=folder())
            manager.transport, manager.ip = "ipc", str(Path(self.sockets) / "k")
            manager.cache_ports = False
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Have it forked, or started as an ordinary process where that is refused; in a thread, for a new server imports for seconds."""
        self.process = made = await asyncio.to_thread(_made, cmd, kwargs)
        self.pid = made.pid
        self.pgid = None if isinstance(made, client.ForkedKernel) else os.getpgid(made.pid)  # a fork is signalled by its server
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """As usual, and the sockets' folder goes."""
        await super().cleanup(restart)
        if self.sockets and not restart:
            shutil.rmtree(self.sockets, ignore_errors=True)
            self.sockets = None


def _made(cmd: list[str], kwargs: dict[str, Any]) -> client.ForkedKernel | subprocess.Popen[bytes]:
    """The kernel of a command: a fork, or an ordinary process where that is refused."""
    try:
        if cmd[:3] != [sys.executable, "-m", "ipykernel_launcher"]:
            raise client.ForkRefused(f"expected a command of this Python's ipykernel_launcher, got {' '.join(cmd[:3])}")
        if redirected := [name for name in ("stdin", "stdout", "stderr") if kwargs.get(name) is not None]:
            raise client.ForkRefused(f"{', '.join(redirected)} of its own")
        return client.launch(cmd[3:], dict(kwargs["env"]), str(kwargs.get("cwd") or Path.cwd()))
    except client.ForkRefused as error:
        warnings.warn(f"a cold kernel is started: {error}", stacklevel=2)
        return launch_kernel(cmd, **LocalProvisioner._scrub_kwargs(kwargs))
