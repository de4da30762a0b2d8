"""`hippo agents`: run the agent items of a paired suite, and say what this machine grants to contain them."""

from pathlib import Path
from typing import Annotated

import typer

from hippo_core.files import LabError, home

agents_app = typer.Typer(no_args_is_help=True, help="Items of paired suites that run commands (docs/agents.md).")


@agents_app.command()
def doctor() -> None:
    """Say which ways of containment work here; the exit status is 1 where none does."""
    from hippo_core.paired.agents.containment import grants

    for grant in grants():
        print(f"{grant.way}: {'works' if grant.works else 'no'}{f' ({grant.why})' if grant.why else ''}")
    raise typer.Exit(int(not any(grant.works for grant in grants())))


@agents_app.command()
def run(
    suite: Annotated[str, typer.Argument(help="a suite's folder, as data/paired/agents-smoke")],
    out: Annotated[Path | None, typer.Option(help="a new folder; executed/agents/NAME unless given")] = None,
    condition: Annotated[list[str] | None, typer.Option("--condition", help="may be repeated; no-memory and full-memory")] = None,
    memory: Annotated[str, typer.Option(help="under test: a preset, package.module:NAME, or command:PROGRAM")] = "memory/hei_nw",
    model: Annotated[str, typer.Option(help="of the memory")] = "hippo-tiny",
    encoder: Annotated[str, typer.Option(help="of presets that have one: minilm or own")] = "minilm",
    repeats: Annotated[int, typer.Option(min=1, help="how often each item is run")] = 1,
    agent: Annotated[str, typer.Option(help="claude, codex or gemini, in place of the suite's own")] = "",
    pass_env: Annotated[list[str] | None, typer.Option("--pass-env", help="a variable that agents may have; may be repeated")] = None,
    allow_shell: Annotated[bool, typer.Option("--allow-shell", help="run the commands of the suite, which you have read")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="check the suite and its fixtures; run nothing")] = False,
) -> None:
    """Run a suite's agent items, contained, under each condition; a row an item goes to results.jsonl."""
    import json

    from hippo_core.files import write_text
    from hippo_core.paired.agents.run_suite import Permissions, run_tasks
    from hippo_core.paired.run import Settings
    from hippo_core.paired.suite import read_suite

    opened = read_suite(suite)
    folder = out or home() / "executed" / "agents" / opened.manifest.name
    if folder.exists() and not dry_run:
        raise LabError(f"{folder} is there already, and runs are never written over; name another by --out")
    conditions = tuple(condition or ("no-memory", "full-memory"))
    settings = Settings(conditions=conditions, memory=memory, encoder=encoder, repeats=repeats)
    rows = run_tasks(opened, settings, model, folder, Permissions(allow_shell, dry_run, tuple(pass_env or ()), agent))
    if not dry_run:
        write_text(folder / "results.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        for name in conditions:
            own = [row["success"] for row in rows if row["condition"] == name]
            print(f"{name}: {sum(own):.0f} of {len(own)} succeeded")
        print(f"written: {folder}")
