"""Settings written as text: `key=value`, and `name[key=value;other=value]`."""

from collections.abc import Iterable
from typing import Any

import yaml

from hippo_core.errors import LabError, shortened
from hippo_core.files import in_a_line, parse_yaml
from hippo_core.text import normal


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`["k=5", "swaps=0.5"]` as `{"k": 5, "swaps": 0.5}`; values are read as YAML. LabError for a text that is no assignment."""
    values: dict[str, Any] = {}
    for raw in texts:
        text = normal(raw, "key=value")
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise LabError(f"expected key=value, got {shortened(repr(text))}")
        if name.strip() in values:
            raise LabError(f"{shortened(name.strip())} is given twice")
        try:
            values[name.strip()] = parse_yaml(value)
        except yaml.YAMLError as error:
            raise LabError(f"the value in {shortened(repr(text))} is not valid YAML: {in_a_line(error)}") from None
    return values


def with_settings(text: str) -> tuple[str, dict[str, Any]]:
    """`"name[key=value;other=[a, b]]"` as the name and its settings. LabError as of `assignments`."""
    name, opened, rest = text.partition("[")
    if opened and not rest.endswith("]"):
        raise LabError(f"expected name[key=value;other=value], got {shortened(repr(text))}: a bracket is open")
    return name, assignments(part for part in rest.removesuffix("]").split(";") if part)
