"""The kernels of this process: made ready before the first cell, ended after the last."""

from collections.abc import Iterable
from dataclasses import replace

import psutil

from hippo_core.lab.run.execute import ExecutionOptions
from hippo_core.lab.warm import client
from hippo_core.suites.datasets.build import sweep


def prepared(execution: ExecutionOptions, cells: int, models: Iterable[str]) -> ExecutionOptions:
    """The same, with the server of warm kernels started, for so many cells with these models; with cold ones where two are not worth it."""
    if execution.kernel == "cold" or (cells <= 2 and not client.running()):
        return replace(execution, kernel="cold")
    start_server(models)
    return execution


def start_server(models: Iterable[str]) -> None:
    """Start the server of warm kernels, which loads these models."""
    from hippo_core.lab.warm import spec  # imports jupyter_client, which other commands do without

    spec.install()
    for model in models:
        client.want(model)
    client.reopen()
    client.start()


def end_kernels(patience: float = 5.0) -> None:
    """End the kernels that this process has started, the forked ones at once, the others kindly first, and the data sets that they were
    building."""
    client.close()
    kernels = [child for child in psutil.Process().children() if _is_kernel(child)]
    for kernel in kernels:
        kernel.terminate()
    _, alive = psutil.wait_procs(kernels, timeout=patience)
    for kernel in alive:
        kernel.kill()
    psutil.wait_procs(alive, timeout=patience)
    sweep()


def _is_kernel(process: psutil.Process) -> bool:
    try:
        return any("ipykernel" in word for word in process.cmdline())
    except psutil.Error:
        return False
