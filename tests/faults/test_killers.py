"""Agents that kill whatever they may, while their time runs out: none of them outlives it."""

import os
import subprocess
import time

import pytest

from hippo_core.protocols.paired.agents.containment import Containment, ContainmentMode, free_uid
from hippo_core.protocols.paired.agents.sandbox_init import kill_as
from hippo_core.protocols.paired.items import Limits
from tests.faults.conftest import LONG
from tests.protocols.paired.agents.conftest import MODES, alive

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
FORKING = (
    KILLER
    + """
    if os.fork():
        os._exit(0)
"""
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_one_call_kills_a_killer():
    """Without Landlock, and without a second attempt."""
    for _ in range(TRIALS):
        uid, killer = free_uid(), free_uid()
        loop = ["/bin/sh", "-c", "while :; do kill -9 -1; done 2> /dev/null"]
        victim = subprocess.Popen(loop, user=uid, group=uid, extra_groups=[], cwd="/")
        time.sleep(0.1)
        if not (child := os.fork()):
            kill_as(uid, killer)
        os.waitpid(child, 0)
        assert victim.wait(5) == -9 and alive(uid) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("code", [KILLER, FORKING, KILLER.replace("os._exit(0)", "while True: os.kill(-1, signal.SIGCONT)", 1)])
def test_a_killer_is_killed(code: str, mode: ContainmentMode):
    for _ in range(TRIALS):
        with Containment.open(mode=mode, limits=Limits(processes=40)) as box:
            ran = box.run([box.python, "-c", code], seconds=0.4)
            assert ran.ended in ("exit", "timeout") and ran.seconds < 10 and alive(box.uid) == []
