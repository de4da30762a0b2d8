"""The extension point of jupyter_client: kernels of a kernelspec that names `hippo-warm` are forked, and talk by ipc.

Every kernel has a folder of its own for its sockets, in that of its owner: by TCP two kernels can race for a port, and with
jupyter_client's own ipc default all kernels of a process share one path until they have connection files.
"""

import asyncio
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from hippo_core.lab.run.process_env import folder
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
        """Fork it; an ordinary process where that is refused."""
        try:
            python, argv = _parts(cmd)
            if redirected := [name for name in ("stdin", "stdout", "stderr") if kwargs.get(name) is not None]:
                raise client.Refused(f"{', '.join(redirected)} of its own")
            ask = partial(client.launch, python, argv, dict(kwargs["env"]), str(kwargs.get("cwd") or Path.cwd()))
            self.process = await asyncio.get_running_loop().run_in_executor(None, ask)
        except client.Refused as error:
            warnings.warn(f"a cold kernel is started: {error}", stacklevel=2)
            return await super().launch_kernel(cmd, **kwargs)
        self.pid, self.pgid = self.process.pid, None  # signals go by the server, which knows whether the process is still there
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """As usual, and the sockets' folder goes."""
        await super().cleanup(restart)
        if self.sockets and not restart:
            shutil.rmtree(self.sockets, ignore_errors=True)
            self.sockets = None


def _parts(cmd: list[str]) -> tuple[str, list[str]]:
    """The interpreter of a kernel's command and the arguments of ipykernel; Refused where it is another kind of kernel."""
    if cmd[1:3] != ["-m", "ipykernel_launcher"]:
        raise client.Refused(f"expected a command of ipykernel_launcher, got {' '.join(cmd[:3])}")
    return cmd[0], cmd[3:]
