"""The kernelspec of warm kernels, put where this environment's Jupyter looks. `python -m hippo_core.lab.warm.spec` does it anew."""

import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager

from hippo_core.lab.warm import NAME


def install(again: bool = False) -> None:
    """Put it there unless one is there already."""
    manager = KernelSpecManager()
    if again or NAME not in manager.find_kernel_specs():
        manager.install_kernel_spec(str(Path(__file__).parent / "kernelspec"), NAME, prefix=sys.prefix)


if __name__ == "__main__":
    install(again=True)
