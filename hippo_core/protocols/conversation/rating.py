"""A page to rate answers blind: the conversation, the question, the answer, and two scales; which technique and model it was is not shown.

from hippo_core.protocols.conversation.rating import rate
rate("conversations/run", "dialogues.json", rater="ann")
"""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ipywidgets

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue, read
from hippo_core.protocols.conversation.judge import ASPECTS, sample
from hippo_core.protocols.conversation.lines import read_lines, write_lines

SCALE = (("1 worst", 1), ("2", 2), ("3", 3), ("4", 4), ("5 best", 5))


def rate(folder: str | Path, dialogues: str | Path | Sequence[Dialogue], rater: str, seed: int = 0) -> "RatingPage":
    """The page for a person, over a fifth of the answers in `folder`; it goes on where that person stopped."""
    if not rater.isidentifier():
        raise LabError(f"a rater's name is letters, digits and _, got {rater!r}")
    known = read(dialogues) if isinstance(dialogues, str | Path) else tuple(dialogues)
    folder = Path(folder)
    return RatingPage(sample(read_lines(folder / "scored.jsonl"), seed), known, folder / f"ratings-{rater}.jsonl", rater)


class RatingPage(ipywidgets.VBox):
    """One answer at a time; each rating is kept as soon as it is given, the file written whole."""

    def __init__(self, answers: Sequence[dict[str, Any]], dialogues: Sequence[Dialogue], path: Path, rater: str) -> None:
        self._dialogues = {dialogue.id: dialogue for dialogue in dialogues}
        self._path, self._rater = path, rater
        self.ratings = read_lines(path) if path.is_file() else []
        rated = {rating["answer_id"] for rating in self.ratings}
        self.waiting = [answer for answer in answers if answer["answer_id"] not in rated]
        self._count, self._text = len(answers), ipywidgets.HTML()
        self.scales = {aspect: ipywidgets.ToggleButtons(options=SCALE, value=None, description=aspect) for aspect in ASPECTS}
        self.save = ipywidgets.Button(description="Save and next", button_style="primary", disabled=True)
        for scale in self.scales.values():
            scale.observe(self._update_button, "value")
        self.save.on_click(self._save)
        super().__init__([self._text, *self.scales.values(), self.save], layout={"max_width": "860px"})
        self._show()

    @property
    def shown(self) -> str:
        """What the page shows, as HTML."""
        return self._text.value

    def _update_button(self, change: object = None) -> None:
        self.save.disabled = not self.waiting or any(scale.value is None for scale in self.scales.values())

    def _save(self, button: object = None) -> None:
        if self.save.disabled:
            return
        given = {aspect: scale.value for aspect, scale in self.scales.items()}
        ratings = [*self.ratings, {"answer_id": self.waiting[0]["answer_id"], "rater": self._rater, **given}]
        write_lines(self._path, ratings)  # only what is written counts as rated
        self.ratings, self.waiting = ratings, self.waiting[1:]
        self._show()

    def _show(self) -> None:
        for scale in self.scales.values():
            scale.value = None
        self._update_button()
        if not self.waiting:
            self._text.value = f"<b>All {self._count} answers are rated.</b> Run <code>hippo converse aggregate</code> again."
            return
        answer = self.waiting[0]
        dialogue = self._dialogues.get(answer["dialogue"])
        questions = [question.question for question in dialogue.questions if question.id == answer["question"]] if dialogue else []
        if not dialogue or not questions:
            raise LabError(
                f"no question {answer['question']!r} in a dialogue {answer['dialogue']!r}; give the dialogues that were executed"
            )
        turns = "".join(f"<p><b>{html.escape(turn.speaker)}</b> {html.escape(turn.text)}</p>" for turn in dialogue.turns)
        self._text.value = (
            f"<p>{self._count - len(self.waiting) + 1} of {self._count}</p>"
            f'<div style="max-height:320px;overflow:auto;border:1px solid #8888;padding:0 1em">{turns}</div>'
            f"<p><b>Question</b> {html.escape(questions[0])}</p><p><b>Answer</b> {html.escape(answer['text'])}</p>"
            "<p>Coherence: does it fit what was said? Fluency: is it well formed? Do not rate whether it is true.</p>"
        )
