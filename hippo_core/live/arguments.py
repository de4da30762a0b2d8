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
    if not least <= number <= most:
        raise LabError(f"{what} is from {least} to {most}, got {brief(number)}")
    return number


def flag(value: object, what: str) -> bool:
    """True or False, and nothing that stands for them."""
    if not isinstance(value, bool):
        raise LabError(f"{what} is True or False, got {brief(value)}")
    return value


def callback(value: object, what: str) -> None:
    """LabError for what cannot be called and is not None."""
    if value is not None and not callable(value):
        raise LabError(f"{what} is a function, or None, got {brief(value)}")


def sentences(value: object) -> list[Any]:
    """One sentence or many, as a list; what the sentences are is looked at later."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping | bytes | bytearray | set | frozenset) or not isinstance(value, Iterable):
        raise LabError(f"expected a sentence or a list of sentences, got {brief(value)}")
    return list(value)


def observations(value: object) -> list[Observation]:
    """What a teller says, as a list; what the sentences are is looked at later."""
    values = sentences(value)
    if wrong := [
        observation for observation in values if not (isinstance(observation, Observation) and isinstance(observation.statement, Statement))
    ]:
        raise LabError(f"expected a list of Observation, each of a Statement, got {brief(wrong[0])}; `teach` takes sentences")
    return values


def observation(observed: Observation, what: str) -> Observation:
    """What a teller says, with every text in its normal form. LabError for anything that could not be stored as it is."""
    text = sentence(observed.statement.text, what, "a sentence")
    if observed.confidence is not None and not (type(observed.confidence) in (int, float) and 0 <= observed.confidence <= 1):
        raise LabError(f"{what}: confidence is a number from 0 to 1, or None, got {brief(observed.confidence)}")
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
        raise LabError(
            f"the folder of a memory cannot be {brief(str(value))} ({getattr(error, 'strerror', type(error).__name__)}); name another one"
        ) from None
    return path


def name(value: object, what: str) -> None:
    """LabError for what is no name, or too long for a file's."""
    if not isinstance(value, str) or len(value) > 4000 or any(len(part.encode("utf-8", "replace")) > 255 for part in value.split("/")):
        raise LabError(f"{what}, got {brief(value)}")


def settings(value: object) -> Mapping[str, Any]:
    """Settings to replace, by dotted key."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise LabError(f'settings are values by dotted key, such as {{"k": 3}}, got {brief(value)}')
    return value


def brief(value: object) -> str:
    """A wrong value as an error shows it: the value if short, else its type."""
    if isinstance(value, str | int | float | None) and not (isinstance(value, int) and abs(value) >= 2**63):
        shown = ascii(value) if isinstance(value, str) else repr(value)
        return shown if len(shown) <= 60 else f"{shown[:60]}..."
    return type(value).__name__ if not isinstance(value, int) else "a number of more than 63 bits"
