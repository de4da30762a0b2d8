"""What must hold of a workspace after a step: files there and not there, and what they hold. Deterministic; each failure is reported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.workspace import names, read
from hippo_core.protocols.paired.items import Built, Content


def failures(step: Built, workspace: Path) -> Iterator[str]:
    """What does not hold, in words."""
    there = set(names(workspace))
    for path in step.required_files:
        try:
            read(workspace, path)
        except LabError as error:
            yield f"required: {error}"
    yield from (f"forbidden file {path} is there" for path in step.forbidden_files if path.rstrip("/") in there)
    for assertion in step.required_content:
        if reason := _why_not(assertion, workspace):
            yield reason


def count(step: Built) -> int:
    """The number of assertions."""
    return len(step.required_files) + len(step.forbidden_files) + len(step.required_content)


def _why_not(assertion: Content, workspace: Path) -> str:
    try:
        text = read(workspace, assertion.file).decode("utf-8", errors="surrogateescape")
        if assertion.contains is not None:
            return "" if assertion.contains in text else f"{assertion.file} does not contain {assertion.contains!r}"
        actual = text.strip() if assertion.json_path is None else at(json.loads(text), assertion.json_path)
        wanted = assertion.equals.strip() if assertion.json_path is None else assertion.equals
    except LabError as error:
        return str(error)
    except (ValueError, RecursionError):
        return f"{assertion.file} is no JSON"
    except (KeyError, IndexError):
        return f"{assertion.file} has nothing at {assertion.json_path}"
    location = assertion.file + (f" at {assertion.json_path}" if assertion.json_path else "")
    same = type(actual) is type(wanted) and actual == wanted
    return "" if same else f"{location} is {_short(actual)}, not {_short(wanted)}"


def at(value: Any, path: str) -> Any:
    """What stands at a path of keys and positions, joined by dots; KeyError or IndexError where nothing does."""
    for part in path.split("."):
        if isinstance(value, list):
            if not part.isdecimal():
                raise KeyError(part)
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value[part]
        else:
            raise KeyError(part)
    return value


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
