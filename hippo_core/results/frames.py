"""The types of pandas tables in signatures: at run time they are pandas' own, for the type checker they are Any.

The stubs of pandas give a cell of a table some twenty possible types, and every column of a filtered table may be an array or a number;
checked against them, each line that reads a table would need a cast.
"""

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    Frame = Any
    Row = Any
else:
    Frame = pd.DataFrame
    Row = pd.Series
