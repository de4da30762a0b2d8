"""Tables, numbers and the first figure of README and docs, filled from the reference reports: `python -m docs.build_tables`.

A page marks where a table stands, `<!-- table: NAME -->` to `<!-- end -->`; docs/tables.yaml says what it holds. Either a table of a report
(`copied`, the page of the report, `head`, how its first line begins, and perhaps `under`, a line before it, `only`, which columns, and
`having`, what rows must say in a column), or means of the rows beside one:

    ways:
      head: condition
      where: {reference: spatial, regime: delayed}           # columns of the rows, whose reference they are, and the `measure` (score)
      columns: {default: {setting: spatial · default}}       # what each column adds to that
      rows: {best rag: {condition: baselines/rag_*}}         # and each row; a|b and * match several, of which the best counts
      cells: {best rag: {default: {condition: controls/*}}}  # and a cell, in the place of what its row and column say of the same column
      shown: {default: "{}, {span}, {k}, {tokens}, {ms}"}      # what a column says: score, interval, a question's costs; or {by}
      text: {best rag: {default: "{}, ten facts"}}           # what a cell says

A column that says {by}, who computed the answers, is left out where no reference knows it.

The figure is drawn from the first two columns of the table `opening`. Numbers in sentences are cells of the same tables (sentences.py).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from re import DOTALL, MULTILINE, compile, sub

import pandas as pd
from pydantic import BaseModel, ConfigDict, model_validator

from docs.comparison_figure import PlotSide, comparison_figure
from docs.sentences import sentences, with_numbers
from hippo_core.errors import LabError, unknown
from hippo_core.files import read_yaml, root, write_bytes, write_text
from hippo_core.results.conditions import INVALID, is_invalid, unmarked
from hippo_core.results.formatting import NONE, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.results.summaries import ANSWERED_BY, answered_by

FIGURE, TITLE = "docs/brings.png", "Answers right in words that nothing was fitted on: the memory beside the best RAG"
LOG, TITLES = "reports/log", compile(r"^## (.*)$", MULTILINE)
BY = "{by}"
LINK = compile(r"\[[^\]]*\]\([^)]*\)")
REGION = compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", DOTALL)
Where = dict[str, str]


class Quoted(BaseModel):
    """What a table holds; see above."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: str
    copied: str = ""  # below reports/reference
    under: str = ""  # how the line begins that comes before the table, where several tables have one head
    only: list[str] = []
    having: dict[str, str] = {}
    where: Where = {}
    columns: dict[str, Where] = {}
    rows: dict[str, Where] = {}
    cells: dict[str, dict[str, Where]] = {}
    shown: dict[str, str] = {}
    text: dict[str, dict[str, str]] = {}

    @model_validator(mode="after")
    def _either_copied_or_made(self) -> "Quoted":
        if bool(self.copied) == bool(self.rows and self.columns):
            raise ValueError("expected either copied, or rows and columns")
        return self

    def lines(self) -> Iterator[str]:
        """The table in Markdown.

        Raises:
            LabError: a report does not hold the table, or what a cell asks of the rows fits more than one condition of a row, or none.
        """
        if self.copied:
            yield from _copied(self)
            return
        formats = {label: self.shown | self.text.get(label, {}) for label in self.rows}
        columns = {name: [self.cell(label, name).formatted(formats[label].get(name, "{}")) for label in self.rows] for name in self.columns}
        columns = {name: cells for name, cells in columns.items() if self.shown.get(name) != BY or set(cells) != {NONE}}
        yield _line([self.head, *columns])
        yield "|---|" + "".join("---|" if self.shown.get(name) == BY else "--:|" for name in columns)
        for label, *cells in zip(self.rows, *columns.values(), strict=True):
            yield _line([label, *cells])

    def cell(self, row: str, column: str) -> "TableCell":
        """What a cell is about."""
        return _cell(self.where | self.columns[column] | self.rows[row] | self.cells.get(row, {}).get(column, {}))


@dataclass(frozen=True)
class TableCell:
    """The rows of the condition that a cell quotes, a row the sums over `items` answers to questions about a world; none where nothing of
    it was run, or only what is `invalid`. `measure`: the column that is its score."""

    rows: Frame | None = None
    invalid: bool = False
    measure: str = "score"

    @property
    def score(self) -> float | None:
        """The mean score of an answer."""
        return self.mean(self.measure)

    def mean(self, measure: str) -> float | None:
        """The mean of a measure over the answers; None where it was not measured."""
        if self.rows is None or measure not in self.rows or (sums := _numbers(self.rows[measure])).isna().all():
            return None
        return float(sums.sum() / self.rows["items"].sum())

    def formatted(self, text: str) -> str:
        """The text with its numbers: `{}` the score, `{span}` its 95% interval by world, `{k}` the facts in the prompt, `{tokens}` computed
        and `{ms}` with retrieval, of a question, `{by}` who computed the answers; a dash where none of them was measured, and where the
        cell breaks the contract of a meaningful run that it does."""
        if self.invalid:
            return INVALID

        def written(value: float | None) -> str:
            return NONE if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"

        times = [time for time in map(self.mean, ("retrieval_ms", "latency_ms")) if time is not None]
        costs = {"k": self.mean("n_shown"), "tokens": self.mean("computed_tokens"), "ms": sum(times) if times else None}
        if self.score is None or (costs["tokens"] is None and "{tokens}" in text):
            return NONE
        by = answered_by({column: self.mean(column) for column in ANSWERED_BY})
        within = span(*self.interval()) if "{span}" in text else NONE
        return text.format(share(self.score), by=by, span=within, **{name: written(value) for name, value in costs.items()})

    def interval(self) -> tuple[float, float]:
        """The 95% interval of the score, by world; of shares alone, NaN of others."""
        if self.rows is None:
            return float("nan"), float("nan")
        lines = self.rows.loc[self.rows.index.repeat(self.rows["items"])]  # an answer each: of so many right ones the first
        right = (_numbers(lines[self.measure]) - lines.groupby(level=0).cumcount()).clip(0, 1)
        limits = cluster_interval(right.to_numpy(dtype=float), (lines["seed"] + "/" + lines["world"]).to_numpy())
        return limits.low, limits.high


def _numbers(values: Frame) -> Frame:
    return pd.to_numeric(values, errors="coerce")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _copied(quoted: Quoted) -> list[str]:
    """The lines of the first table of a page that begins as `quoted` says, of its named columns; of all where none is."""
    path = root() / "reports/reference" / quoted.copied
    lines = path.read_text(encoding="utf-8").splitlines()
    after = next((number for number, line in enumerate(lines) if line.startswith(quoted.under)), len(lines))
    begin = next((number for number, line in enumerate(lines) if number >= after and line.startswith(quoted.head)), None)
    if begin is None:
        raise LabError(f"{path} has no table that begins with {quoted.head!r}" + (f" below {quoted.under!r}" if quoted.under else ""))
    end = next(number for number, line in enumerate([*lines[begin:], ""]) if not line.startswith("|"))
    table = lines[begin : begin + end]
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    if strange := [name for name in (*quoted.only, *quoted.having) if name not in head]:
        raise unknown(f"column of {quoted.copied}", strange[0], head)
    rows = [row for row in rows if all(row[head.index(name)] == value for name, value in quoted.having.items())]
    kept = [head.index(name) for name in quoted.only or head]
    return table if len(kept) == len(head) and not quoted.having else [_line([row[at] for at in kept]) for row in (head, rule, *rows)]


@cache
def _rows(reference: str) -> Frame:
    folder = root() / "reports/reference" / reference
    for path in folder.glob("rows.csv*"):
        return pd.read_csv(path, keep_default_na=False, dtype={"n": str, "seed": str}).reset_index(drop=True)
    for path in folder.glob("consolidate.csv*"):  # an answer a row, each under a probe and a stage
        rows = pd.read_csv(path, keep_default_na=False, dtype=str)
        return rows[rows["score"] != ""].assign(items=1, split="test", condition=rows["probe"], regime=rows["stage"])
    raise unknown("reference", reference, sorted(path.parent.name for path in (root() / "reports/reference").glob("*/*.csv*")))


def _cell(where: Mapping[str, str]) -> TableCell:
    """What is asked for, of several conditions the best."""
    rows = _rows(where["reference"])
    rows = rows[rows["split"] == "test"]
    for column, value in where.items():
        if column in ("reference", "measure"):
            continue
        if column not in rows:
            raise unknown(f"column of the rows of {where['reference']}", column, rows.columns)
        wanted = [name for name in rows[column].unique() if any(fnmatchcase(unmarked(str(name)), pattern) for pattern in value.split("|"))]
        rows = rows[rows[column].isin(wanted)]
    measure = where.get("measure", "score")
    cells = [TableCell(group, measure=measure) for name, group in rows.groupby(["condition", "regime"]) if not is_invalid(name[0])]
    return max(cells, key=lambda cell: cell.score or 0.0, default=TableCell(invalid=len(rows) > 0))


def tables() -> dict[str, Quoted]:
    """All tables by their names, as docs/tables.yaml says."""
    return {name: Quoted.model_validate(values) for name, values in read_yaml(root() / "docs/tables.yaml").items()}


@cache
def table_lines(name: str) -> tuple[str, ...]:
    """A table's lines in Markdown; UnknownName where docs/tables.yaml has no such table, LabError as of `Quoted.lines`."""
    known = tables()
    if name not in known:
        raise unknown("table of docs/tables.yaml", name, known)
    return tuple(known[name].lines())


def filled(page: str) -> str:
    """A page with its tables as the references give them; UnknownName for a table that is not known."""
    return REGION.sub(lambda hit: hit[1] + "\n".join(("", *table_lines(hit["name"]), "", hit[3])), page)


def drawn(table: Quoted) -> tuple[list[str], list[tuple[str, list[PlotSide]]]]:
    """What the figure shows of a table's first two columns: their names, and of each row both sides, each its score with its interval and
    what a question costs."""
    columns = list(table.columns)[:2]
    names = [LINK.sub("", row).replace(" ()", "").replace("`", "").strip() for row in table.rows]  # without marks of Markdown
    lines = [[_plot_side(table.cell(row, name)) for name in columns] for row in table.rows]
    return columns, list(zip(names, lines, strict=True))


def _plot_side(cell: TableCell) -> PlotSide:
    cost = cell.formatted("{tokens} tokens, {ms} ms")
    return PlotSide(cell.score, *cell.interval(), cost if cost != NONE else "")


def pages() -> dict[str, Path]:
    """README and docs, by their paths from the root."""
    return {str(path.relative_to(root())): path for path in (root() / "README.md", *sorted((root() / "docs").glob("*.md")))}


def current(page: str) -> str:
    """A page, by its path from the root, with its tables and the numbers of its sentences as the references give them."""
    return with_numbers(filled(pages()[page].read_text(encoding="utf-8")), sentences().get(page, []), table_lines)


def contents() -> str:
    """The table of contents of the lab book: its entries by month, in the order in which they were written."""
    lines = ["# Lab book", "", "Each entry: the question, what was changed, the numbers with their command, the verdict."]
    lines += ["*(negative)* marks what did not work. Newest last."]
    for month in sorted((root() / LOG).glob("*.md")):
        lines += ["", f"## [{month.stem}](log/{month.name})", ""]
        for title in TITLES.findall(month.read_text(encoding="utf-8")):
            anchor = sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            lines.append(f"- [{title}](log/{month.name}#{anchor})")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the tables and numbers of all pages anew."""
    for page, path in pages().items():
        if (new := current(page)) != path.read_text(encoding="utf-8"):
            write_text(path, new)
            print(f"written: {page}")
    write_text(root() / "reports/LOG.md", contents())
    write_bytes(root() / FIGURE, comparison_figure(TITLE, *drawn(tables()["opening"])))


if __name__ == "__main__":
    main()
