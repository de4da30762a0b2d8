"""Break the lab on purpose, one mutant at a time, and see that its tests notice: `python -m tests.mutants [name ...]`.

Each mutant is made in a copy of the working tree, where its tests must first pass without it. It is caught where a test fails; a test
that cannot be collected or run is an error, not a catch.
"""

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
LINKED = (".venv", "data/models")  # what git ignores and tests need
LIMIT = 900  # seconds that a mutant's tests may take; a break that hangs is noticed too
FINE = ("caught", "equivalent")


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: caught, survived, equivalent, does not apply, or error; and its tests' last words."""

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


def run_tests(place: Path, selection: Sequence[str]) -> tuple[int, str]:
    """pytest's exit code on the tests of a copy, and the last line that it printed; code 1 where they did not end in time."""
    environment = {**os.environ, "PYTHONPATH": str(place), "HIPPO_ROOT": str(place), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *selection]
    try:
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return 1, f"no end after {LIMIT} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, next((line for line in reversed(lines) if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "")


def tried(mutant: Mutant, place: Path) -> Outcome:
    """Make the mutant in a copy, run its tests, and mend the copy."""
    if mutant.equivalent:
        return Outcome(mutant, "equivalent", said=mutant.equivalent)
    begin = time.monotonic()
    try:
        texts = edited(mutant, place)
    except DoesNotApply as reason:
        return Outcome(mutant, "does not apply", said=str(reason))
    before = {path: path.read_bytes() for path in texts}
    try:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        code, said = run_tests(place, mutant.caught_by)
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    return Outcome(mutant, {0: "survived", 1: "caught"}.get(code, "error"), time.monotonic() - begin, said)


def all_tried(chosen: Sequence[Mutant], root: Path, jobs: int) -> Iterator[Outcome]:
    """The outcome of each mutant, as it is known; `jobs` at a time, each in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copies.put(copy_of(root, Path(folder) / str(number)))

        def one(mutant: Mutant) -> Outcome:
            place = copies.get()
            try:
                return tried(mutant, place)
            finally:
                copies.put(place)

        yield from pool.map(one, chosen)


def unbroken(chosen: Sequence[Mutant], root: Path) -> tuple[int, str]:
    """The exit code of all the tests without any mutant, and what they said."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return run_tests(copy_of(root, Path(folder) / "unbroken"), sorted({one for mutant in chosen for one in mutant.caught_by}))


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
