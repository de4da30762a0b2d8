"""The lock, pyproject.toml and environment.yml give the same versions; the Makefile and CI do what they say."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


def name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text.partition("[")[0]).lower()


def pins(lines: list[str]) -> dict[str, str]:
    versions = {}
    for line in lines:
        package, equals, version = line.partition(";")[0].partition("==")  # behind it: on which systems
        assert equals and re.fullmatch(r"[0-9][0-9A-Za-z.]*", version), (
            f"{line} is not pinned as name==version, without a local tag or a hash"
        )
        versions[name(package)] = version
    return versions


def direct(project):
    extras = project["optional-dependencies"]
    return project["dependencies"] + extras["lab"] + extras["dev"]


@pytest.fixture(scope="module")
def lock():
    return pins((ROOT / "requirements.lock").read_text().splitlines())


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_pyproject_has_the_versions_of_the_lock(lock, project):
    pinned = pins(direct(project))
    assert {package: lock.get(package) for package in pinned} == pinned


def test_conda_has_the_same_direct_versions(project):
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python = next(entry for entry in environment["dependencies"] if isinstance(entry, str) and entry.startswith("python"))
    listed = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert python == "python=3.11"
    assert listed[0] == "--constraint requirements.lock"
    assert pins(listed[1:]) == pins(direct(project))


def test_torch_is_the_agreed_version(lock):
    assert lock["torch"] == "2.13.0"


def test_the_lock_holds_all_that_the_direct_dependencies_need(lock, project):
    from importlib.metadata import distribution

    from packaging.requirements import Requirement

    waiting, seen = list(pins(direct(project))), set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        needs = [Requirement(text) for text in distribution(package).requires or ()]
        waiting += [name(need.name) for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    free = {"pip", "setuptools"} | {package for package in seen if package.startswith(("nvidia-", "cuda-")) or package == "triton"}
    assert seen - set(lock) - free == set()


def test_ci_is_lint_and_tests():
    assert (ROOT / ".ci/run").read_text() == "make lint test\n"


def test_help_has_a_line_for_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    output = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in output.splitlines()} == targets
    wanted = "datasets base-model base-model-card eval-baselines grid grid-plan report lab lint test bench clean"
    assert set(wanted.split()) <= targets


def test_the_command_hippo_is_the_lab_s_command_line(project):
    from hippo_core.__main__ import main

    assert EntryPoint("hippo", project["scripts"]["hippo"], "console_scripts").load() is main


def test_outside_the_environment_the_command_line_says_where_it_is():
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-S", "-m", "hippo_core", "models"], env=around, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert re.fullmatch(r".* has no yaml: run \.venv/bin/hippo \.\.\. from the repository's root \(`make setup` makes it\)\n", ran.stderr)


def test_what_is_read_or_printed_says_hippo():
    paths = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "hippo_core").rglob("*.*"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths if path.suffix in (".py", ".md", ".j2", ".ipynb")}
    assert {path.name for path, text in texts.items() if "python -m hippo_core " in text} == set()


def test_the_lab_opens_at_the_root_in_the_folder_of_the_notebooks_and_for_root_too(tmp_path):
    (tmp_path / "id").write_text("#!/bin/sh\necho ${HIPPO_UID}\n")
    (tmp_path / "id").chmod(0o755)
    outputs = {}
    for user in ("0", "1000"):
        around = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HIPPO_UID": user}
        command = ["make", "-n", "-o", ".venv/.ready", "lab"]
        outputs[user] = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=True).stdout
    assert all(f'--ServerApp.root_dir="{ROOT}" --LabApp.default_url=/lab/tree/notebooks' in text for text in outputs.values())
    assert ["--allow-root" in outputs[user] for user in ("0", "1000")] == [True, False]
