"""A widget for every setting that a method declares, drawn from its settings class: another memory gets its panel for nothing."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from pydantic import BaseModel

from hippo_core.delivery import DELIVERIES

Parse = Callable[[Any], Any]  # what a widget holds -> the value of its setting
NAMED = {"delivery": DELIVERIES}  # settings that are plain text, with the names that are usual


class Controls:
    """Widgets for the settings of a method; `changed` is told the dotted key and the new value.

    Choices of all sections come first, numbers in a fold a section. Mappings, such as a composite's parts, have none.
    """

    def __init__(self, settings: BaseModel, changed: Callable[[str, Any], None]) -> None:
        self._changed, self._silent = changed, False
        self.by_key: dict[str, Any] = {}
        self._add(settings, "")
        names = Counter(key.rpartition(".")[2] for key in self.by_key)
        choices, folded = [], dict[str, list[Any]]()
        for key, widget in self.by_key.items():
            section, name = ["", *key.split(".")][-2:]
            ambiguous = names[name] > 1 or name == "enabled"
            widget.description = (f"{section} {name}".strip() if ambiguous else name).replace("_", " ")
            if isinstance(widget, ipywidgets.Dropdown | ipywidgets.Checkbox):
                choices.append(widget)
            else:
                folded.setdefault(key.rpartition(".")[0] or "general", []).append(widget)
        folds = ipywidgets.Accordion([ipywidgets.VBox(widgets) for widgets in folded.values()], titles=tuple(folded))
        folds.selected_index = None
        self.widget = ipywidgets.VBox([*choices, folds])

    def _add(self, settings: BaseModel, above: str) -> None:
        schemas = type(settings).model_json_schema()["properties"]
        for name in type(settings).model_fields:
            key, value = f"{above}{name}", getattr(settings, name)
            if isinstance(value, BaseModel):
                self._add(value, f"{key}.")
            elif made := widget_of(name, schemas[name], value):
                widget, parse = made
                widget.style, widget.tooltip, widget.layout.width = {"description_width": "150px"}, key, "auto"
                widget.observe(lambda change, key=key, parse=parse: self._notify(key, parse(change["new"])), names="value")
                self.by_key[key] = widget

    def _notify(self, key: str, value: Any) -> None:
        if not self._silent:
            self._changed(key, value)

    def show(self, values: Mapping[str, Any]) -> None:
        """Show these values, by dotted key, without telling anybody."""
        self._silent = True
        try:
            for key in values.keys() & self.by_key.keys():
                widget = self.by_key[key]
                widget.value = _as_text(values[key]) if isinstance(widget, ipywidgets.Text) else values[key]
        finally:
            self._silent = False


def widget_of(name: str, schema: Mapping[str, Any], value: Any) -> tuple[Any, Parse] | None:
    """The widget of a setting by its JSON schema, and how what it holds is read; None for what no widget can hold."""
    optional = "anyOf" in schema
    part = schema["anyOf"][0] if optional else schema
    kind, options = part.get("type"), NAMED.get(name) or part.get("enum") or ([part["const"]] if "const" in part else None)
    if options:
        return ipywidgets.Dropdown(options=[*options, *([value] if value not in options else [])], value=value), _as_it_is
    if kind == "boolean":
        return ipywidgets.Checkbox(value=value), _as_it_is
    if kind in ("integer", "number") and not optional and value is not None:
        return _number(part, value), _as_it_is
    texts: dict[str, tuple[str, Parse]] = {
        "integer": ("not set", _number_in), "number": ("not set", _number_in), "string": ("", str.strip), "array": ("as usual", _list_in),
    }  # fmt: skip
    if kind not in texts:
        return None
    placeholder, parse = texts[kind]
    return ipywidgets.Text(value=_as_text(value), placeholder=placeholder, continuous_update=False), parse


def _number(schema: Mapping[str, Any], value: Any) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if schema["type"] == "number" and low is not None and high is not None:
        return ipywidgets.FloatSlider(value=value, min=low, max=high, step=(high - low) / 20, continuous_update=False)
    least = low if low is not None else -1e9
    if schema["type"] == "integer":
        return ipywidgets.BoundedIntText(value=value, min=int(least), max=10**9, continuous_update=False)
    return ipywidgets.BoundedFloatText(value=value, min=least, max=1e9, step=0.1, continuous_update=False)


def _as_text(value: Any) -> str:
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _as_it_is(value: Any) -> Any:
    return value


def _number_in(text: str) -> Any:
    """The number that is typed, None where nothing is; what is no number is left for the settings class to refuse."""
    try:
        return json.loads(text) if text.strip() else None
    except ValueError:
        return text.strip()


def _list_in(text: str) -> list[str] | None:
    return [word.strip() for word in text.split(",")] if text.strip() else None
