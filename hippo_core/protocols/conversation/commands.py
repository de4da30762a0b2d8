"""`hippo converse`: dialogues through a provider in three phases, a judge, and how well evidence is found."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hippo_core.errors import LabError
from hippo_core.files import write_text
from hippo_core.protocols.base.commands import finite

if TYPE_CHECKING:
    from hippo_core.protocols.conversation.dialogue import Dialogue

app = typer.Typer(name="converse", no_args_is_help=True, help="Ask about conversations, in three phases that can each be run again alone.")

COUNTS = "hippo-tiny"  # the model that counts a budget's tokens and whose keys and memories techniques use, whoever answers
Dialogues = Annotated[Path, typer.Argument(help="a file or folder of dialogues (.json, .jsonl)")]
Published = Annotated[bool, typer.Option("--published", help="the file is LoCoMo's or LongMemEval's")]
Folder = Annotated[Path, typer.Option("--out", help="the folder of raw.jsonl, scored.jsonl, judged.jsonl and the report")]
ProviderName = Annotated[str, typer.Option(help="local:MODEL, claude, gemini, codex (each [:MODEL]), openai:MODEL@URL, ollama:MODEL")]
KeyEnv = Annotated[str, typer.Option(help="the environment variable that holds the endpoint's key")]
Attempts = Annotated[int, typer.Option(min=1, help="how often a call is tried")]
Timeout = Annotated[float, typer.Option(min=0.1, callback=finite, help="seconds of one attempt")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="say what would be called, and call and write nothing")]


@app.command()
def execute(
    dialogues: Dialogues,
    out: Folder,
    technique: Annotated[
        list[str] | None,
        typer.Option(help="NAME, NAME@TURNS or NAME[key=value;...]; full, none and bm25 unless given; may be repeated"),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(help="turns (half of them, 20 at most), turns[ratio=R;most=N], full, or a number of tokens; may be repeated"),
    ] = None,
    provider: ProviderName = "local:hippo-tiny",
    max_tokens: Annotated[int, typer.Option(min=1)] = 64,
    temperature: Annotated[float, typer.Option(min=0, callback=finite)] = 0.0,
    attempts: Attempts = 4,
    timeout: Timeout = 120.0,
    key_env: KeyEnv = "",
    published: Published = False,
    dry_run: DryRun = False,
) -> None:
    """Phase one: ask every question under every technique; goes on where it stopped. Exit 1 where calls failed; those are in raw.jsonl."""
    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec
    from hippo_core.protocols.conversation.budget import budget_name
    from hippo_core.protocols.conversation.phases import calls_of, execute_into
    from hippo_core.protocols.conversation.techniques import require_writer
    from hippo_core.protocols.conversation.techniques.base import TechniqueContext
    from hippo_core.protocols.conversation.techniques.model_summary import asking
    from hippo_core.providers import load_provider
    from hippo_core.providers.retry import RetryPolicy

    model = load_provider(provider, RetryPolicy(attempts, timeout=timeout), key_env, check=not dry_run)
    budgets, techniques = [budget_name(value) for value in budget or ("turns",)], technique or ("full", "none", "bm25")
    require_writer(techniques, provider.removeprefix("local:"))
    written: list[str] = []  # in a dry run, what techniques would ask
    ask = (lambda text, tokens: written.append(text) or "1") if dry_run else asking(model)
    context = TechniqueContext(load(load_spec(COUNTS)), ask=ask)
    calls = calls_of(_read(dialogues, published), techniques, budgets, context, model, max_tokens, temperature)
    if dry_run:
        words = f"{sum(row['prompt_words'] for row, _ in calls):,} words of prompts; {', '.join(techniques)}"
        limits = f"max_tokens {max_tokens}, temperature {temperature:g}" if model.takes_temperature else "its own limits and temperature"
        first = f" (and {len(written)} times for techniques that let it write)" if written else ""
        print(f"would call {len(calls)} times{first}: {model.describe()} ({limits}; {words})")
        return
    done = execute_into(out / "raw.jsonl", calls, model, lambda line: print(line, flush=True))
    faults = f"{done['failed']} failed" + (f", {done['cut']} cut by --max-tokens {max_tokens}" if done["cut"] else "")
    print(f"{done['asked']} asked ({faults}), {done['kept']} there already: {out / 'raw.jsonl'}")
    raise typer.Exit(int(done["failed"] > 0))


@app.command()
def evaluate(
    dialogues: Dialogues,
    out: Folder,
    judge: Annotated[str, typer.Option(help="a provider that judges coherence and fluency; none unless given")] = "",
    key_env: KeyEnv = "",
    timeout: Timeout = 120.0,
    published: Published = False,
) -> None:
    """Phase two: score raw.jsonl, of `execute` or of a conversation cell's record, and have it judged where a judge is named."""
    from hippo_core.protocols.conversation.dialogue import reworded
    from hippo_core.protocols.conversation.judge import judge as judged_by
    from hippo_core.protocols.conversation.lines import read_lines, write_lines
    from hippo_core.protocols.conversation.phases import evaluate as phase
    from hippo_core.providers import load_provider
    from hippo_core.providers.retry import RetryPolicy

    loaded = _read(dialogues, published)
    judge_model = load_provider(judge, RetryPolicy(timeout=timeout), key_env) if judge else None
    scored = phase(read_lines(out / "raw.jsonl"), loaded, out / "raw.jsonl")
    write_lines(out / "scored.jsonl", scored)
    if words := reworded(loaded):
        print(words)
    print(f"{len(scored)} scored, {sum(row['error'] is not None for row in scored)} of them failed calls: {out / 'scored.jsonl'}")
    if judge_model:
        failed = judged_by(scored, loaded, judge_model, out / "judged.jsonl")
        print(f"judged by {judge_model.identity}, {failed} judgements failed: {out / 'judged.jsonl'}")


@app.command()
def aggregate(out: Folder) -> None:
    """Phase three: the report of scored.jsonl, with judged.jsonl and what people rated (ratings*.jsonl) where they are there."""
    from hippo_core.protocols.conversation.aggregate import NAMES
    from hippo_core.protocols.conversation.aggregate import aggregate as phase
    from hippo_core.protocols.conversation.judge import ASPECTS
    from hippo_core.protocols.conversation.lines import read_lines

    judged = read_lines(out / "judged.jsonl", ("answer_id", "judge", *ASPECTS)) if (out / "judged.jsonl").is_file() else []
    ratings = [rating for path in sorted(out.glob("ratings*.jsonl")) for rating in read_lines(path, ("answer_id",))]
    print(f"report: {phase(read_lines(out / 'scored.jsonl', NAMES), out, judged, ratings)}")


@app.command()
def evidence(
    path: Annotated[Path | None, typer.Argument(help="LoCoMo's or LongMemEval's file; LoCoMo's below HIPPO_DATA unless given")] = None,
    preset: Annotated[list[str] | None, typer.Option(help="NAME or NAME[key=value;...]; may be repeated")] = None,
    chunk: Annotated[list[int] | None, typer.Option(min=1, help="turns of a chunk; 1, 3 and 6 unless given")] = None,
    dated: Annotated[bool, typer.Option("--dated", help="the session's date stands in each text")] = False,
    context: Annotated[int, typer.Option(min=0, help="turns before and after that are searched with a chunk and not counted")] = 0,
    half: Annotated[str, typer.Option(help="choosing or judging: of the questions, by their SHA-256; all unless given")] = "",
    model: Annotated[str, typer.Option(help="whose limit a chunk must fit, and whose vectors memories use")] = "smollm2-135m-reader",
    output: Annotated[
        Path | None, typer.Option(help="a folder for rows.csv (ids and numbers) and table.md; what rows.csv has is not asked again")
    ] = None,
) -> None:
    """How well the turns that answer are found: hit@1, recall@5, recall@10 and any@5 by category, for each method and size of chunk."""
    import pandas as pd

    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec
    from hippo_core.protocols.conversation.evidence import PRESETS, Searched, as_markdown, by_category, evidence_parts, kept
    from hippo_core.protocols.conversation.published import read_published
    from hippo_core.text_files import path_of

    if half not in ("", "choosing", "judging"):
        raise LabError(f"half is choosing or judging, got {half!r}")
    loaded = read_published(path or path_of("locomo"))
    searched = [Searched(size, dated, context) for size in chunk or (1, 3, 6)]
    rows, done = kept(output / "rows.csv" if output else None)
    lm = load(load_spec(model))
    for part in evidence_parts(lm, loaded, preset or PRESETS, searched, done, lambda line: print(line, file=sys.stderr, flush=True)):
        rows = pd.concat([rows, part], ignore_index=True) if len(rows) else part
        if output:
            write_text(output / "rows.csv", rows.to_csv(index=False, float_format="%.6g"))
    table = as_markdown(by_category(rows, half or None))  # type: ignore[arg-type]
    print(table, end="")
    if output:
        write_text(output / "table.md", table)


def _read(path: Path, published: bool) -> "tuple[Dialogue, ...]":
    if published:
        from hippo_core.protocols.conversation.published import read_published

        return read_published(path)
    from hippo_core.protocols.conversation.dialogue import read

    return read(path)
