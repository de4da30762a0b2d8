"""`hippo paired`: suites as folders, conditions side by side, verdicts that can be checked."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hippo_core.errors import LabError
from hippo_core.files import home, write_text
from hippo_core.protocols.paired.suite import new_suite, read_suite
from hippo_core.text import in_markdown, printable

app = typer.Typer(name="paired", no_args_is_help=True, help="Ask a memory and its rivals the same items, and compare item by item.")

Suite = Annotated[str, typer.Argument(help="a folder with suite.yaml", metavar="SUITE", envvar="HIPPO_SUITE")]
Run = Annotated[str, typer.Argument(help="the folder of a run, or its name below executed/", metavar="RUN")]
ConditionName = Annotated[str, typer.Argument(help="RUN:CONDITION, as paired:lexical")]
Form = Annotated[Literal["markdown", "html"], typer.Option("--format", help="of the page")]
Output = Annotated[Path | None, typer.Option(help="write it to a file instead")]
PassEnv = Annotated[list[str] | None, typer.Option("--pass-env", help="a variable that agents may have; may be repeated")]


@app.command()
def new(folder: Annotated[str, typer.Argument(help="a folder that is not there yet")]) -> None:
    """Make a suite to be filled: manifest, notes, items of all seven types, a human note, and a scripted agent."""
    made = new_suite(folder)
    print(f"written: {made}; check it by `hippo paired doctor {folder}`, ask it by `hippo paired run {folder} --allow-shell`")


@app.command()
def doctor(suite: Suite) -> None:
    """Read a suite and say what is wrong with it or thin. Exit 1 where something is wrong."""
    from hippo_core.protocols.paired.lint import examined

    read = read_suite(suite)
    findings = examined(read)
    for finding in findings:
        _print(finding)
    failed = sum(finding.level == "fail" for finding in findings)
    if read.shell:
        from hippo_core.protocols.paired.agents.containment import grants

        modes = [f"{mode} {f'does not: {why_not}' if why_not else 'works'}" for mode, why_not in grants().items()]
        _print(f"contained by: {'; '.join(modes)}")
        failed += all(grants().values())
    print(f"{len(read.items)} items in {len({item.world for item in read.items})} worlds, {len(read.notes)} notes; {failed} failures")
    raise typer.Exit(int(failed > 0))


@app.command("memory-agent-bench")
def memory_agent_bench(
    file: Annotated[Path, typer.Argument(help="rows (.json, .jsonl, .parquet), or factconsolidation_sh_6k or _mh_6k (HIPPO_DATA)")],
    folder: Annotated[str, typer.Argument(help="a folder that is not there yet")],
    questions: Annotated[int, typer.Option(min=0, help="of each context at most; 0: all")] = 0,
    numbers: Annotated[bool, typer.Option(help="keep the numbers of facts; without them their order says what is later")] = True,
) -> None:
    """Make a suite of MemoryAgentBench's rows: told once, asked many times (conflict resolution, accurate retrieval)."""
    from hippo_core.protocols.paired.memory_agent_bench import adapted

    suite = adapted(file, folder, questions, numbers)
    print(f"written: {suite.folder}; {len(suite.items)} items of {len(suite.by_world)} contexts")
    print(f"ask it by `hippo paired run {folder} --conditions no-memory,lexical,full-memory`; human-note needs notes of yours")


@app.command("run")
def run_suite(
    suite: Suite,
    conditions: Annotated[str, typer.Option(help="by name, with commas; all unless given")] = "",
    memory: Annotated[str, typer.Option(help="under test: a preset, package.module:NAME, or 'command:PROGRAM'")] = "memory/hei_nw",
    profile: Annotated[str, typer.Option(help="offline or llm; the manifest's unless given")] = "",
    answer_mode: Annotated[str, typer.Option(help="auto, deterministic or llm")] = "auto",
    model: Annotated[str, typer.Option(help="of the memories, and of answers: hippo-tiny, smollm2-135m where it answers")] = "",
    provider: Annotated[str, typer.Option(help="who answers in profile llm: openai:MODEL@URL, ollama:MODEL (docs/conversation.md)")] = "",
    key_env: Annotated[str, typer.Option(help="the variable that holds the provider's key")] = "",
    encoder: Annotated[str, typer.Option(help="of presets that have one: minilm or own")] = "minilm",
    repeats: Annotated[int, typer.Option(min=0, help="the manifest's unless given")] = 0,
    seed: int = 1337,
    limit: Annotated[int, typer.Option(min=0, help="items at most; 0: all")] = 0,
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds that a program has for a message")] = 60.0,
    out: Annotated[Path | None, typer.Option(help="a new folder; executed/paired-runs/ID unless given")] = None,
    allow_shell: Annotated[bool, typer.Option("--allow-shell", help="run commands of the suite, which you have read; contained")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="check the items that run commands; run and write nothing")] = False,
    agent: Annotated[str, typer.Option(help="claude, codex or gemini, in place of the suite's own agent")] = "",
    agent_sandbox: Annotated[str, typer.Option(help="that agent's own sandbox, as codex's workspace-write; none unless given")] = "",
    pass_env: PassEnv = None,
) -> None:
    """Ask all items under all conditions, and write a run. What agents left goes to a folder beside it, RUN-tasks."""
    from hippo_core.protocols.paired import page
    from hippo_core.protocols.paired.agents.run import CONDITIONS as OF_TASKS
    from hippo_core.protocols.paired.agents.run import Permissions, run_all_items
    from hippo_core.protocols.paired.conditions import CONDITIONS
    from hippo_core.protocols.paired.run_files import new_group_id, read_run, write_run
    from hippo_core.protocols.paired.settings import RunSettings
    from hippo_core.results.records.origin import git_sha, versions

    read = read_suite(suite)
    target = out or home() / "executed" / "paired-runs" / new_group_id()
    if target.exists():
        raise LabError(f"{target} is there already, and runs are never written over; name another folder")
    usual = CONDITIONS if read.asking else OF_TASKS
    settings = RunSettings(
        conditions=tuple(name.strip() for name in conditions.split(",")) if conditions else usual,
        memory=memory,
        profile=profile or ("llm" if provider else read.manifest.default_profile),
        answer_mode=answer_mode,
        encoder=encoder,
        repeats=repeats or read.manifest.default_repeats,
        seed=seed,
        timeout_s=timeout,
        limit=limit,
        provider=provider,
        key_env=key_env,
    )
    settings.require()
    named = model or ("smollm2-135m" if settings.by_model and not provider else "hippo-tiny")
    allowed = Permissions(allow_shell, dry_run, tuple(pass_env or ()), agent, agent_sandbox)
    rows = run_all_items(read, settings, named if dry_run else _loaded(named), target.with_name(f"{target.name}-tasks"), allowed, _print)
    if dry_run:
        return
    agents = {"agents": {"agent": agent, "sandbox": agent_sandbox, "passed": list(allowed.passed)}} if read.shell else {}
    about = {"model": named, **agents, "git_sha": git_sha(), "versions": versions()}
    write_run(target, read, settings, rows, about)
    _print(f"\n{page.summary(read_run(target))}\n\nwritten: {target}")


@app.command()
def compare(
    baseline: ConditionName,
    candidate: ConditionName,
    form: Form = "markdown",
    most: Annotated[int, typer.Option(min=0, help="items on which they differ that are listed, a side")] = 20,
    output: Output = None,
) -> None:
    """Compare two conditions item by item: success, scores, costs, groups."""
    from hippo_core.protocols.paired.page import markdown

    _write_page(markdown([_compared(baseline, candidate)], most), f"{candidate} against {baseline}", form, output)


@app.command()
def report(
    run: Run,
    candidate: Annotated[str, typer.Option(help="the condition that all others are compared with")] = "full-memory",
    form: Form = "markdown",
    output: Output = None,
) -> None:
    """A page of a run: its conditions, then one of them against each other."""
    from hippo_core.protocols.paired import page
    from hippo_core.protocols.paired.comparison import compare_conditions, run_condition
    from hippo_core.protocols.paired.run_files import read_run

    read = read_run(run)
    title = f"Paired evaluation: {read.about['suite']['name']}"
    others = [run_condition(read, name) for name in read.conditions if name != candidate]
    pairs = [compare_conditions(other, run_condition(read, candidate)) for other in others]
    _write_page(f"# {in_markdown(title)}\n\n{page.summary(read)}\n\n{page.markdown(pairs, 10)}", title, form, output)


@app.command()
def gate(
    baseline: ConditionName,
    candidate: ConditionName,
    policy: Annotated[Path, typer.Option(help="a YAML file, as params/gates/paired.yaml")],
) -> None:
    """Judge a comparison by a policy, rule by rule. Exit 1 where a rule is not met."""
    from hippo_core.protocols.paired.gate import judged, read_policy

    rules = judged(_compared(baseline, candidate), read_policy(policy))
    _print("\n".join(map(str, rules)))
    raise typer.Exit(int(not all(rule.passed for rule in rules)))


@app.command()
def reproduce(
    run: Run,
    suite: Annotated[str, typer.Option(help="where it lies now, if it was moved")] = "",
    allow_shell: Annotated[
        bool, typer.Option("--allow-shell", help="run the suite's commands again, contained, and the run's own program, not contained")
    ] = False,
    allow_import: Annotated[bool, typer.Option("--allow-import", help="import the module that holds the run's memory")] = False,
    allow_url: Annotated[list[str] | None, typer.Option("--allow-url", help="that the run's provider may reach, or its HOST:PORT")] = None,
    key_env: Annotated[str, typer.Option(help="the variable that holds the provider's key, named anew")] = "",
    pass_env: PassEnv = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="of the run, where it is a folder or a file, named anew")] = None,
) -> None:
    """Run a run again, and say which answers are not the same. Exit 1 where one is not. What the run asks for besides (a program, a module,
    a URL, a variable) is run or read only where it is allowed here."""
    from hippo_core.protocols.paired.rerun import Allowed, require_allowed
    from hippo_core.protocols.paired.rerun import reproduce as again
    from hippo_core.protocols.paired.run_files import read_run

    old = read_run(run)
    variables = (*filter(None, [key_env]), *(pass_env or ()))
    allowed = Allowed(allow_shell, allow_import, tuple(allow_url or ()), variables, tuple(model or ()))
    read = read_suite(suite or old.about["suite"]["folder"])
    require_allowed(old, read, allowed)  # before the model is loaded
    differing = again(old, read, _loaded(old.about.get("model") or "hippo-tiny"), _print, allowed)
    for entry, condition, column in differing[:20]:
        _print(f"differs: {entry}, {condition}: {column}")
    print(f"{len(old.rows)} rows, {len(differing)} differences")
    raise typer.Exit(int(bool(differing)))


@app.command()
def archive(run: Run, target: Annotated[Path, typer.Argument(help="a .tar.gz that is not there yet")], suite: str = "") -> None:
    """Pack a run with its suite; the SHA-256 of every file lies in it."""
    from hippo_core.protocols.paired import archiving
    from hippo_core.protocols.paired.run_files import read_run

    read = read_run(run)
    sums = archiving.archive(read, read_suite(suite or read.about["suite"]["folder"]), target)
    print(f"written: {target} ({len(sums)} files)")


@app.command()
def verify(target: Annotated[Path, typer.Argument(help="an archive")]) -> None:
    """Check every file of an archive against its SHA-256."""
    from hippo_core.protocols.paired.archiving import verify as checked

    print(f"whole: {len(checked(target))} files")


def _compared(baseline: str, candidate: str) -> Any:
    from hippo_core.protocols.paired.comparison import compare_conditions, read_run_condition

    return compare_conditions(read_run_condition(baseline), read_run_condition(candidate))


def _print(line: object, end: str = "\n") -> None:
    """Print what may hold another's text."""
    print(printable(line), end=end, flush=True)


def _loaded(model: str) -> Any:
    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec

    return load(load_spec(model), threads=1)


def _write_page(page: str, title: str, form: str, output: Path | None) -> None:
    from hippo_core.results.formatting import html

    text = html(page, title) if form == "html" else page
    if output is None:
        _print(text, end="")
    else:
        write_text(output, printable(text))
        print(f"written: {output}")
