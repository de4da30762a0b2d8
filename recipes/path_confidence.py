"""Fit how sure the relational memory is of a path, on validation worlds of many kinds.

Every question is asked with all facts of its world, and once more without one step of what decides it. Right is a path that ends where the
answer is told; each kind counts the same, and in it those with and those without an answer. Nothing of a test world is seen.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pandas as pd

from hippo_core.files import read_sealed, require_checkout, root, write_sealed
from hippo_core.methods.composite import CONFIDENCE_THRESHOLD
from hippo_core.methods.encoded import UNKNOWN_BELOW
from hippo_core.methods.presets import load_preset
from hippo_core.methods.relational.confidence import ANEW, FILE, FIT, MATTER, regime
from hippo_core.methods.relational.path_search import SAME, PathSearch, PathStep
from hippo_core.methods.relational.settings import Reader
from hippo_core.methods.relational.statement_reader import fitted_reader
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.questions.run import teach
from hippo_core.results.frames import Frame
from hippo_core.results.scores import em_norm
from hippo_core.retrieval.confidence import Confidence
from hippo_core.store import TraceStore, store_path
from hippo_core.suites import get_suite
from hippo_core.suites.draw import CONTEXT_LIMIT, worlds
from hippo_core.suites.types import Item, World
from hippo_core.suites.unanswerable import UNANSWERABLE, unanswerable_world
from recipes.confidence import ConfidenceExample, fitted
from recipes.memory_parts import provenance
from recipes.recall_weights import SEED

PRESET = "memory/sgc_rss"
WANTED = (MATTER, *get_args(Reader))
# kind: suite, profile, settings, questions
KINDS: Mapping[str, tuple[str, str, Mapping[str, Any], int]] = {
    "semantic": ("semantic", "default", {}, 120),
    "semantic, hard": ("semantic", "hard", {}, 80),
    "semantic, hedged": ("semantic", "hedged", {}, 40),
    "semantic, 100 facts": ("semantic", "default", {"n_facts": 100}, 20),
    "chains": ("folder:data/chains", "default", {}, 120),
    "relations": ("relations", "default", {}, 120),
    "relations, hard": ("relations", "hard", {}, 60),
    "episodic": ("episodic", "default", {}, 100),  # where no path leads to the answer
}


@dataclass(frozen=True)
class JudgedPath(ConfidenceExample):
    """A path as it was judged, and by which function."""

    part: str = "patterns"


def judged(reader: Reader, kinds: Mapping[str, tuple[str, str, Mapping[str, Any], int]] = KINDS) -> Iterator[JudgedPath]:
    """The best paths to the questions of all kinds."""
    lm = load(load_spec("hippo-tiny"), threads=1)
    changes = {
        "encoder": "minilm" if reader == "learned" else reader,
        "relational.reading": "learned" if reader == "learned" else "patterns",
    }
    preset = load_preset(PRESET, changes)
    method: Any = preset.method(lm, preset.settings)
    for kind, (name, profile, overrides, n) in kinds.items():
        suite = get_suite(name)
        drawn = list(worlds(name, profile, n, SEED, "val", CONTEXT_LIMIT, dict(overrides)))
        left = (
            [unanswerable_world(suite, world) for world in drawn]
            if suite.hide
            else [part for world in drawn for part in without_a_gold(world)]
        )
        for asked in (drawn, left):
            with TemporaryDirectory() as folder:
                teach(method, suite, asked, drawn[:1], Path(folder), "fit")
                with TraceStore.open(
                    store_path(Path(folder), "fit", method.algorithm()), "fit", method.identity(), read_only=True
                ) as store:
                    traces = {world.id: store.traces(world.id) for world in asked}
            for world in asked:
                search = method.search(traces[world.id])
                for item in world.items:
                    for path in search.best(item.question)[:1]:
                        answerable = UNANSWERABLE not in item.slices
                        right = answerable and em_norm(search.names[path.end], item.answers) == 1
                        yield JudgedPath(kind, path.evidence, right, answerable, regime(search.known(item.question)))


def without_a_gold(world: World) -> Iterator[World]:
    """For each question of which nothing false was told, the world with it alone and without one of its gold facts, drawn by its number."""
    for number, item in enumerate(world.items):
        if not item.gold_facts or item.refuted:
            continue
        removed = item.gold_facts[number % len(item.gold_facts)]
        facts = tuple(fact for fact in world.facts if removed not in (fact.id, item.retold.get(fact.id)))
        yield World(f"{world.id}.{number}", tuple(replace(fact, world=f"{world.id}.{number}") for fact in facts), (_left(item, number),))


def _left(item: Item, number: int) -> Item:
    return replace(item, world=f"{item.world}.{number}", gold_facts=(), slices=(*item.slices, UNANSWERABLE))


def table_of(of: Sequence[JudgedPath], function: Confidence) -> pd.DataFrame:
    """One row a kind, and whether its questions have an answer: the shares of paths that are right, right and not "unknown" (`kept`), right
    and sure, "unknown", and how many there are."""
    rows = pd.DataFrame(of)[["kind", "answerable", "right"]]
    confidences = pd.Series([function.of(path.evidence) for path in of])
    rows = rows.assign(
        kept=rows["right"] & (confidences >= UNKNOWN_BELOW),
        sure=rows["right"] & (confidences >= CONFIDENCE_THRESHOLD),
        unknown=confidences < UNKNOWN_BELOW,
    )
    grouped: Frame = rows.groupby(["kind", "answerable"], sort=False)
    return grouped.mean().round(4).assign(n=grouped.size()).reset_index()


def matters_of(of: Sequence[JudgedPath], function: Confidence) -> pd.DataFrame:
    """One row a kind: how many pairs of statements are of one matter, are found to be, and are both; and how many there are."""
    rows = pd.DataFrame([{"kind": path.kind, "same": path.right, "found": function.of(path.evidence) >= SAME} for path in of])
    rows = rows.assign(both=rows["same"] & rows["found"], n=1)
    grouped: Frame = rows.groupby("kind", sort=False)
    return grouped.sum().astype(int).reset_index()


def pairs(n_worlds: int = 40) -> Iterator[JudgedPath]:
    """Statements of the names that the best paths to questions lead over, on validation worlds of the bank of relations."""
    for profile in ("default", "hard", "updates"):
        for world in worlds("relations", profile, 5 * n_worlds, SEED, "val", CONTEXT_LIMIT):
            search = PathSearch(fitted_reader(), [fact.text for fact in world.facts], resolve=False)
            for item in world.items:
                for path, _, likely in search.likeliest(item.question)[:1]:
                    for hop, step in enumerate(path.steps):
                        yield from _pairs_of(profile, world, search, step, likely[hop])


def _pairs_of(kind: str, world: World, search: PathSearch, step: PathStep, likely: Any) -> Iterator[JudgedPath]:
    """A step's statement with each other one of its name; those are of one matter that say the same relation of the same head."""
    own = world.facts[step.number].slots
    for other, evidence in search.competing_steps(step, likely):
        slots = world.facts[other.number].slots
        yield JudgedPath(kind, evidence, all(slots[name] == own[name] for name in ("head", "relation")), True)


def fit_paths(wanted: Sequence[str] = WANTED, say: Callable[[str], None] = print) -> None:
    """Fit and write when statements are of one matter (`MATTER`), and the functions of these readers; those of others stay."""
    require_checkout("fitting")
    path = root() / FILE
    made = read_sealed(path, ANEW) if path.is_file() else {}
    functions, tables = dict(made.get("fitted", {})), dict(made.get("validation", {}))
    for reader in wanted:
        functions[reader], tables[reader] = {}, {}
        for part, own in _parts(reader).items():
            function = fitted(own)
            table = matters_of(own, function) if part == reader else table_of(own, function)
            say(f"{reader}, {part}\n{table.to_string(index=False)}")
            functions[reader][part] = asdict(function)
            tables[reader][part] = table.to_dict("records")
        write_sealed(path, {"fitted": functions, "seed": SEED, **provenance(FIT), "validation": tables})


def _parts(wanted: str) -> dict[str, list[Any]]:
    """What the functions of a reader, or those of matters, are fitted on, by part."""
    if wanted == MATTER:
        return {wanted: [*pairs()]}
    of = list(judged(wanted))  # type: ignore[arg-type]
    return {part: [path for path in of if path.part == part] for part in sorted({path.part for path in of}, reverse=True)}


if __name__ == "__main__":
    fit_paths(tuple(sys.argv[1:]) or WANTED)
