"""Break the lab on purpose, one mutant at a time, and see that its tests notice: `python -m tests.mutants [name ...]`.

Each mutant is made in a copy of the working tree, where its tests must first pass without it. It is caught where a test fails; a test
that cannot be collected or run is an error, not a catch.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

import typer

from tests.mutants.listed import DoesNotApply, Mutant, edited, mutants

ROOT = Path(__file__).resolve().parents[2]
WARM = Path(__file__).with_name("warm.py")
PACKAGES = (  # what the lab's tests import from others
    *("numpy", "pandas", "scipy.stats", "scipy.optimize", "pydantic", "yaml", "typer", "hypothesis", "nbformat", "nbclient", "papermill"),
    *("torch", "torch._dynamo", "transformers", "transformers.models.llama.modeling_llama", "transformers.models.bert.modeling_bert"),
    *("peft", "safetensors.torch", "matplotlib.pyplot", "seaborn", "ipywidgets", "scrapbook"),
)
LINKED = (".venv", "data/models")  # what git ignores and tests need
LIMIT = 900  # seconds that a mutant's tests may take; a break that hangs is noticed too
FINE = ("caught", "equivalent")
SKIPPED = "SKIPPED"  # begins a line of pytest's


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: caught, survived, equivalent, not tried (a test of it was skipped), does not apply, or error; and its tests'
    last words."""

    mutant: Mutant
    state: str
    seconds: float = 0.0
    said: str = ""


def copy_of(root: Path, place: Path) -> Path:
    """A copy of the working tree's files, those that git ignores left out but for what tests need, which is linked."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (root / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, place / name)
    for name in LINKED:
        if (root / name).exists() and not (place / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).symlink_to(root / name)
    return place


class Runner:
    """Runs the tests of a copy of the tree, each time in a fork of one process (warm.py)."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = {"PYTHONPATH": str(place), "HIPPO_ROOT": str(place), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(WARM), *(PACKAGES if (place / "hippo_core").is_dir() else ())]
        self._process = subprocess.Popen(
            command, env=os.environ | self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, selection: Sequence[str], limit: float = LIMIT) -> tuple[int, str]:
        """pytest's exit code, and the last line that it printed; code 1 where the tests did not end in time."""
        assert self._process.stdin and self._process.stdout
        log = self.place.with_name(f"{self.place.name}.log")
        arguments = ["-x", "-q", "-rfEs", "-p", "no:cacheprovider", "--no-header", *selection]
        request = {"place": str(self.place), "environment": self.environment, "arguments": arguments, "log": str(log), "limit": limit}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline().strip()
        if code == "late":
            return 1, f"no end after {limit:.0f} s"
        lines = log.read_text("utf-8", "replace").strip().splitlines() if log.exists() else []
        last = lines[-1] if lines else ""
        return int(code or 70), next((line for line in reversed(lines) if line.startswith(("FAILED", "ERROR", SKIPPED))), last)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def tried(mutant: Mutant, run: Runner) -> Outcome:
    """Make the mutant in a copy, run its tests, and mend the copy."""
    if mutant.equivalent:
        return Outcome(mutant, "equivalent", said=mutant.equivalent)
    begin = time.monotonic()
    try:
        texts = edited(mutant, run.place)
    except DoesNotApply as reason:
        return Outcome(mutant, "does not apply", said=str(reason))
    before = {path: path.read_bytes() for path in texts}
    try:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        code, said = run(mutant.caught_by)
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    passed = "not tried" if said.startswith(SKIPPED) else "survived"
    return Outcome(mutant, {0: passed, 1: "caught"}.get(code, "error"), time.monotonic() - begin, said)


def all_tried(chosen: Sequence[Mutant], root: Path, jobs: int) -> Iterator[Outcome]:
    """The outcome of each mutant, as it is known; `jobs` at a time, each in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        runners = [Runner(copy_of(root, Path(folder) / str(number))) for number in range(jobs)]
        free: SimpleQueue[Runner] = SimpleQueue()
        for runner in runners:
            free.put(runner)

        def one(mutant: Mutant) -> Outcome:
            runner = free.get()
            try:
                return tried(mutant, runner)
            finally:
                free.put(runner)

        try:
            yield from pool.map(one, chosen)
        finally:
            pool.shutdown(cancel_futures=True)
            for runner in runners:
                runner.close()


def unbroken(chosen: Sequence[Mutant], root: Path) -> tuple[int, str]:
    """The exit code of all the tests without any mutant, and what they said."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = Runner(copy_of(root, Path(folder) / "unbroken"))
        try:
            return runner(sorted({one for mutant in chosen for one in mutant.caught_by}), 4 * LIMIT)
        finally:
            runner.close()


def main(
    names: Annotated[list[str] | None, typer.Argument(help="mutants by name; none: all")] = None,
    jobs: Annotated[int, typer.Option(help="how many at a time")] = 2,
    checked: Annotated[bool, typer.Option(help="first see that the tests pass without any mutant")] = True,
) -> None:
    """Make mutants one at a time and see each caught; exits with 1 where one is not."""
    known = {one.name: one for one in mutants()}
    if wrong := sorted(set(names or ()) - known.keys()):
        raise typer.BadParameter(f"no mutant {wrong[0]!r}; they are: {', '.join(known)}")
    chosen = [known[name] for name in names] if names else list(known.values())
    if checked:
        code, said = unbroken(chosen, ROOT)
        if code:
            typer.echo(f"the tests do not pass without a mutant: {said}", err=True)
            raise typer.Exit(2)
    states: Counter[str] = Counter()
    for number, outcome in enumerate(all_tried(chosen, ROOT, jobs), 1):
        states[outcome.state] += 1
        line = f"[{number}/{len(chosen)}] {outcome.state:<14} {outcome.mutant.name} {outcome.seconds:.0f} s"
        typer.echo(line if outcome.state == "caught" else f"{line}: {outcome.said}")
    typer.echo(f"{states['caught']} of {len(chosen)} caught; " + ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    raise typer.Exit(int(any(state not in FINE for state in states)))


if __name__ == "__main__":
    typer.run(main)
