"""The way from a number to the items behind it: relative links into a report's item pages."""

from dataclasses import dataclass
from urllib.parse import quote

from hippo_core.results.figures.palette import look
from hippo_core.results.report.runs import Cell


@dataclass(frozen=True)
class Links:
    """Where the items behind a number are listed."""

    cells: list[Cell]
    pairs_page: str

    def items(self, condition: str, regime: str, **where: str) -> str:
        """The page of a condition's items: its cell's page where there is one cell, else the setting's page."""
        here = self._cells(condition, regime)
        fragment = "".join(f"&{name}={quote(str(value))}" for name, value in where.items())
        if len(here) == 1 and here[0].listed:
            return f"items/{here[0].page}" + (f"#{fragment[1:]}" if fragment else "")
        return f"items/{self.pairs_page}#a={quote(_column(condition, self.regime(condition, regime)))}{fragment}"

    def differing(self, a: tuple[str, str], b: tuple[str, str], side: str = "both") -> str:
        """The setting's page, showing only the items where a and b differ (`side`: where only one of them is right)."""
        left, right = (quote(_column(name, self.regime(name, regime))) for name, regime in (a, b))
        return f"items/{self.pairs_page}#a={left}&b={right}&only={side}"

    def regime(self, condition: str, regime: str) -> str:
        """The regime under which the record lies: conditions without a window have one record for both."""
        return regime if any(cell.regime == regime for cell in self.cells if cell.condition == condition) else "delayed"

    def _cells(self, condition: str, regime: str) -> list[Cell]:
        regime = self.regime(condition, regime)
        return [cell for cell in self.cells if cell.condition == condition and cell.regime == regime]


def _column(condition: str, regime: str) -> str:
    return f"{look(condition).label}, {regime}"
