"""What is given to a live memory, checked: each wrong argument is one line that says what to pass."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.methods.base import Observation
from hippo_core.store.trace import Statement
from hippo_core.text import normal

LONGEST = 1_000_000  # characters of a sentence, a question, a name
WIDEST = 2**31 - 1  # of a number of steps, tokens or traces


def require(right: bool, expected: str, value: object) -> None:
    """LabError that says what was expected and what came, where a value is not right."""
    if not right:
        raise LabError(f"{expected}, got {brief(value)}")


def flag(value: object, what: str) -> bool:
    """True or False, and nothing that stands for them."""
    require(isinstance(value, bool), f"{what} is True or False", value)
    return bool(value)


def words(value: object, what: str) -> str:
    """A text that may be empty, in its normal form."""
    text = normal(value, what)
    if len(text) > LONGEST:
        raise LabError(f"{what} has {len(text):,} characters, at most {LONGEST:,} are kept; split it")
    return text


def sentence(value: object, what: str, example: str) -> str:
    """A text that says something, in its normal form."""
    if not isinstance(value, str) or not value.strip():
        raise LabError(f"{what} is {brief(value)}; expected {example}")
    if not (text := words(value, what)).strip():
        raise LabError(f"{what} is {brief(value)}, which is blank; expected {example}")
    return text


def integer(value: Any, what: str, least: int = 1, most: int = WIDEST) -> int:
    """A whole number within its bounds; True and False are none."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or type(value).__name__.startswith("bool"):
        raise LabError(f"{what} is a whole number of {least} or more, got {brief(value)}")
    require(least <= number <= most, f"{what} is from {least} to {most}", number)
    return number


def sentences(value: object) -> list[Any]:
    """One sentence or many, as a list; what the sentences are is looked at later."""
    if isinstance(value, str):
        return [value]
    listed = isinstance(value, Iterable) and not isinstance(value, Mapping | bytes | bytearray | set | frozenset)
    require(listed, "expected a sentence or a list of sentences", value)
    return list(value)  # type: ignore[call-overload]


def observations(value: object) -> list[Observation]:
    """What a teller says, each with every text in its normal form. LabError for anything that could not be stored as it is."""
    observed = sentences(value)
    for one in observed:
        if not (isinstance(one, Observation) and isinstance(one.statement, Statement)):
            raise LabError(f"expected a list of Observation, each of a Statement, got {brief(one)}; `teach` takes sentences")
    return [observation(one, f"text {number} of {len(observed)}") for number, one in enumerate(observed, start=1)]


def observation(observed: Observation, what: str) -> Observation:
    """One of `observations`; `what` it is called."""
    text, confidence = sentence(observed.statement.text, what, "a sentence"), observed.confidence
    legal = confidence is None or (type(confidence) in (int, float) and 0 <= confidence <= 1)
    require(legal, f"{what}: confidence is a number from 0 to 1, or None", confidence)
    named = {"teller": "who", "provenance": "provenance", "context_key": "when"}
    texts = {field: words(getattr(observed, field), f"{what}: {name}") for field, name in named.items()}
    flags = {field: flag(getattr(observed, field), f"{what}: {field}") for field in ("pin", "reward")}
    return replace(observed, statement=replace(observed.statement, text=text), **texts, **flags)


def forgotten(value: Any) -> int | str:
    """What is to be forgotten: the number of a sentence, or a provenance."""
    if isinstance(value, str):
        return sentence(value, "what to forget", "the number of a sentence, or a provenance that was given to `teach`")
    return integer(value, "what to forget (or give a provenance)", most=2**63 - 1)


def folder(value: object) -> Path:
    """The folder of a memory, there or not."""
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise LabError(f"the folder of a memory is a path, got {brief(value)}")
    path = Path(value)
    try:
        os.fsencode(path)
        if path.exists() and not path.is_dir():
            raise LabError(f"{path} is a file; name a folder for the memory")
    except (OSError, ValueError) as error:  # a name that is too long, half of a character
        why = getattr(error, "strerror", type(error).__name__)
        raise LabError(f"the folder of a memory cannot be {brief(str(value))} ({why}); name another one") from None
    return path


def name(value: object, what: str) -> None:
    """LabError for what is no name, or too long for a file's."""
    short = isinstance(value, str) and len(value) <= 4000 and all(len(part.encode("utf-8", "replace")) <= 255 for part in value.split("/"))
    require(short, what, value)


def brief(value: object) -> str:
    """A wrong value as an error shows it: the value if short, else its type."""
    if isinstance(value, str | int | float | None) and not (isinstance(value, int) and abs(value) >= 2**63):
        shown = ascii(value) if isinstance(value, str) else repr(value)
        return shown if len(shown) <= 60 else f"{shown[:60]}..."
    return type(value).__name__ if not isinstance(value, int) else "a number of more than 63 bits"
