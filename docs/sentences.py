"""Sentences of README and docs whose numbers are cells of tables.

A page holds its sentences as any other text. docs/sentences.yaml repeats them, with a cell in the place of each number that was measured:

    docs/results.md:
    - "the memory answers {natural | hei_nw (minilm, k=1) | notes · n=192}, a rag {natural | rag_sum (minilm, k=1) | notes · n=192}"

A cell is the name of a table (docs/tables.yaml), how its row begins (its first cell, or more where several rows begin alike) and its
column; `#2` is the second number in the cell, `±` drops its sign, and `{one − other}` is the difference of two. Numbers are written as in
prose, .38 for 0.38. Where the page breaks its lines does not matter.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from hippo_core.errors import LabError, unknown
from hippo_core.files import read_yaml, root

CELL = re.compile(r"\{([^{}]+)\}")
NUMBER = r"(?:(?<![\w.)])[+−-])?(?:\d+(?:,\d{3})+|\d*\.?\d+)(?:\.\d+)?"
Lines = Callable[[str], Sequence[str]]  # a table's lines in Markdown by its name


def sentences() -> dict[str, list[str]]:
    """The sentences of each page, by its path from the root."""
    return read_yaml(root() / "docs/sentences.yaml")


def tables_named(known: Mapping[str, Sequence[str]]) -> set[str]:
    """The tables that sentences of these pages quote."""
    cells = (cell for listed in known.values() for sentence in listed for cell in CELL.findall(sentence))
    return {operand.split(" | ")[0] for cell in cells for operand in cell.split(" − ")}


def quoted_numbers(page: str, listed: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Where the numbers of these sentences stand in a page, and the cell of each. LabError where a sentence is not there exactly once."""
    for sentence in listed:
        literals = CELL.split(sentence)[::2]
        pattern = f"({NUMBER})".join(r"\s+".join(map(re.escape, re.split(r"\s+", literal))) for literal in literals)
        hits = list(re.finditer(pattern, page))
        if len(hits) != 1:
            raise LabError(f"docs/sentences.yaml: expected a page to hold this once, it does {len(hits)} times: {sentence}")
        for group, cell in enumerate(CELL.findall(sentence), start=1):
            yield *hits[0].span(group), cell


def with_numbers(page: str, listed: Sequence[str], lines: Lines) -> str:
    """A page with the numbers of these sentences as the tables give them."""
    for begin, end, cell in sorted(quoted_numbers(page, listed), reverse=True):
        page = page[:begin] + number(cell, lines) + page[end:]
    return page


def number(cell: str, lines: Lines) -> str:
    """The number of a cell, or the difference of two, as prose writes it."""
    first, *others = (_of_cell(operand, lines) for operand in cell.split(" − "))
    if others:
        first = str(_decimal(first) - sum(map(_decimal, others)))
    return re.sub(r"^([+−]?)0\.", r"\1.", first.replace("-", "−"))


def _of_cell(cell: str, lines: Lines) -> str:
    cell, *options = re.split(r" (?=#|±)", cell)
    name, *begins, column = cell.split(" | ")
    head, _, *rows = ([text.strip() for text in line.strip("|").split("|")] for line in lines(name))
    if column not in head:
        raise unknown(f"column of the table {name}", column, head)
    matches = [row for row in rows if row[: len(begins)] == begins] or [
        row for row in rows if all(text.startswith(start) for text, start in zip(row, begins, strict=False))
    ]
    if len(matches) != 1:
        raise LabError(f"docs/sentences.yaml: expected one row of the table {name} to begin with {begins}, {len(matches)} do")
    text = matches[0][head.index(column)]
    numbers = re.findall(NUMBER, text)
    at = next((int(option[1:]) for option in options if option[0] == "#"), 1) - 1
    if at >= len(numbers):
        raise LabError(f"docs/sentences.yaml: expected {at + 1} numbers in the cell {cell} of the table {name}, it says {text!r}")
    return numbers[at].lstrip("+−-") if "±" in options else numbers[at]


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))
