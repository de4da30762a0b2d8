"""Run a run again, from what it says of itself, and see whether every answer is the same."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hippo_core.paired.comparison import require_same
from hippo_core.paired.run_files import PairedRun
from hippo_core.paired.settings import restored
from hippo_core.paired.suite import Suite
from hippo_core.paired.whole import allowed, run_whole

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

SAME = ("place", "success", "answer", "ranking", "tokens_in", "tokens_out", "error")


@dataclass(frozen=True)
class Reproduced:
    """How many rows were made again, and those that differ: (entry, condition, column)."""

    rows: int
    differing: tuple[tuple[str, str, str], ...]


def reproduce(
    old: PairedRun, suite: Suite, lm: "str | LanguageModel", say: Callable[[str], None] = print, allow_shell: bool = False
) -> Reproduced:
    """Run it again with its settings; what agents leave is thrown away. LabError where the suite is no longer the same, or has items that
    run commands and that is not allowed."""
    require_same(old, PairedRun(old.folder, {"checksums": suite.checksums}, old.rows))
    with tempfile.TemporaryDirectory(prefix="hippo-paired-") as folder:
        rows = run_whole(suite, restored(old.about["settings"]), lm, Path(folder, "tasks"), allowed(old.about, allow_shell), say)
    before = {(row["entry"], row["condition"]): row for row in old.rows.to_dict("records")}
    after = {(row["entry"], row["condition"]): row for row in rows}
    differing = [(*key, "there once") for key in before.keys() ^ after.keys()]
    for key in before.keys() & after.keys():
        differing += [(*key, name) for name in SAME if not _equal(before[key][name], after[key][name])]
    return Reproduced(len(rows), tuple(sorted(differing)))


def _equal(a: object, b: object) -> bool:
    missing = [one is None or one != one for one in (a, b)]
    return all(missing) or (not any(missing) and a == b)
