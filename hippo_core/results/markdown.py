"""Tables and pages in Markdown, and such a page as HTML that stands by itself. What others wrote is shown as text, never as markup."""

from collections.abc import Sequence
from html import escape

from hippo_core.results.formatting import NONE, missing
from hippo_core.text import in_markdown, printable

CUT = 120  # letters of a text in a table
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "th{background:#f4f4f4}"
)


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
