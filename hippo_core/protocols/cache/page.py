"""The page of a reference of the cache experiment, from the files beside it: `python -m hippo_core.protocols.cache.page FOLDER`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.files import read_object, write_text
from hippo_core.protocols.cache import outcomes as protocol
from hippo_core.results.frames import Frame

FIGURES = {
    "figA": "Score kept",
    "figB": "What a defence costs",
    "figC": "Words that move",
    "figD": "Layers and heads",
    "figE": "Who notices",
    "figF": "Which bit matters",
    "figG": "Bits that are gone",
}

AREA = "area under the score kept from severity 0, undamaged caches included,"
TABLES = {
    "ahead": "Brought back where half of the score is lost; in brackets how far ahead of the best heuristic",
    "spans": "The worst spans first: damage recovered",
    "left_out": "A fault left out of the training: damage recovered",
    "contraction": f"With and without the loss that contracts: {AREA} of the learned repair",
    "ablations": f"All settings: {AREA} by setting",
}


def page(folder: Path) -> str:
    """The page in Markdown; a figure that the folder lacks has no section. LabError where its metrics are missing."""
    for name in ("task_metrics.json", "protocol_metrics.json"):
        if not (folder / name).is_file():
            raise LabError(f"{folder / name} is not there; write it from a run: python -m hippo_core.protocols.cache.artifacts")
    told = read_object(folder / "protocol_metrics.json")
    parts = ["# Reference: a broken cache", told["made"]]
    files = [path.name for path in sorted(folder.iterdir()) if path.suffix in (".json", ".jsonl", ".tex")]
    parts.append(f"Beside it: {', '.join(f'[{name}]({name})' for name in files)}.")
    for name, title in FIGURES.items():
        if (folder / "figures" / f"{name}.png").is_file():
            parts += [f"## {title}", f"![{title}](figures/{name}.png)", *map(markdown, _tables(folder, name))]
    for name, title in TABLES.items():
        if told[name]:
            parts += [f"## {title}", markdown(pd.DataFrame(told[name]))]
    return "\n\n".join(parts) + "\n"


def _tables(folder: Path, figure: str) -> Iterator[Frame]:
    """The tables below a figure."""
    if figure == "figA":
        metrics = read_object(folder / "task_metrics.json")
        yield protocol.scores_kept(metrics)
        yield protocol.score_lost(metrics)
        yield protocol.damage_recovered(metrics)
    elif figure == "figE":
        known = read_object(folder / "task_metrics.json")["overhead"]
        yield protocol.detection_rate(read_object(folder / "detection_metrics.json"), known)
    elif part := {"figF": "bits", "figG": "gone"}.get(figure):
        yield pd.DataFrame(read_object(folder / "protocol_metrics.json")[part])


def markdown(table: Frame) -> str:
    """A table in Markdown, numbers to the right."""
    heads = list(map(str, table.columns))
    lines = [f"| {' | '.join(line)} |" for line in [heads, *table.astype(str).to_numpy().tolist()]]
    return "\n".join([lines[0], "|---|" + "--:|" * (len(heads) - 1), *lines[1:]])


def main(folders: list[str]) -> None:
    """Write the pages of these folders anew."""
    for folder in map(Path, folders):
        write_text(folder / "index.md", page(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
