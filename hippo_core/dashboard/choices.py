"""A row of dropdowns of which each offers what those before it leave: a run, its models, a model's suites."""

from collections.abc import Callable, Mapping, Sequence

import ipywidgets

from hippo_core.errors import LabError, unknown

Options = Sequence[tuple[str, str]]  # what is shown, and what it stands for


class Choices:
    """The dropdowns.

    Args:
        labels: the name of each dropdown and the words before it, in order.
        options: what a dropdown offers, by its name; it may read those before it. A LabError of it empties this one and those behind.
        default: which of the values is taken where the one before is gone, by the dropdown's name and its values.
        changed: called after any of them changed, with all of them filled.

    `problem` is the LabError's line, "" where all could be filled.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        options: Callable[[str], Options],
        default: Callable[[str, Sequence[str]], str],
        changed: Callable[[], None],
    ) -> None:
        self._options, self._default, self._changed, self._filling, self.problem = options, default, changed, False, ""
        self.fields = {name: ipywidgets.Dropdown(description=label, options=[]) for name, label in labels.items()}
        for name, field in self.fields.items():
            field.style.description_width = "initial"
            field.layout = ipywidgets.Layout(width="auto", max_width="340px", min_width="130px", margin="2px 14px 2px 2px")
            field.observe(lambda _, name=name: self._filling or self.fill(after=name), "value")
        self.widget = ipywidgets.HBox(list(self.fields.values()), layout={"flex_flow": "row wrap"})

    def __getitem__(self, name: str) -> str:
        return self.fields[name].value or ""

    def fill(self, after: str = "", wanted: Mapping[str, str] | None = None) -> None:
        """Fill the dropdowns behind one, or all; each keeps its value where that is offered. LabError for a wanted value that is not."""
        names = list(self.fields)
        self._filling, self.problem = True, ""
        try:
            for name in names[names.index(after) + 1 if after else 0 :]:
                self._fill_choice(name, (wanted or {}).get(name, ""))
        finally:
            self._filling = False
        self._changed()

    def _fill_choice(self, name: str, wanted: str) -> None:
        field, offered = self.fields[name], []
        if not self.problem:
            try:
                offered = list(self._options(name))
            except LabError as error:
                self.problem = str(error)
        values, before = [value for _, value in offered], field.value
        if wanted and not self.problem and wanted not in values:
            raise unknown(name, wanted, values)
        if list(field.options) != offered:
            field.options = offered
        if values:
            field.value = wanted or (before if before in values else self._default(name, values))
        field.disabled = not values
