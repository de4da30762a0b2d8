"""Drawings of how a method came to an answer, as a record keeps them beside its rows."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hippo_core.files import write_json
from hippo_core.methods.base import Picture

FILE = "drawings.json"


def keep(record: Path, question: str, pictures: Sequence[Picture]) -> None:
    """Put the drawings of a question into a record that is not finished."""
    write_json(record / FILE, {"question": question, "pictures": [asdict(picture) for picture in pictures]})


def kept(record: Path) -> tuple[str, list[Picture]]:
    """The question and its drawings; "" and none where a record has none."""
    if not (record / FILE).is_file():
        return "", []
    drawn = json.loads((record / FILE).read_text(encoding="utf-8"))
    return drawn["question"], [Picture(**picture) for picture in drawn["pictures"]]


def alone(svg: str) -> bytes:
    """A drawing as a file of its own."""
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" ', 1).encode()
