"""Warm kernels: Jupyter kernels forked from a process that has imported what experiments need (`KERNEL=warm`, the default of a grid).

    owner (papermill, JupyterLab, make grid)            fork server                      kernel
    WarmProvisioner --- one socket pair a kernel --->   has imported torch ...  --fork-> IPKernelApp, sockets of its own by ipc

`provisioner` is jupyter_client's extension point and the only thing that the lab's kernelspec names; `client` starts a server for this
process when it is first needed and hands orders to it; `server` is what runs there. A server ends with its owner and its kernels with it.
"""

import json
import socket
from typing import Any

NAME = "hippo-warm"  # of the kernelspec, and of the provisioner that it names


def read_line(end: socket.socket) -> dict[str, Any]:
    """The next line of JSON that comes out of a socket, and no byte behind it; empty where the other end has gone."""
    with end.makefile("rb", buffering=0) as stream:
        line = stream.readline()
    return json.loads(line) if line.endswith(b"\n") else {}
