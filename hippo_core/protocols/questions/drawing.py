"""How a memory came to one of its answers, drawn by the memory itself and kept in a record beside its rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from hippo_core.files import write_json
from hippo_core.methods.base import Memory, Picture, Query
from hippo_core.suites.types import Item, World

FILE = "drawings.json"


def draw(method: Memory, worlds: Sequence[World], stores: Mapping[str, Path], record: Path) -> str:
    """The drawings of one question as HTML, which its record keeps for the report; "" where the method draws none, or a control replaces
    what it recalls. The question is the first whose answer is contested, else the first. `stores`: as `run.test` has them."""
    from hippo_core.protocols.questions.run import read

    if method.settings.control != "none":
        return ""
    world, item = example(worlds)
    traces = read(method, [world], stores)[0][world.id]
    ranking = method.open(traces, [item.question])(Query(item.question, item.taught)).ranking or (None,)
    pictures = method.pictures(item.question, ranking[0], traces)
    method.forget()
    if not pictures:
        return ""
    keep(record, item.question, pictures)
    drawn = (f"<p>{escape(picture.title)}</p>{picture.svg}<p>{escape(picture.reading)}</p>" for picture in pictures)
    return f"<p><b>{escape(item.question)}</b></p>{''.join(drawn)}"


def example(worlds: Sequence[World]) -> tuple[World, Item]:
    """The first item whose answer is contested, else the first, with its world."""
    items = [(world, item) for world in worlds for item in world.items]
    return next((pair for pair in items if pair[1].refuted), items[0])


def keep(record: Path, question: str, pictures: Sequence[Picture]) -> None:
    """Put the drawings of a question into a record that is not finished."""
    write_json(record / FILE, {"question": question, "pictures": [asdict(picture) for picture in pictures]})


def kept(record: Path) -> tuple[str, list[Picture]]:
    """The question and its drawings; "" and none where a record has none."""
    if not (record / FILE).is_file():
        return "", []
    drawn = json.loads((record / FILE).read_text(encoding="utf-8"))
    return drawn["question"], [Picture(**picture) for picture in drawn["pictures"]]
