"""The sandbox for inspect_ai, with a stand-in for inspect_ai's own names: it is not among what the lab installs."""

import asyncio
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.inspect_sandbox import register
from tests.protocols.paired.agents.conftest import MODES

pytestmark = pytest.mark.skipif(not MODES, reason="no containment here")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A sample's environment, as inspect_ai would make it."""

    @dataclass
    class ExecResult:
        success: bool
        returncode: int
        stdout: str
        stderr: str

    util: Any = ModuleType("inspect_ai.util")
    util.ExecResult, util.SandboxEnvironment = ExecResult, object
    util.sandboxenv = lambda name: lambda kind: setattr(kind, "name", name) or kind
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.util", util)
    kind: Any = register()
    assert kind.name == "hippo"
    made = asyncio.run(kind.sample_init("task", {"limits": {"processes": 30}}, {}))
    yield made["default"]
    workspace = made["default"].box.workspace
    asyncio.run(kind.sample_cleanup("task", None, made, False))
    assert not workspace.exists()


def test_commands_and_files_share_a_workspace(environment, tmp_path):
    async def use():
        await environment.write_file("folder/a.txt", "hello")
        await environment.write_file("b.bin", b"\xff")
        ran = await environment.exec(["sh", "-c", "cat folder/a.txt -; echo $X; exit 4"], input=" you", env={"X": "1"})
        assert (ran.success, ran.returncode, ran.stdout) == (False, 4, "hello you1\n")
        assert (await environment.exec(["pwd"], cwd="folder")).stdout.strip().endswith("/folder")
        assert await environment.read_file("b.bin", text=False) == b"\xff"
        assert await environment.read_file(environment.box.directory + "/folder/a.txt") == "hello"
        assert (await environment.exec(["no-such-program"])).returncode == 127

    asyncio.run(use())


def test_errors_are_those_that_inspect_expects(environment, tmp_path):
    async def use():
        await environment.exec(["sh", "-c", f"mkdir d; ln -s {tmp_path}/out link; printf '\\377' > bytes"])
        for call, error in (
            (environment.exec(["sleep", "9"], timeout=1), TimeoutError),
            (environment.exec(["cat", "bytes"]), UnicodeDecodeError),
            (environment.read_file("bytes"), UnicodeDecodeError),
            (environment.read_file("none"), FileNotFoundError),
            (environment.read_file("d"), IsADirectoryError),
            (environment.write_file("d", "x"), IsADirectoryError),
            (environment.read_file("link"), PermissionError),
            (environment.write_file("link", "x"), PermissionError),
            (environment.read_file("../x"), PermissionError),
            (environment.write_file("/etc/x", "x"), PermissionError),
        ):
            with pytest.raises(error):
                await call
        assert not (tmp_path / "out").exists()

    asyncio.run(use())


def test_without_inspect_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.util", None)
    with pytest.raises(LabError, match="not installed"):
        register()
