"""Warm kernels: forked, apart from each other, told to end by their owner and ended with it, replaced where the code is new."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import papermill
import psutil
import pytest
from jupyter_client.manager import AsyncKernelManager

from hippo_core.files import locked_folder
from hippo_core.lab.grid.executors.local import end_kernels
from hippo_core.lab.warm import NAME, client, server, spec

# A server that imports no more than a kernel needs: for tests of how servers end and begin, of which each needs another.
FEW = ("IPython.core.interactiveshell", "ipykernel.kernelapp", "ipykernel.ipkernel")
BARE = client.START.replace("import main", f"import main; import hippo_core.lab.warm.server as server; server.MODULES = {FEW!r}")


@pytest.fixture(autouse=True, scope="module")
def kernelspec():
    spec.install(again=True)
    client.reopen()
    yield
    client.close()


@pytest.fixture
def bare(monkeypatch):
    """Servers that start in this test import little."""
    monkeypatch.setattr(client, "START", BARE)


def has_ended(pid, patience=20.0):
    """Whether a process ends in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def notebook(folder, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}, "language_info": {"name": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path := folder / "in.ipynb")
    return path


def run(source, target, kernel=NAME, **parameters):
    made = papermill.execute_notebook(str(source), str(target), parameters=parameters, kernel_name=kernel, progress_bar=False)
    return ["".join(output.get("text", "") for output in cell.outputs).strip() for cell in made.cells if cell.cell_type == "code"]


async def a_kernel():
    manager = AsyncKernelManager(kernel_name=NAME)
    await manager.start_kernel()
    talk = manager.client()
    talk.start_channels()
    await talk.wait_for_ready(timeout=60)
    return manager, talk


async def ask(talk, code):
    """What a kernel prints."""
    texts = []
    await talk.execute_interactive(code, output_hook=lambda message: texts.append(message["content"].get("text", "")), timeout=60)
    return "".join(texts).strip()


def with_a_kernel(use):
    """Start a kernel, use it, shut it down."""

    async def scene():
        manager, talk = await a_kernel()
        try:
            return await use(manager, talk)
        finally:
            talk.stop_channels()
            await manager.shutdown_kernel(now=True)

    return asyncio.run(scene())


def test_a_kernel_is_a_fork_that_has_its_imports_and_the_owner_s_surroundings(tmp_path, monkeypatch):
    monkeypatch.setenv("A_WORD", "of the owner's")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    code = "import os, sys\nprint('torch' in sys.modules, os.getppid(), os.getcwd(), os.environ['A_WORD'])\n"
    code += "import torch\nprint(torch.get_num_threads())"
    path = notebook(tmp_path, "x = 1", code)
    seen = run(path, tmp_path / "out.ipynb")[-1].split("\n")
    assert seen == [f"True {client.start().process.pid} {os.getcwd()} of the owner's", "3"]


def test_a_warm_kernel_says_what_a_cold_one_says(tmp_path):
    path = notebook(
        tmp_path,
        "x = 1",
        "print(sorted(globals()))",
        "import sys\nprint(sys.path)",
        "import os, locale\nprint(sys.argv[1:2], sorted(os.environ), locale.getlocale(), sys.flags, sys.stdin)",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint(plt.get_backend())",
    )
    outputs = [
        nbformat.read(tmp_path / f"{kernel}.ipynb", 4).cells
        for kernel in ("python3", NAME)
        if run(path, tmp_path / f"{kernel}.ipynb", kernel)
    ]
    cold, warm = (
        [[(output.output_type, output.get("text"), sorted(output.get("data", {}))) for output in cell.outputs] for cell in cells]
        for cells in outputs
    )
    assert warm == cold and len([text for text in warm if text]) == 4


def test_kernels_have_nothing_of_each_other(tmp_path):
    code = "import builtins, random, uuid, numpy\nprint(getattr(builtins, 'left', None), x, uuid.uuid4(), random.random(), "
    code += "numpy.random.rand())\nbuiltins.left = x"
    path = notebook(tmp_path, "x = 0", code)
    with ThreadPoolExecutor(3) as pool:
        outputs = list(pool.map(lambda x: run(path, tmp_path / f"{x}.ipynb", x=x)[-1].split(), range(6)))
    assert [(left, x) for left, x, *_ in outputs] == [("None", str(x)) for x in range(6)]
    assert [len(set(drawn)) for drawn in zip(*outputs, strict=True)][2:] == [6, 6, 6]


HEARS = "import pathlib, time\ntry:\n    pathlib.Path({!r}).touch()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('heard')"


def test_it_can_be_interrupted_restarted_and_ended(tmp_path):
    begun = tmp_path / "begun"

    async def use(manager, talk):
        first = int(await ask(talk, "import os; print(os.getpid())"))
        asking = asyncio.ensure_future(ask(talk, HEARS.format(str(begun))))
        while not begun.exists():
            await asyncio.sleep(0.05)
        await manager.interrupt_kernel()
        answer = await asking
        await manager.restart_kernel(now=True)
        await talk.wait_for_ready(timeout=60)
        second = int(await ask(talk, "import os; print(os.getpid())"))
        return first, answer, second, Path(manager.ip).parent

    first, answer, second, folder = with_a_kernel(use)
    assert answer == "heard"
    assert first != second
    assert has_ended(first) and has_ended(second)
    assert not folder.exists()


def test_a_kernel_that_dies_is_seen_with_its_signal():
    async def use(manager, talk):
        os.kill(int(await ask(talk, "import os; print(os.getpid())")), signal.SIGKILL)
        return await asyncio.wait_for(manager.provisioner.wait(), 20)

    assert with_a_kernel(use) == -signal.SIGKILL


def test_a_server_that_is_killed_takes_its_kernels_and_the_next_kernel_has_another(bare):
    async def use(manager, talk):
        pid, old = int(await ask(talk, "import os; print(os.getpid())")), client.start().process
        old.kill()
        ended = await asyncio.wait_for(manager.provisioner.wait(), 20)
        return has_ended(pid), ended, old.pid

    dead, ended, old = with_a_kernel(use)
    assert dead and ended != 0
    assert with_a_kernel(lambda _, talk: ask(talk, "import os; print(os.getppid())")) == str(client.start().process.pid) != str(old)


def test_an_owner_that_is_killed_leaves_nothing_behind():
    code = (
        "import asyncio, os, sys\nfrom tests.lab.warm.test_kernels import BARE, a_kernel, ask, client\nclient.START = BARE\n"
        "async def scene():\n    _, talk = await a_kernel()\n"
        "    print(await ask(talk, 'import os; print(os.getpid(), os.getppid())'), flush=True)\n    await asyncio.sleep(60)\n"
        "asyncio.run(scene())"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    kernel, forker = map(int, owner.stdout.readline().split())
    owner.kill()
    owner.wait()
    assert has_ended(kernel) and has_ended(forker)


def test_kernels_that_are_ended_leave_no_half_data_set_and_others_keep_theirs(tmp_path, monkeypatch, bare):
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    parent = tmp_path / "data/generated/episodic/default"
    parent.mkdir(parents=True)
    elsewhere, descriptor = locked_folder(parent, ".4_1.")

    async def use(manager, talk):
        await ask(
            talk, f"from pathlib import Path\nfrom hippo_core.files import locked_folder\nlocked_folder(Path({str(parent)!r}), '.4_2.')"
        )
        n_left = len(list(parent.iterdir()))
        end_kernels()
        client.reopen()
        return n_left

    assert with_a_kernel(use) == 2
    assert list(parent.iterdir()) == [elsewhere]
    os.close(descriptor)


def test_code_that_has_changed_gets_a_new_server(bare):
    old = client.start()
    with_a_kernel(lambda _, talk: ask(talk, "1"))  # it has done its imports by now
    path = Path(server.__file__)
    stamp = path.stat()
    try:
        os.utime(path)
        assert with_a_kernel(lambda _, talk: ask(talk, "import os; print(os.getppid())")) == str(client.start().process.pid)
        assert client.start() is not old
    finally:
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_a_server_with_threads_forks_nothing(monkeypatch):
    """A fork would have the thread's locks and not the thread."""
    monkeypatch.setattr(server, "_threads", lambda: 4)
    ours, theirs = socket.socketpair()
    line, its_line = socket.socketpair()
    asked = server.Server(theirs, source=server.newest_source())
    line.sendall(b'{"argv": [], "env": {}, "cwd": "/", "models": []}\n')
    assert asked._take(its_line) is None
    assert client.read_line(line) == {"refused": "4 threads run in the fork server"}
    ours.close()


def test_where_no_fork_is_to_be_had_an_ordinary_kernel_is_started(monkeypatch):
    def refuse(*_):
        raise client.ForkRefused("none today")

    monkeypatch.setattr(client, "launch", refuse)
    with pytest.warns(UserWarning, match="a cold kernel is started: none today"):
        assert with_a_kernel(lambda _, talk: ask(talk, "import os; print(os.getppid())")) == str(os.getpid())


@pytest.mark.long
def test_a_wanted_model_is_loaded_once_for_all_forks_and_is_the_same(bare):
    client.want("hippo-tiny")
    client.want("no-such-model")  # the kernel that asks for it says so
    code = (
        "from hippo_core.models.load import _preloaded, load\nfrom hippo_core.models.spec import load_spec\n"
        "spec = load_spec('hippo-tiny')\nthere = len(_preloaded)\nlm = load(spec, threads=1)\nagain = load(spec)\n"
        "weight, other = (next(iter(each.model.parameters())) for each in (lm, again))\nsame = bool((weight == other).all())\n"
        "weight.data.zero_()\nprint(there, lm is not again, same, float(weight.data.sum()))"
    )
    for _ in range(2):  # what the first fork does to the weights the second does not see
        assert with_a_kernel(lambda _, talk: ask(talk, code)) == "1 True True 0.0"
