"""SIGTERM, as a cluster's scheduler sends it, stops a grid as Ctrl-C does."""

import signal
import time

import pytest

from tests.faults.conftest import LONG, leftovers
from tests.lab.running import ended, kernels_of, start

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seconds", [1.5, *([0] if LONG else [])])
def test_sigterm_ends_a_grid_and_its_kernels_with_one_line(fresh, temporary, seconds):
    running = start(fresh, "faults", TMPDIR=str(temporary))
    time.sleep(seconds)
    running.send_signal(signal.SIGTERM)
    stopped = ended(running)
    assert stopped.returncode == 143
    assert stopped.stderr.splitlines() == ["stopped (SIGTERM); what is finished is kept, call again to go on"]
    assert kernels_of(fresh) == []
    assert leftovers(fresh) == []
