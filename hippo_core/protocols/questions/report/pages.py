"""The templates of these pages, and the relative links from a number to the items behind it."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hippo_core.protocols.questions.report.runs import RecordView
from hippo_core.results.figures.palette import style_of
from hippo_core.results.report.pages import Templates

TEMPLATES = Templates(Path(__file__).parent / "templates")


@dataclass(frozen=True)
class Links:
    """Where the items behind a number are listed."""

    cells: list[RecordView]
    pairs_page: str

    def items(self, condition: str, regime: str, **where: str) -> str:
        """The page of a condition's items: its cell's page where there is one cell, else the setting's page."""
        regime = self.regime(condition, regime)
        here = [cell for cell in self.cells if cell.condition == condition and cell.regime == regime]
        fragment = _fragment(where)
        if len(here) == 1 and here[0].listed:
            return f"items/{here[0].page}" + (f"#{fragment[1:]}" if fragment else "")
        return f"items/{self.pairs_page}#a={quote(_column(condition, regime))}{fragment}"

    def differing(self, a: tuple[str, str], b: tuple[str, str], only: str = "both", **where: str) -> str:
        """The setting's page, showing only the items where a and b differ (`only`: where only one of them is right; `where`: of a rung)."""
        left, right = (quote(_column(name, self.regime(name, regime))) for name, regime in (a, b))
        return f"items/{self.pairs_page}#a={left}&b={right}&only={only}{_fragment(where)}"

    def regime(self, condition: str, regime: str) -> str:
        """The regime under which the record lies: conditions without a window have one record for both."""
        return regime if any(cell.regime == regime for cell in self.cells if cell.condition == condition) else "delayed"


def _fragment(where: dict[str, str]) -> str:
    return "".join(f"&{name}={quote(str(value))}" for name, value in where.items())


def _column(condition: str, regime: str) -> str:
    return f"{style_of(condition).label}, {regime}"
