"""Traces, stores, gates and the replay queue are there for whoever plans a grid, long before torch is loaded."""

import subprocess
import sys

MODULES = ("trace", "key", "gate", "gate_scores", "store", "replay")


def test_importing_them_loads_no_torch():
    code = f"import sys; import {', '.join(f'hippo_core.memory.{name}' for name in MODULES)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
