"""A widget for every setting that a method declares, drawn from its settings class: another memory gets its panel for nothing."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from pydantic import BaseModel

from hippo_core.delivery import DELIVERIES

Changed = Callable[[str, Any], None]
NAMED = {"delivery": DELIVERIES}  # settings that are plain text, with the names that are usual
LABEL = {"description_width": "150px"}


class Controls:
    """Widgets for the settings of a method; `changed` is told the dotted key and the new value.

    Choices of all sections come first, numbers in a fold a section. Mappings, such as a composite's parts, have none.
    """

    def __init__(self, settings: BaseModel, changed: Changed) -> None:
        self._changed, self._silent = changed, False
        self.by_key: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self._add(settings, "")
        names = Counter(key.rpartition(".")[2] for key in self.by_key)
        for key, widget in self.by_key.items():
            section, name = ["", *key.split(".")][-2:]
            widget.description = (
                f"{section} {name}".strip().replace("_", " ") if names[name] > 1 or name == "enabled" else name.replace("_", " ")
            )
        choices = [widget for key, widget in self.by_key.items() if self._kinds[key] == "choice"]
        sections: dict[str, list[Any]] = {}
        for key, widget in self.by_key.items():
            if self._kinds[key] != "choice":
                sections.setdefault(key.rpartition(".")[0] or "general", []).append(widget)
        folds = ipywidgets.Accordion([ipywidgets.VBox(widgets) for widgets in sections.values()], titles=tuple(sections))
        folds.selected_index = None
        self.widget = ipywidgets.VBox([*choices, folds])

    def _add(self, settings: BaseModel, above: str) -> None:
        schemas = type(settings).model_json_schema()["properties"]
        for name, value in ((name, getattr(settings, name)) for name in type(settings).model_fields):
            key = f"{above}{name}"
            if isinstance(value, BaseModel):
                self._add(value, f"{key}.")
            elif made := widget_of(name, schemas[name], value):
                kind, widget = made
                widget.style, widget.tooltip = LABEL, key
                widget.layout.width = "auto"
                self.by_key[key], self._kinds[key] = widget, kind
                widget.observe(lambda change, key=key: self._notify(key, change["new"]), names="value")

    def _notify(self, key: str, value: Any) -> None:
        if not self._silent:
            self._changed(key, _plain(self.by_key[key], value))

    def show(self, values: Mapping[str, Any]) -> None:
        """Show these values, by dotted key, without telling anybody."""
        self._silent = True
        try:
            for key, value in values.items():
                if key in self.by_key:
                    self.by_key[key].value = _shown(self.by_key[key], value)
        finally:
            self._silent = False


def widget_of(name: str, schema: Mapping[str, Any], value: Any) -> tuple[str, Any] | None:
    """The widget of a setting by its JSON schema, and whether it is a choice, a number or free text; None for what no widget can hold."""
    optional = "anyOf" in schema
    part = schema["anyOf"][0] if optional else schema
    kind, options = part.get("type"), NAMED.get(name) or part.get("enum") or ([part["const"]] if "const" in part else None)
    if options:
        return "choice", ipywidgets.Dropdown(options=[*options, *([value] if value not in options else [])], value=value)
    if kind == "boolean":
        return "choice", ipywidgets.Checkbox(value=value)
    if kind in ("integer", "number"):
        if optional or value is None:
            return "number", ipywidgets.Text(value="" if value is None else str(value), placeholder="not set", continuous_update=False)
        return "number", _number(part, value)
    if kind == "string":
        return "text", ipywidgets.Text(value=value, continuous_update=False)
    if kind == "array":
        shown = "" if value is None else ", ".join(map(str, value))
        return "text", ipywidgets.Text(value=shown, placeholder="as usual", continuous_update=False)
    return None


def _number(schema: Mapping[str, Any], value: Any) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if schema["type"] == "number" and low is not None and high is not None:
        return ipywidgets.FloatSlider(value=value, min=low, max=high, step=(high - low) / 20, continuous_update=False)
    least = low if low is not None else -1e9
    if schema["type"] == "integer":
        return ipywidgets.BoundedIntText(value=value, min=int(least), max=10**9, continuous_update=False)
    return ipywidgets.BoundedFloatText(value=value, min=least, max=1e9, step=0.1, continuous_update=False)


def _plain(widget: Any, value: Any) -> Any:
    """What a widget holds as the value of its setting: nothing typed is None, numbers are numbers, words with commas a list."""
    if not isinstance(widget, ipywidgets.Text):
        return value
    text = value.strip()
    if widget.placeholder == "as usual":
        return [word.strip() for word in text.split(",")] if text else None
    if widget.placeholder == "not set":
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text
    return text


def _shown(widget: Any, value: Any) -> Any:
    if isinstance(widget, ipywidgets.Text):
        return "" if value is None else ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return value
