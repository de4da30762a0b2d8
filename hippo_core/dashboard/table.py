"""A table of many rows as one widget: sorted by a click on a header, filtered by words, walked by keys, with intervals as dots and bars.

The browser holds all rows and draws those in sight; `selected` says here which one was chosen.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
from markupsafe import Markup
from traitlets import Bool, Float, List, Unicode, observe, validate

from hippo_core.dashboard.page import template
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.report.pages import dot_and_bar

HERE = Path(__file__).parent
MARKS = {True: ("✓", "right"), False: ("✗", "wrong"), None: (NONE, "not measured")}
STATIC = 200  # rows of a page without a kernel
ASIDE = 0.05  # of the axis, free at either end


class ItemTable(anywidget.AnyWidget):
    """Rows under columns.

    Args:
        rows: mappings, each with an `id` of its own and a value for each column's name. A text is any value; a number is one or None; a
            mark is true, false or None; an interval is `[value, low, high]`, of which each may be None.
        columns: mappings with `name`, `label`, `kind`: text, number, mark or interval; `digits` of a number, `sign` of an interval.
        label: what a screen reader says that the table is.

    `selected` is the id of the chosen row, "" for none; `sort`, `descending` and `query` are how the rows are seen. All intervals of a
    table stand on one axis, `axis`, which holds zero.
    """

    _esm = HERE / "table.js"
    _css = HERE / "table.css"
    columns = List().tag(sync=True)
    rows = List().tag(sync=True)
    axis = List(Float(), default_value=[-1.0, 1.0]).tag(sync=True)
    selected = Unicode().tag(sync=True)
    query = Unicode().tag(sync=True)
    sort = Unicode().tag(sync=True)
    descending = Bool().tag(sync=True)
    label = Unicode("items").tag(sync=True)

    @validate("rows")
    def _filled_rows(self, proposal: dict[str, Any]) -> list[dict[str, Any]]:
        """As the browser gets them: numbers and intervals with their text, NaN as None, every text a string."""
        named = {column["name"]: column for column in self.columns}
        return [{"id": str(row["id"])} | {name: _value(row[name], column) for name, column in named.items()} for row in proposal["value"]]

    @observe("rows", "columns")
    def _follow_rows(self, _: object) -> None:
        names = [column["name"] for column in self.columns if column["kind"] == "interval"]
        self.axis = _axis([row[name] for row in self.rows for name in names if name in row])
        if self.selected not in {row["id"] for row in self.rows}:
            self.selected = ""

    def seen(self) -> list[dict[str, Any]]:
        """The rows that hold every word of the query, in the order that is set; what was not measured comes last."""
        wanted = self.query.lower().split()
        rows = [row for row in self.rows if all(word in self._text(row) for word in wanted)]
        column = next((candidate for candidate in self.columns if candidate["name"] == self.sort), None)
        if column is None:
            return rows
        keyed = [(_key(row, column), row) for row in rows]
        known = sorted((pair for pair in keyed if pair[0] is not None), key=lambda pair: pair[0], reverse=self.descending)
        return [row for _, row in known] + [row for key, row in keyed if key is None]

    def html(self) -> str:
        """The first STATIC rows that are seen, as a page without a kernel shows them."""
        shown = {"columns": self.columns, "rows": self.seen(), "of": len(self.rows), "most": STATIC, "selected": self.selected}
        style = Markup((HERE / "table.css").read_text(encoding="utf-8"))
        return template("table.html.j2").render(**shown, marks=MARKS, interval=self._interval, style=style)

    def _interval(self, value: Mapping[str, Any]) -> Markup:
        """A dot and a bar on the axis, with a line at zero; in full ink where the interval leaves zero out."""
        low, high = value["low"], value["high"]
        colour = "var(--ink)" if None not in (low, high) and (low > 0 or high < 0) else "var(--quiet)"
        return dot_and_bar(value["value"], low, high, (self.axis[0], self.axis[1]), colour, value["text"], guide=0.0)

    def _text(self, row: Mapping[str, Any]) -> str:
        """What a query is looked for in: all that the row shows in words, in small letters."""
        values = ((row[column["name"]], column["kind"]) for column in self.columns)
        return "\n".join(value if kind == "text" else value["text"] for value, kind in values if kind != "mark").lower()


def _value(value: Any, column: Mapping[str, Any]) -> Any:
    kind = column["kind"]
    if isinstance(value, Mapping) and "text" in value:  # of a row that went through here before
        return dict(value)
    if kind == "text":
        return "" if missing(value) else str(value)
    if kind == "mark":
        return None if missing(value) else bool(value)
    if kind == "number":
        known = _number(value)
        return {"value": known, "text": NONE if known is None else f"{known:,.{column.get('digits', 0)}f}"}
    at, low, high = map(_number, value)
    sign = bool(column.get("sign", True))
    text = NONE if at is None else f"{share(at, low, high, sign)} ({span(low, high, sign)})" if low is not None else share(at, sign=sign)
    return {"value": at, "low": low, "high": high, "text": text}


def _number(value: Any) -> float | None:
    return float(value) if not missing(value) and math.isfinite(value) else None


def _axis(intervals: Sequence[Mapping[str, Any]]) -> list[float]:
    ends = [interval[name] for interval in intervals for name in ("value", "low", "high") if interval[name] is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    free = ASIDE * (high - low)
    return [low - free, high + free] if high > low else [-1.0, 1.0]


def _key(row: Mapping[str, Any], column: Mapping[str, Any]) -> Any:
    value = row[column["name"]]
    if column["kind"] in ("number", "interval"):
        return value["value"]
    return value.lower() if column["kind"] == "text" else value
