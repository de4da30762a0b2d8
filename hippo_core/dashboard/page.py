"""What the panels say, as HTML in the colours of the notebook's own theme; whatever it holds is text in it."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from hippo_core.dashboard.session import AnswerUplift, SettingChange
from hippo_core.methods.base import Picture
from hippo_core.results.formatting import probability, share, span

if TYPE_CHECKING:
    from hippo_core.live.answer import RecalledTrace, TeachResult
    from hippo_core.results.statistics.paired import Comparison
    from hippo_core.training.consolidation.lineage import Consolidated

HERE = Path(__file__).parent
ORIGINS = {  # of an answer
    "recall": "from memory",
    "consolidation": "from what sleep put into the model",
    "recall and consolidation": "from memory, and from what sleep put into the model",
    "model": "from the model alone",
}
DECISIONS = {"insert": "written", "aggregate": "known already", "route": "waits for more evidence", "refuse": "refused"}
LISTED = 200  # decisions, or items where two answers differ, that are shown


@cache
def template(name: str) -> Template:
    """A template of this folder; what it is given is text in it."""
    return Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).get_template(name)


def piece(name: str, *values: object) -> str:
    """A piece of the panels Compare and Ablate: a note, a pair, an item, a sweep or a forest."""
    return str(getattr(template("panels.html.j2").module, name)(*values)).strip()


def style() -> str:
    """The style of these pieces, which a panel shows once."""
    return f"<style>{(HERE / 'panels.css').read_text(encoding='utf-8')}</style>"


def framed(content: str) -> str:
    """A piece of the panel with its style, which stands alone in a saved page too."""
    style = (HERE / "ask.css").read_text(encoding="utf-8")
    return f'<style>{style}</style><div class="hippo-ask">{content}</div>'


def line(text: str, bad: bool = False, busy: bool = False) -> str:
    """One line of what is wrong, or of what is going on; `busy`: a circle turns beside it."""
    style_class = " bad" if bad else " busy" if busy else ""
    return framed(str(Markup('<div class="line{}">{}</div>').format(style_class, text))) if text else ""


def answer(flip: SettingChange, gold: str | None, right: bool | None, pictures: Sequence[Picture]) -> str:
    """An answer, the one before it, the traces with what their scores are made of, and the pictures."""
    dropped = [trace for trace in (flip.before.recall.traces if flip.before else ()) if trace.id in flip.left]
    traces = [*flip.now.recall.traces, *(trace for trace in dropped if trace.id not in {now.id for now in flip.now.recall.traces})]
    words = {"flip": flip, "gold": gold, "right": right, "pictures": pictures, "traces": traces, "marked": marked, "origins": ORIGINS}
    words["told"] = any(trace.who or trace.when for trace in traces)
    return framed(template("ask.html.j2").render(**words))


def slept(consolidated: "Consolidated | None", facts: Sequence[str]) -> str:
    """Which of these sentences sleep has put into the model, by which update rule, and when."""
    if consolidated is None:
        return framed('<div class="quiet">The model has not slept: with the memory off it knows nothing of what it was told.</div>')
    words = {"slept": consolidated, "told": facts[:LISTED], "rehearsed": set(consolidated.sentences.values())}
    words["gone"] = [text for text in consolidated.sentences.values() if text not in facts]
    words["held"] = sum(text in words["rehearsed"] for text in facts)
    return framed(template("slept.html.j2").render(**words, of=len(facts), at=consolidated.at.astimezone()))


def uplift_table(uplifts: Sequence[AnswerUplift]) -> str:
    """What sleep brought: the last questions' answers with the memory, and without it before and after sleep."""
    return framed(template("brought.html.j2").render(uplifts=uplifts)) if uplifts else ""


def marked(trace: "RecalledTrace") -> Markup:
    """A trace's text, the words that it shares with the question underlined."""
    pieces = re.split(r"(\w+(?:['\u2019]\w+)*)", trace.text)
    shared = set(trace.shared)
    return Markup("").join(Markup("<mark>{}</mark>").format(word) if word.lower() in shared else escape(word) for word in pieces)


def decided(taught: "Sequence[TeachResult]") -> str:
    """What a gate decided about each sentence; nothing without a gate."""
    if not any(result.terms for result in taught):
        return ""
    return framed(template("decided.html.j2").render(taught=taught, decisions=DECISIONS, most=LISTED))


def compared(result: "Comparison", differing: Sequence[Mapping[str, Any]]) -> str:
    """All questions before and after a change: the paired difference with its interval, and the items where the answers differ."""
    words = {"result": result, "differing": differing[:LISTED], "share": share, "span": span, "probability": probability}
    return framed(template("compared.html.j2").render(**words))


def code(*blocks: tuple[str, str]) -> str:
    """Titles, each with lines that can be copied."""
    return framed("".join(Markup("<h4>{}</h4><pre>{}</pre>").format(title, text) for title, text in blocks))
