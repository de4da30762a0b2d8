"""An open cell that asks: the suite, its worlds, the model with a look at what it cannot hold, the method."""

import json
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.evaluation.table import COLUMNS
from hippo_core.protocols.base.cell import RunningCell
from hippo_core.protocols.base.qa.parameters import Resolved, resolve
from hippo_core.results.frames import Frame
from hippo_core.suites.datasets import build
from hippo_core.suites.folder import cut_short, is_own, long_answers, some, words_in
from hippo_core.suites.types import Split, Suite, World

if TYPE_CHECKING:
    from hippo_core.methods.base import Method
    from hippo_core.models.language_model import LanguageModel


class AskingCell(RunningCell):
    """A cell that asks questions about the worlds of a suite."""

    @cached_property
    def resolved(self) -> Resolved:
        """What its parameters stand for."""
        return resolve(self.parameters)

    @property
    def suite(self) -> Suite:
        """The suite that is asked."""
        return self.resolved.suite

    def worlds(self, split: Split | None = None) -> list[World]:
        """The worlds of this cell, or of another split of its data set, from disk (built first where they are not there).

        A folder of the user's own has validation worlds or none.
        """
        parameters = self.parameters
        if split == "val" and split not in build.stored_splits(parameters.suite):
            return []
        drawn = parameters.suite, parameters.profile, parameters.items, parameters.seed
        return build.load_dataset(*drawn, split or parameters.split, self.resolved.spec.context_limit, self.resolved.suite_overrides)

    def origin(self) -> dict[str, Any]:
        """The checksums of the files that the worlds came from."""
        parameters, resolved = self.parameters, self.resolved
        drawn = parameters.suite, parameters.profile, parameters.items, parameters.seed
        folder = build.dataset_folder(*drawn, resolved.spec.context_limit, resolved.suite_overrides)
        return {"dataset": json.loads((folder / "checksums.json").read_text(encoding="utf-8"))}

    def begun(self) -> None:
        """Warn where a folder of the user's own has fewer questions than were asked for."""
        parameters = self.parameters
        own = is_own(parameters.suite) and not parameters.dry_run
        if own and (message := cut_short(parameters.suite, parameters.split, parameters.items)):
            self.warn(message)
        if is_own(parameters.suite):
            self._warn_of_long(long_answers(self.worlds(), self.suite.answer_budget))

    def _warn_of_long(self, answers: list[str]) -> None:
        if answers:
            limit = f"the {self.suite.answer_budget} new tokens of an answer"
            self.warn(f"{len(answers):,} accepted answers are longer than {limit}, which cuts them: {some(answers)}; set max_new_tokens=N")

    def columns(self) -> tuple[str, ...]:
        """The measures of its suite, where it asks, and the columns that its method declares for its step."""
        step: Any = getattr(self.parameters, "step", "test")
        own = (*(self.suite.measures if step == "test" else ()), *self.resolved.preset.method.columns.get(step, ()))
        if clashes := sorted(set(own) & set(COLUMNS)):
            raise LabError(f"{clashes[0]} is a column of every row; give the measure or the column another name")
        return own

    def own_means(self, rows: Frame) -> dict[str, Any]:
        """The means of these columns, for `metrics.json`; nothing where there are none."""
        means = {name: None if math.isnan(mean := float(rows[name].mean())) else mean for name in self.columns()}
        return {"own": means} if means else {}

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The model of this cell, loaded for its number of threads; a warning says which facts are too long for it."""
        from hippo_core.models.load import load
        from hippo_core.models.prompt import too_long

        lm = load(self.resolved.spec, threads=self.parameters.threads)
        texts = [fact.text for world in self.worlds() for fact in world.facts]
        if long := too_long(lm, texts, self.resolved.preset.settings.decoding, self.suite.answer_budget):
            of = f"{len(long):,} of {len(texts):,} facts are too long for the {lm.spec.context_limit} tokens of {lm.spec.name}"
            self.warn(f"{of}, with a question and an answer: no prompt shows them and no memory keeps them; split them")
        budget = self.suite.answer_budget  # an answer of more words than that was named before the model was there
        self._warn_of_long(long_answers(self.worlds(), budget, lambda text: 0 if words_in(text) > budget else len(lm.encode(text))))
        return lm

    @cached_property
    def method(self) -> "Method":
        """The method of this cell, bound to its model."""
        return self.resolved.preset.method(self.language_model, self.resolved.preset.settings)
