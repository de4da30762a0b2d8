"""The tables of README and docs, filled from the reference reports: `python -m hippo_core.results.quoted`.

A page marks where a table stands, `<!-- table: NAME -->` to `<!-- end -->`; docs/tables.yaml says what it holds. Either a table of a report
as it is (`copied`, the page of the report, and `head`, how its first line begins), or means of the rows beside a report:

    ways:
      head: condition
      where: {reference: spatial, regime: delayed}           # columns of the rows, and whose reference they are
      columns: {default: {setting: spatial · default}}       # what each column adds to that
      rows: {best rag: {condition: baselines/rag_*}}         # and each row; a|b and * match several, of which the best counts
      text: {best rag: {default: "{}, ten facts"}}           # what else a cell says
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from re import DOTALL, Match, compile

import pandas as pd
from pydantic import BaseModel, ConfigDict, model_validator

from hippo_core.files import LabError, read_yaml, root, unknown, write_text
from hippo_core.results.formatting import share
from hippo_core.results.frames import Frame

REGION = compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", DOTALL)
Where = dict[str, str]


class Quoted(BaseModel):
    """What a table holds; see above."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: str
    copied: str = ""  # below reports/reference
    where: Where = {}
    columns: dict[str, Where] = {}
    rows: dict[str, Where] = {}
    text: dict[str, dict[str, str]] = {}

    @model_validator(mode="after")
    def _one_of_both(self) -> "Quoted":
        if bool(self.copied) == bool(self.rows and self.columns):
            raise ValueError("expected either copied, or rows and columns")
        return self

    def lines(self) -> Iterator[str]:
        """The table in Markdown.

        Raises:
            LabError: a report does not hold the table, or what a cell asks of the rows fits more than one condition of a row, or none.
        """
        if self.copied:
            yield from _copied(self.copied, self.head)
            return
        yield _line([self.head, *self.columns])
        yield "|---|" + "--:|" * len(self.columns)
        for label, row in self.rows.items():
            said = self.text.get(label, {})
            yield _line([label, *(said.get(name, "{}").format(_cell(self.where | column | row)) for name, column in self.columns.items())])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _copied(page: str, head: str) -> list[str]:
    """The lines of the first table of a page that begins so."""
    path = root() / "reports/reference" / page
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith(head)), None)
    if begin is None:
        raise LabError(f"{path} has no table that begins with {head!r}")
    end = next(number for number, line in enumerate([*lines[begin:], ""]) if not line.startswith("|"))
    return lines[begin : begin + end]


@cache
def _rows(reference: str) -> Frame:
    for path in (root() / "reports/reference" / reference).glob("rows.csv*"):
        return pd.read_csv(path, keep_default_na=False, dtype={"n": str, "seed": str})
    raise unknown("reference", reference, sorted(path.parent.name for path in (root() / "reports/reference").glob("*/rows.csv*")))


def _cell(where: Mapping[str, str]) -> str:
    """The score of what is asked for, of several conditions the best; "–" where nothing of it was run."""
    rows = _rows(where["reference"])
    rows = rows[rows["split"] == "test"]
    for column, value in where.items():
        if column == "reference":
            continue
        if column not in rows:
            raise unknown(f"column of the rows of {where['reference']}", column, rows.columns)
        rows = rows.loc[[number for number, found in rows[column].items() if any(fnmatchcase(str(found), one) for one in value.split("|"))]]
    means = [one["score"].astype(float).sum() / one["items"].sum() for _, one in rows.groupby(["condition", "regime"])]
    return share(max(means)) if means else share(None)


def tables() -> dict[str, Quoted]:
    """All tables by their names, as docs/tables.yaml says."""
    return {name: Quoted.model_validate(told) for name, told in read_yaml(root() / "docs/tables.yaml").items()}


def filled(page: str, known: Mapping[str, Quoted]) -> str:
    """A page with its tables as the references give them.

    Raises:
        UnknownName: the page names a table that is not known.
    """

    def table(hit: Match[str]) -> str:
        if hit["name"] not in known:
            raise unknown("table of docs/tables.yaml", hit["name"], known)
        return hit[1] + "\n".join(("", *known[hit["name"]].lines(), "", hit[3]))

    return REGION.sub(table, page)


def pages() -> list[Path]:
    """README and docs."""
    return [root() / "README.md", *sorted((root() / "docs").glob("*.md"))]


def main() -> None:
    """Write the tables of all pages anew."""
    known = tables()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := filled(text, known)) != text:
            write_text(path, new)
            print(f"written: {path.relative_to(root())}")


if __name__ == "__main__":
    main()
