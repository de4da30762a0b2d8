"""Traces, stores, gates and the replay queue are there for whoever plans a grid, long before torch is loaded."""

import subprocess
import sys

MODULES = (
    "store",
    "store.trace",
    "retrieval.sparse_key",
    "methods.episodic.gate",
    "methods.episodic.replay",
)


def test_importing_them_loads_no_torch():
    code = f"import sys; import {', '.join(f'hippo_core.{name}' for name in MODULES)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
