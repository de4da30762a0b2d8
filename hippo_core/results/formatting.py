"""Numbers as words for a reader: only the digits that their interval justifies, and a dash where nothing was measured. And tables and
pages in Markdown, in which what others wrote is shown as text, never as markup."""

import math
from collections.abc import Sequence
from html import escape

from hippo_core.text import in_markdown, printable

NONE = "–"
CUT = 120  # letters of a text in a table
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "th{background:#f4f4f4}"
)


def missing(value: object) -> bool:
    """Whether a value is one of the ways in which "not measured" is written: None, NaN, an empty string."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def share(value: float | None, low: float | None = None, high: float | None = None, sign: bool = False) -> str:
    """A proportion or a difference of two, such as 0.94 or −0.05; three decimals where its interval is narrower than .01. `sign` also
    writes the plus."""
    if missing(value):
        return NONE
    narrow = not (missing(low) or missing(high)) and 0 < float(high) - float(low) < 0.01  # type: ignore[arg-type]
    known = round(float(value), 9)  # type: ignore[arg-type]  # a sum in another order is the same number
    text = f"{abs(known):.{3 if narrow else 2}f}"
    nothing = float(text) == 0
    return ("" if nothing else "−" if known < 0 else "+" if sign else "") + text


def span(low: float | None, high: float | None, sign: bool = False) -> str:
    """An interval: 0.88 to 0.97."""
    if missing(low) or missing(high):
        return NONE
    return f"{share(low, low, high, sign)} to {share(high, low, high, sign)}"


def share_and_span(value: float | None, low: float | None, high: float | None, sign: bool = False) -> str:
    """A proportion with its interval in brackets, where there is one: 0.92 (0.88 to 0.97)."""
    return share(value, low, high, sign) + ("" if missing(low) or missing(high) else f" ({span(low, high, sign)})")


def percent(value: float | None) -> str:
    """A proportion in a sentence: 94%, where a table says 0.94."""
    return NONE if missing(value) else f"{100 * float(share(abs(value))):.0f}%"  # type: ignore[arg-type]


def probability(value: float | None) -> str:
    """A p value: two significant digits, never below what 10,000 permutations can tell."""
    if missing(value):
        return NONE
    number = float(value)  # type: ignore[arg-type]
    if number < 0.001:
        return "< 0.001"
    return f"{number:.3f}" if number < 0.1 else f"{number:.2f}"


def quantity(value: float | None) -> str:
    """A count, a time or a size: three significant digits, thousands separated."""
    if missing(value):
        return NONE
    number = round(float(value), 9)  # type: ignore[arg-type]  # a sum in another order is the same number
    if number == 0 or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"


def count(value: float | None) -> str:
    """A whole number with thousands separated."""
    return NONE if missing(value) else f"{int(value):,}"  # type: ignore[arg-type]


def listing(values: Sequence[object], most: int = 20) -> str:
    """Values one by one; of more than `most` the first, the last and how many there are."""
    return ", ".join(map(str, values)) if len(values) <= most else f"{values[0]} to {values[-1]} ({len(values)})"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; long texts are cut in the middle."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return NONE if missing(value) else f"{value:.3g}"
    words = " ".join(str("" if missing(value) else value).split())
    return in_markdown(words if len(words) <= CUT else f"{words[: CUT // 2 - 2]} ... {words[2 - CUT // 2 :]}")


def html(text: str, title: str) -> str:
    """A page as HTML, which fetches and runs nothing."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"]).render(printable(text))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    secured = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
    head = f"{secured}<title>{escape(printable(title))}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>\n"
