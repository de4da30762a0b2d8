"""The container's compose file, and the memory in a database that it sets up, against a real PostgreSQL where there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.protocols.paired.program import Program
from hippo_core.protocols.paired.suite import read_suite

COMPOSE, MEMORY = root() / "data/paired/compose.yaml", root() / "data/paired/postgres_memory.py"
DOCKER = shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
POSTGRES = [shutil.which(name) for name in ("psql", "initdb", "pg_ctl")]
SUITE = "data/paired/agents-smoke"


def services(text):
    services = yaml.safe_load(text)["services"]
    return {name: services[name] for name in ("database", "seed", "agents")}


def test_the_database_is_up_then_seeded_then_asked():
    database, seed, agents = services(COMPOSE.read_text()).values()
    assert "pg_isready" in database["healthcheck"]["test"] and seed["depends_on"]["database"]["condition"] == "service_healthy"
    assert agents["depends_on"]["seed"]["condition"] == "service_completed_successfully"
    program, url = agents["command"][-1].removeprefix("command:").split()[-2:]
    assert program == f"/lab/{MEMORY.relative_to(root())}" and url in seed["command"] and seed["command"][1] in program
    assert seed["command"][-1] in next(line for line in agents["environment"] if line.startswith("HIPPO_SUITE="))


@pytest.mark.skipif(not DOCKER, reason="no docker compose here")
def test_docker_reads_it_and_the_suite_follows_the_variable(tmp_path):
    command = ["docker", "compose", "-f", str(COMPOSE), "config"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HIPPO_SUITE": "data/paired/agents-followup"})
    _, seed, agents = services(ran.stdout).values()
    assert seed["command"][-1] == agents["environment"]["HIPPO_SUITE"] == "data/paired/agents-followup"


@pytest.fixture
def database(tmp_path_factory):
    """The URL of an empty PostgreSQL in a folder."""
    folder = tmp_path_factory.mktemp("pg")
    other: dict = {}
    if not os.geteuid():  # it does not run as root
        other = {"user": 65534, "group": 65534, "extra_groups": []}
        folder = Path("/tmp") / f"hippo-pg-{os.getpid()}"
        folder.mkdir()
        os.chown(folder, 65534, 65534)
    called = lambda *words: subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder, **other)  # noqa: E731
    try:
        called("initdb", "-D", f"{folder}/db", "-U", "lab", "-A", "trust", "--no-sync")
        called("pg_ctl", "-D", f"{folder}/db", "-l", f"{folder}/log", "-w", "-o", f"-c listen_addresses= -k {folder}", "start")
        yield f"postgresql://lab@/postgres?host={folder}"
        called("pg_ctl", "-D", f"{folder}/db", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.skipif(not all(POSTGRES), reason="no PostgreSQL here")
def test_a_database_answers_from_the_notes_that_were_seeded(database):
    notes = read_suite(SUITE).notes
    command = f"{sys.executable} {MEMORY} '{database}'"
    with pytest.raises(LabError, match="was it seeded"):
        Program(command, notes)
    seeded = subprocess.run([sys.executable, MEMORY, "--seed", database, root() / SUITE], check=True, capture_output=True, text=True)
    assert seeded.stdout.startswith("seeded: 4 notes")
    memory = Program(command, notes)
    assert memory.recall("Who is the owner of the ledger, O'Brien?", 2).ranking[0] == "owner"
    assert memory.recall("'; DROP TABLE notes; --", 2).ranking == () and memory.recall("On which port?", 1).ranking == ("port",)
    memory.close()
    altered = [notes[0].model_copy(update={"text": "Ledger: the port is 1."}), *notes[1:]]
    with pytest.raises(LabError, match="holds 3 of these 4 notes"):
        Program(command, altered)
