"""Run a run again, from what it says of itself, and see whether every answer is the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hippo_core.paired.comparison import require_same
from hippo_core.paired.run import Settings, run
from hippo_core.paired.run_files import PairedRun
from hippo_core.paired.suite import Suite

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

SAME = ("place", "success", "answer", "ranking", "tokens_in", "tokens_out", "error")


@dataclass(frozen=True)
class Reproduced:
    """How many rows were made again, and those that differ: (entry, condition, column)."""

    rows: int
    differing: tuple[tuple[str, str, str], ...]


def reproduce(old: PairedRun, suite: Suite, lm: "str | LanguageModel", say: Callable[[str], None] = print) -> Reproduced:
    """Run it again with its settings. LabError where the suite is no longer the same."""
    require_same(old, PairedRun(old.folder, {"checksums": suite.checksums}, old.rows))
    told = old.about["settings"]
    rows = run(suite, Settings(**{**told, "conditions": tuple(told["conditions"])}), lm, say=say)
    before = {(row["entry"], row["condition"]): row for row in old.rows.to_dict("records")}
    after = {(row["entry"], row["condition"]): row for row in rows}
    differing = [(*key, "there once") for key in before.keys() ^ after.keys()]
    for key in before.keys() & after.keys():
        differing += [(*key, name) for name in SAME if not _equal(before[key][name], after[key][name])]
    return Reproduced(len(rows), tuple(sorted(differing)))


def _equal(a: object, b: object) -> bool:
    missing = [one is None or one != one for one in (a, b)]
    return all(missing) or (not any(missing) and a == b)
