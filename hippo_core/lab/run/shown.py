"""A table as a notebook shows it: words at the left, numbers at the right, nothing that has to be scrolled for."""

import hashlib
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from hippo_core.results.formatting import NONE

if TYPE_CHECKING:
    from IPython.display import HTML

    from hippo_core.results.frames import Frame

NUMBER = re.compile(rf"[+−-]?[\d.,]+%?|{NONE}")  # a number in words: 0.94, −0.05, 1,024, or none
LARGE = 1000  # from here on decimals say nothing


def table(rows: "Frame", digits: int = 2) -> "HTML":
    """The rows as HTML. An index that has a name is shown as columns, one without is left out; "_" in a column's name is a space.

    Args:
        digits: decimals of a column of fractions; none where one of them is a thousand or more, or all are counts. What was not measured
            (None, NaN) is a dash.
    """
    from IPython.display import HTML
    from pandas.api.types import is_numeric_dtype
    from pandas.io.formats.style import Styler

    frame: Any = rows.reset_index() if any(rows.index.names) else rows.reset_index(drop=True)
    frame = frame.set_axis([str(name).replace("_", " ") for name in frame], axis="columns")
    named = hashlib.sha256(frame.to_csv().encode()).hexdigest()[:8]  # the style of one table on a page is none of another's
    style = Styler(frame, uuid=named, cell_ids=False).hide(axis="index")
    style.set_table_styles([{"selector": "th, td", "props": "vertical-align: top"}])
    for index, name in enumerate(frame):
        numbers = is_numeric_dtype(frame[name])
        right = numbers or all(isinstance(value, str) and NUMBER.fullmatch(value) for value in frame[name])
        style.set_table_styles([{"selector": f".col{index}", "props": f"text-align: {'right' if right else 'left'}"}], overwrite=False)
        decimals = 0 if numbers and _counts(frame[name]) else digits
        style.format(lambda value, decimals=decimals: _formatted(value, decimals), subset=[name], escape="html")
    return HTML((style if len(frame) else style.set_caption("No rows.")).to_html())


def _counts(column: Any) -> bool:
    """Whether decimals say nothing of these numbers: counts, which pandas keeps as fractions where one is missing, and what is large."""
    known = column.dropna().abs()
    return bool((known >= LARGE).any() or ((known % 1 == 0).all() and (known > 1).any()))


def _formatted(value: Any, decimals: int) -> str:
    if value is None or (isinstance(value, Real) and value != value):
        return NONE
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    return f"{value:,}" if isinstance(value, Integral) else f"{value:,.{decimals}f}"
