"""Tokens that an agent used, read out of what its command printed. Cached tokens are counted once.

`input` holds all tokens that the model read, those from the cache among them; `cached` says how many those were. So total = input + output.
Codex and Gemini report cached tokens within the input, Claude beside it: there they are added. Where nothing can be read it is None, and
an item that needs it fails.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

MOST = 10**12  # tokens; a larger number is none, and could not be read back from a table
Format = Literal["plain", "claude", "codex", "gemini"]


@dataclass(frozen=True)
class Usage:
    """Tokens: read (the cached ones among them), written, and how many of those read came from the cache."""

    input: int
    output: int
    cached: int = 0

    @property
    def total(self) -> int:
        """Read and written."""
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached)


def parse(stdout: bytes, form: Format) -> Usage | None:
    """The usage that a command's output states last, for Codex the largest; None where it states none that makes sense."""
    usages = [usage for event in _events(stdout) if (usage := _sensible(READERS[form], event))]
    if form == "codex":
        return max(usages, key=lambda usage: usage.total, default=None)
    return usages[-1] if usages else None


def _plain(event: dict[str, Any]) -> Usage:
    """`{"tokens": {"input": n, "output": n, "cached": n}}`"""
    tokens = event["tokens"]
    return Usage(tokens["input"], tokens["output"], tokens.get("cached", 0))


def _claude(event: dict[str, Any]) -> Usage:
    """`claude -p --output-format json`: the cache's reads and writes stand beside the input."""
    usage = event["usage"]
    cached = usage.get("cache_read_input_tokens", 0)
    return Usage(usage["input_tokens"] + cached + usage.get("cache_creation_input_tokens", 0), usage["output_tokens"], cached)


def _codex(event: dict[str, Any]) -> Usage:
    """`codex exec --json`: events, one a line; those of finished turns hold the usage."""
    usage = event["usage"]
    return Usage(usage["input_tokens"], usage["output_tokens"], usage.get("cached_input_tokens", 0))


def _gemini(event: dict[str, Any]) -> Usage:
    """`gemini --output-format json`: by model; what it thought counts as written."""
    tokens = [model["tokens"] for model in event["stats"]["models"].values()]
    written = sum(counts["candidates"] + counts.get("thoughts", 0) for counts in tokens)
    return Usage(sum(counts["prompt"] for counts in tokens), written, sum(counts.get("cached", 0) for counts in tokens))


READERS: dict[Format, Callable[[dict[str, Any]], Usage]] = {"plain": _plain, "claude": _claude, "codex": _codex, "gemini": _gemini}


def _events(stdout: bytes) -> Iterator[dict[str, Any]]:
    text = stdout.decode("utf-8", errors="replace")
    for part in (text, *text.splitlines()):  # one JSON document, or one a line
        if part.lstrip().startswith("{"):
            try:
                event = json.loads(part)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def _sensible(reader: Callable[[dict[str, Any]], Usage], event: dict[str, Any]) -> Usage | None:
    try:
        usage = reader(event)
    except (KeyError, TypeError, AttributeError):
        return None
    numbers = (usage.input, usage.output, usage.cached)
    fine = (
        all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MOST for number in numbers)
        and usage.cached <= usage.input
    )
    return usage if fine and usage.total else None
