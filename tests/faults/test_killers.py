"""Agents that kill whatever they may, while their time runs out: none of them outlives it."""

import pytest

from hippo_core.paired.agents.containment import Containment, Way
from hippo_core.paired.agents.limits import Limits
from tests.faults.conftest import LONG
from tests.paired.agents.conftest import WAYS, alive

TRIALS = 14 if LONG else 2
KILLER = """
import os, signal
if os.fork():
    os._exit(0)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
"""
FORKING = KILLER + """
    if os.fork():
        os._exit(0)
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", [KILLER, FORKING, KILLER.replace("os._exit(0)", "while True: os.kill(-1, signal.SIGCONT)", 1)])
def test_a_killer_is_killed(code: str, way: Way):
    for _ in range(TRIALS):
        with Containment.open(way=way, limits=Limits(processes=40)) as box:
            ran = box.run([box.python, "-c", code], seconds=0.4)
            assert ran.ended in ("exit", "timeout") and ran.seconds < 10 and alive(box.uid) == []
