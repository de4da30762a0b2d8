"""How often the fitted reader's best path leads to the answer, and which part of its reading loses most: some are replaced by what is true.

    python benchmarks/memory/paths.py [--worlds 20] [--split val] [--about chain] [--given nothing --given names --given names,kinds,cut]

Worlds of the suite `relations`. `names`: which words of each text are names; `kinds`: how each statement is told, and what each name is in
it; `cut`: which words of a question belong to which hop. `shown`: the share of the questions all of whose gold statements are among those
of the best path, and of the three best. One thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Annotated, Any

import pandas as pd
import torch
import typer

from hippo_core.methods.relational.edge import Attestation
from hippo_core.methods.relational.encoder import ROLES
from hippo_core.methods.relational.path_search import PathSearch
from hippo_core.methods.relational.statement_reader import StatementReader, Tagged, fitted_reader
from hippo_core.results.scores import em_norm
from hippo_core.suites.relations import RelationsSettings, make_world
from hippo_core.suites.types import Fact, Item, World, WorldSpec
from recipes.path_lessons import named, role_of, tags_of

PARTS = ("names", "kinds", "cut")
ABOUT: dict[str, dict[str, Any]] = {
    "chain": {},
    "replaced": {"about": ("now", "before"), "updates": 5},
    "disputed": {"about": ("disputed",), "disputed": 5, "hops": (1, 2, 2)},
}
UNLIKELY = -8.0  # the logarithm of how likely another role is than the true one


def set_true_tags(reader: StatementReader, world: World, given: set[str]) -> None:
    """Put what is true of the texts of a world in the place of what the tagger says of them."""
    names = sorted({fact.slots[slot] for fact in world.facts for slot in ("head", "tail", "old", "teller") if slot in fact.slots})
    texts: list[tuple[str, Fact | None]] = [(fact.text, fact) for fact in world.facts]
    for text, fact in (*texts, *((item.question, None) for item in world.items)):
        true = {(start + 4 * text[start:end].lower().startswith("the "), end): name for start, end, name in named(text, names)}
        [tagged] = reader.tag([text])
        if "names" in given:
            [marked] = reader.marker.unmarked([text])
            at = {position: row for row, position in enumerate(marked.starts)}
            roles = reader.tagger([marked])[1][0]
            of = {span: roles[at[span[0]]].log_softmax(-1) for span in true if span[0] in at}
            tagged = Tagged([*true], of, tagged.kind)
        if "kinds" in given and fact is not None:
            of = {}
            for start, end in tagged.spans:
                name = next((name for (a, b), name in true.items() if a < end and start < b), None)
                of[start, end] = torch.full((len(ROLES),), UNLIKELY)
                of[start, end][role_of(name, fact) if name else ROLES.index("other")] = 0.0
            tagged = Tagged(tagged.spans, of, fact.slots["told"])
        reader.tagged[text] = tagged


@contextmanager
def cut_as(reader: StatementReader, item: Item, true: bool) -> Iterator[None]:
    """While it lasts the cutter cuts this question as it is built, where that is wanted."""
    forward = reader.cutter.forward

    def given(questions: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tags, intents = forward(questions)
        right = torch.full_like(tags, -50.0)
        for row, question in enumerate(questions):
            for index, hop in enumerate(tags_of(question, item.truth["within"])):
                right[row, index, hop] = 0.0
        return right, intents

    if true:
        reader.cutter.forward = given  # type: ignore[method-assign]
    try:
        yield
    finally:
        reader.cutter.forward = forward  # type: ignore[method-assign]


@torch.inference_mode()
def rows(reader: StatementReader, worlds: list[World], given: set[str], resolve: bool) -> Iterator[dict[str, Any]]:
    """Whether the best path of each question is right."""
    reader.tagged.clear()
    reader.kept.clear()
    for world in worlds:
        set_true_tags(reader, world, given)
        attestations = [(Attestation(fact.teller, number),) for number, fact in enumerate(world.facts)]
        search = PathSearch(reader, [fact.text for fact in world.facts], attestations, resolve=resolve)
        index = {fact.id: number for number, fact in enumerate(world.facts)}
        for item in world.items:
            with cut_as(reader, item, "cut" in given):
                paths = search.best(item.question)
            gold = {index[name] for name in item.gold_facts}
            shown = [gold <= {number for path in paths[:most] for number in path.statements} for most in (1, 3)]
            right = bool(paths) and em_norm(search.names[paths[0].end], item.answers) == 1
            yield {"kind": item.kind, "right": right, "shown": shown[0], "shown by three": shown[1]}


def main(
    worlds: Annotated[int, typer.Option(help="of five questions each")] = 20,
    split: Annotated[str, typer.Option(help="val, or train; nothing is chosen on the test split")] = "val",
    about: Annotated[list[str], typer.Option(help=" or ".join(ABOUT))] = ["chain"],  # noqa: B006
    given: Annotated[list[str], typer.Option(help=f"parts that are given, of {', '.join(PARTS)}, with commas")] = ["nothing"],  # noqa: B006
    resolve: Annotated[bool, typer.Option(help="settle what is contested")] = True,
) -> None:
    """Print a table for each of `about` and of `given`."""
    torch.set_num_threads(1)
    reader = fitted_reader()
    for name in about:
        settings = RelationsSettings(**ABOUT[name])
        drawn = [make_world(Random(f"paths {number}"), settings, WorldSpec(split, 1, number)) for number in range(worlds)]  # type: ignore[arg-type]
        for parts in given:
            scored = pd.DataFrame(rows(reader, drawn, {*parts.split(",")} & {*PARTS}, resolve))
            table = pd.concat([scored.groupby("kind").mean(), scored.drop(columns="kind").mean().to_frame("all").T])
            typer.echo(f"{name}, {parts} given, {len(scored)} questions\n{table.round(3).to_string()}\n")


if __name__ == "__main__":
    typer.run(main)
