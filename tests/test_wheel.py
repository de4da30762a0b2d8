"""A wheel, installed into a fresh environment and used from another folder: it has all that a library needs, and writes where it may."""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from hippo_core.text_files import listed

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("setup.py", "pyproject.toml", "hippo_core", "params", "data")
SHIPPED = "hippo_core/shipped/"
WEIGHTS = {f"data/weights/{name}" for name in ("hippo-tiny", "minilm", "relational", "smollm2-135m-reader")}
LINES, KERNELS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
TINY = LINES.replace("Memory()", 'Memory("hippo-tiny")')  # the reader needs a model that is downloaded
SCRIPT = """
import sys, hippo_core
assert "torch" not in sys.modules and hippo_core.__file__.startswith(sys.prefix), hippo_core.__file__
from hippo_core.files import home
from hippo_core.models.packages.pins import available
from hippo_core.models.spec import load_spec
from hippo_core.results.report.pages import SHARED
from hippo_core.suites.datasets.build import load_dataset
assert load_dataset("episodic", n=5)[0].facts and (SHARED / "page.html.j2").is_file()
before, place = available("smollm2-135m"), home() / "data/models/smollm2-135m"
place.mkdir(parents=True)
for name in ("config.json", "model.safetensors"):
    (place / name).write_text("{}")
assert before.endswith("run `hippo models`") and available("smollm2-135m") is None and load_spec("smollm2-135m").path == place
assert answer.read[0].text == "Ben gave the lamp to Carl.", answer.why
print(home())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built in a folder of links, so that nothing of the build is left in the checkout, and in one where files of an earlier build lie."""
    folder, out = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        (folder / name).symlink_to(ROOT / name)
    stale = folder / "build/lib/hippo_core/gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", str(out)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel, and with the libraries of this one by a line that does not start its editable install."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder)
    python = str(folder / "bin/python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "-q", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    packages = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return folder, packages


def called(installed, tmp_path, *words):
    """A command of the environment, run in another folder, as a user who has nothing set."""
    lab = {"PYTHONPATH", "HIPPO_ROOT", "HIPPO_DATA", "XDG_CACHE_HOME"}
    around = {name: value for name, value in os.environ.items() if name not in lab}
    around |= {"HOME": str(tmp_path), "HIPPO_ENCODER": "own", "HF_HUB_OFFLINE": "1"}
    command = [str(installed[0] / "bin" / words[0]), *words[1:]]
    return subprocess.run(command, cwd=tmp_path, env=around, capture_output=True, text=True, check=False)


def files_of(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_it_is_small_and_holds_what_a_library_reads_and_no_text_of_others(wheel):
    assert wheel.stat().st_size <= 32_000_000  # the readers of relations and of places are nine of them
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        checksums = {hashlib.sha256(file.read(name)).hexdigest() for name in names}
    shipped = {name.removeprefix(SHIPPED) for name in names if name.startswith(SHIPPED)}
    params = {path.relative_to(ROOT).as_posix() for path in (ROOT / "params").rglob("*.yaml") if path.parent.name != "clusters"}
    weights = {path.relative_to(ROOT).as_posix() for folder in WEIGHTS for path in (ROOT / folder).glob("[!.]*")}
    left = (".png",)  # pictures of trainings
    weights = {path for path in weights if not any(part in path for part in left)}
    words = [path for name in ("notes", "reworded", "relations", "lessons") for path in (ROOT / "data" / name).rglob("*.yaml")]
    notes = {path.relative_to(ROOT).as_posix() for path in words}
    paired = {path.relative_to(ROOT).as_posix() for path in files_of(ROOT / "data/paired") if path.is_file()}
    assert shipped == params | weights | notes | paired
    code = {path.relative_to(ROOT).as_posix() for path in files_of(ROOT / "hippo_core") if path.is_file()}
    assert {name for name in names if not name.startswith((SHIPPED, "hippo_core-"))} == code
    assert checksums.isdisjoint(entry.sha256 for entry in listed().files.values())


def test_what_is_listed_as_installed_is_all_there_is(wheel):
    with zipfile.ZipFile(wheel) as file:
        [record] = [name for name in file.namelist() if name.endswith("/RECORD")]
        assert {line.split(",")[0] for line in file.read(record).decode().splitlines()} == set(file.namelist())


def test_it_loads_and_remembers_from_another_folder_and_writes_to_the_user_s_own(installed, tmp_path):
    before = files_of(installed[1])
    check, _, script = SCRIPT.partition("from hippo_core.files")
    ran = called(installed, tmp_path, "python", "-c", f"{check}\n{TINY}\nfrom hippo_core.files{script}")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == str(tmp_path / ".cache/hippo")
    assert list((tmp_path / "my_memory").rglob("traces.sqlite"))
    assert (tmp_path / ".cache/hippo/data/generated/episodic").is_dir()
    assert files_of(installed[1]) == before


def test_the_kernels_of_the_readme_run_where_the_lab_s_packages_are_missing(installed, tmp_path):
    blocked = "import sys\nsys.modules.update(dict.fromkeys(('pandas', 'yaml', 'pydantic', 'transformers')))\n"
    ran = called(installed, tmp_path, "python", "-c", f"{blocked}import torch\ntorch.manual_seed(1)\n{KERNELS}")
    output, likeness = ran.stdout.splitlines()
    assert output == "tensor(7)" and float(likeness.strip("tensor([])")) > 0.99, ran.stderr
    refused = called(installed, tmp_path, "python", "-c", f"{blocked}from hippo_core import Memory")
    assert "ImportError: hippo_core.Memory needs" in refused.stderr and "install hippo-core[lab]" in refused.stderr


def test_the_command_says_what_needs_a_checkout(installed, tmp_path):
    before = files_of(installed[1])
    help_page = called(installed, tmp_path, "hippo", "run", "--help")
    assert help_page.returncode == 0 and "preset=baselines/core" in help_page.stdout
    refused = called(installed, tmp_path, "hippo", "grid", "smoke")
    assert refused.returncode == 2
    assert re.fullmatch(r"hippo grid needs a checkout of the lab, this is a wheel; [^\n]*HIPPO_ROOT[^\n]*\n", refused.stderr)
    assert files_of(installed[1]) == before
