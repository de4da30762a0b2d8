"""The types of pandas tables in signatures: Any, for the stubs of pandas give a cell of a table some twenty possible types."""

from typing import Any

Frame = Row = Any
