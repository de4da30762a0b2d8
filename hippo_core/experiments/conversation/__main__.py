"""The second and third phase alone, of records that a run has left: `python -m hippo_core.experiments.conversation evaluate RECORD`."""

from pathlib import Path
from typing import Annotated

import typer

from hippo_core.conversation.dialogue import read
from hippo_core.conversation.phases import RAW, SCORED, evaluate, read_rows, write_rows
from hippo_core.experiments.conversation.report import found
from hippo_core.experiments.conversation.run import DIALOGUES
from hippo_core.experiments.conversation.table import ROWS, table_of
from hippo_core.files import LabError, write_bytes, write_text
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.frames import Frame
from hippo_core.results.report.pages import slug

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)
Records = Annotated[list[Path], typer.Argument(help="folders of records, each with what the phase before left")]


@app.command("evaluate")
def score(records: Records) -> None:
    """Score the answers of raw.jsonl again, by the questions of dialogues.jsonl; writes scored.jsonl."""
    for record in records:
        scored = evaluate(read_rows(record / RAW), read(record / DIALOGUES, verbatim=False))
        write_rows(record / SCORED, scored)
        typer.echo(f"{record / SCORED}: {len(scored)} answers")


@app.command("aggregate")
def aggregate(records: Records, to: Annotated[Path, typer.Option(help="the folder of the report")] = Path("conversation")) -> None:
    """Write a report (index.md, figures) of scored.jsonl, of several records as of one."""
    rows = table_of([row for record in records for row in read_rows(record / SCORED)])
    rows = rows.drop_duplicates("entry")
    parts = []
    for section in found([TableRows("conversation", ROWS.step, ROWS.unit, ROWS.cluster, rows, ROWS.measures)]):
        parts += [f"## {section.title}", section.sentence]
        if section.figure:
            write_bytes(to / "figures" / f"{slug(section.title)}.png", section.figure)
            parts.append(f"![{section.title}](figures/{slug(section.title)}.png)")
        if section.table is not None:
            parts.append(_lines(section.table))
    write_text(to / "index.md", "\n\n".join(["# Conversations", *parts]) + "\n")
    typer.echo(to / "index.md")


def _lines(table: Frame) -> str:
    """A table in Markdown."""
    heads = [str(name) for name in table.columns]
    rows = [heads, ["---"] * len(heads), *([str(value) for value in row] for row in table.itertuples(index=False, name=None))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    try:
        app()
    except LabError as error:
        raise SystemExit(f"error: {error}") from None
