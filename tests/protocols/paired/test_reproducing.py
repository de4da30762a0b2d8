"""A record chooses nothing that runs, is reached or is read: each needs its flag, and an altered record is told by what was altered."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from hippo_core.errors import LabError
from hippo_core.files import sha256
from hippo_core.protocols.paired.commands import app
from hippo_core.protocols.paired.comparison import read_run_condition
from hippo_core.protocols.paired.rerun import Allowed, require_allowed
from hippo_core.protocols.paired.run import run as ask
from hippo_core.protocols.paired.run_files import RESULTS, RUN, SEALED, read_run, write_run
from hippo_core.protocols.paired.settings import RunSettings
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired import suites

MEMORY = {"conditions": ("full-memory",), "encoder": "own"}
MODEL = {"conditions": ("no-memory",), "encoder": "own", "profile": "llm"}
URL, HTTPS, KEYED = "ollama:x@http://evil.test:81", "https://evil.test/v1/", "openai:x@https://evil.test/v1"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return read_suite(suites.write(tmp_path_factory.mktemp("s"), worlds=suites.WORDS[:1]))


@pytest.fixture(scope="module")
def rows(suite):
    return ask(suite, RunSettings(conditions=("no-memory",), encoder="own"), "hippo-tiny", log=lambda line: None)


@pytest.fixture
def record(tmp_path, suite, rows):
    """A function that writes a record that says what it is told."""

    def write(settings, **about):
        return read_run(write_run(tmp_path / "run", suite, RunSettings(**settings), rows, {"model": "hippo-tiny"} | about))

    return write


@pytest.mark.parametrize(
    ("settings", "about", "asked", "allowed"),
    [
        ({**MEMORY, "memory": "command:/bin/sh -c 'touch x'"}, {}, r"the program .* \(--allow-shell\)", Allowed(shell=True)),
        ({**MEMORY, "memory": "os:system"}, {}, r"an import of os:system \(--allow-import\)", Allowed(imports=True)),
        ({**MODEL, "provider": "claude"}, {}, r"the program 'claude' \(--allow-shell\)", Allowed(shell=True)),
        ({**MODEL, "provider": URL}, {}, r"the URL .*\(--allow-url http://evil.test:81\)", Allowed(urls=("evil.test:81",))),
        (
            {**MODEL, "provider": KEYED, "key_env": "KEY"},
            {},
            r"'KEY' \(--key-env or --pass-env KEY\)",
            Allowed(urls=(HTTPS,), variables=("KEY",)),
        ),
        ({**MODEL, "provider": "local:/evil"}, {}, r"the model '/evil' \(--model /evil\)", Allowed(models=("/evil",))),
        (MODEL, {"model": "/evil/weights.gguf"}, r"the model '/evil/weights.gguf'", Allowed(models=("/evil/weights.gguf",))),
        (MODEL, {"agents": {"passed": ["SECRET"]}}, "the variable 'SECRET'", Allowed(variables=("SECRET",))),
        (MODEL, {"agents": {"agent": "claude"}}, r"the agent 'claude' \(--allow-shell\)", Allowed(shell=True)),
    ],
)
def test_what_a_record_names_needs_its_flag(record, suite, settings, about, asked, allowed):
    run = record(settings, **about)
    with pytest.raises(LabError, match=asked):
        require_allowed(run, suite, Allowed())
    require_allowed(run, suite, allowed)
    for name, value in vars(allowed).items():
        if value:  # any one that is missing is asked for
            with pytest.raises(LabError, match="A record may not choose these"):
                require_allowed(run, suite, replace(allowed, **{name: type(value)()}))


def test_a_program_of_a_record_runs_only_where_it_is_allowed(record, tmp_path, monkeypatch):
    monkeypatch.setattr("hippo_core.protocols.paired.commands._loaded", lambda model: model)
    run = record({**MEMORY, "memory": f"command:/bin/sh -c 'touch {tmp_path}/ran'"})
    result = CliRunner().invoke(app, ["reproduce", str(run.folder)])
    assert result.exit_code and "--allow-shell" in str(result.exception) and not (tmp_path / "ran").exists()
    CliRunner().invoke(app, ["reproduce", str(run.folder), "--allow-shell"])
    assert (tmp_path / "ran").exists()


def altered(run, change, seal=False):
    """The record after somebody changed its run.json, its seal left out where `seal` is."""
    about = json.loads((run.folder / RUN).read_text())
    change(about)
    if seal:
        del about[SEALED]
    (run.folder / RUN).write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda about: about["settings"].update(memory="os:system"), r"is not what the run wrote: settings\.memory \(SHA-256\)"),
        (lambda about: about.update(model="other", rows=3), "is not what the run wrote: model, rows"),
        (lambda about: about["suite"].update(folder="/elsewhere"), r"suite\.folder"),
        (lambda about: about.update(new="value"), "wrote: new"),
    ],
)
def test_an_altered_record_is_refused_and_what_was_altered_is_named(record, change, says):
    run = record(MODEL)
    altered(run, change)
    for read in (lambda: read_run(run.folder), lambda: read_run_condition(f"{run.folder}:no-memory")):
        with pytest.raises(LabError, match=says):
            read()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda about: about["settings"].update(colour="red"), "settings of a paired run: colour"),
        (lambda about: about["settings"].update(conditions="lexical"), "conditions: Input should be a valid"),
        (lambda about: about.update(settings=[]), "settings: Input should be a valid dictionary"),
        (lambda about: about.update(agents={"passed": "HOME"}), r"agents\.passed"),
        (lambda about: about.pop("checksums"), "checksums: missing"),
    ],
)
def test_a_record_that_is_none_is_reported_in_a_line(record, change, says):
    run = record(MODEL)
    altered(run, change, seal=True)
    with pytest.raises(LabError, match=says):
        read_run(run.folder)


def test_a_record_of_an_earlier_lab_has_no_seal_and_opens(record):
    run = record(MODEL)
    altered(run, lambda about: None, seal=True)
    assert len(read_run(run.folder).rows) == len(run.rows)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"item": "x"}', "entry: missing; world: missing"),
        ("[" * 100_000, "nested too deep"),
        ("not JSON", "expected one JSON object"),
        (lambda row: row | {"success": float("inf")}, "success: Input should be less than or equal to 1"),
        (lambda row: row | {"tokens_in": "7"}, "tokens_in: Input should be a valid number"),
        (lambda row: row | {"answer": 7}, "answer: Input should be a valid string"),
    ],
)
def test_rows_that_are_none_are_reported_by_line(record, line, says):
    run = record(MODEL)
    path = run.folder / RESULTS
    first = path.read_text().splitlines()[0]
    path.write_text(f"{first}\n{line if isinstance(line, str) else json.dumps(line(json.loads(first)))}\n")
    altered(run, lambda about: about.update(results_sha256=sha256(path)), seal=True)
    with pytest.raises(LabError, match=f"{RESULTS}:2: ") as error:
        read_run(run.folder)
    assert says in str(error.value)


def test_an_answer_stays_text_and_half_of_a_character_is_replaced(tmp_path, suite, rows):
    answered = [{**row, "answer": answer} for row, answer in zip(rows, ("12", "a\ud800b"), strict=True)]
    run = read_run(write_run(tmp_path / "run", suite, RunSettings(**MODEL), answered, {}))
    assert list(run.rows["answer"]) == ["12", "a\ufffdb"]
