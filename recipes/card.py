"""A model's card, generated from what was measured: nobody types a number into it."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from hippo_core.errors import LabError
from hippo_core.files import require_checkout, root, write_json, write_text
from hippo_core.models.language_model import LanguageModel, describe
from hippo_core.models.packages.pins import packages
from hippo_core.models.score import TextLoss
from hippo_core.results.figures.drawing import STYLE, png
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.results.frames import Frame
from recipes import plain_language, skills
from recipes.abstention import MOST_LOST, abstention_table

TEMPLATE = Path(__file__).with_name("card.md.jinja")
BASES = {"smollm2-135m-reader": "smollm2-135m"}
SHOWN = {"slots": "facts by slot", "last_mention": "last mention wins", "chains": "two and three hops", "nothing_said": "slots and unknown"}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7f5aa3")
CANNOT = {
    "hippo-tiny": "It knows no world but its lessons: short English sentences about people, things, places, times, firms, cities, rooms "
    "and maps. It does not chat, write, translate or calculate.",
    "smollm2-135m": "It answers fluently and reads badly: with several facts before a question it often takes the wrong one. It is kept "
    "as the base that the reader is compared with.",
    "smollm2-135m-reader": "It answers in a few words what stands before the question, in short English sentences. It was not trained to "
    "converse, to reason over long texts or to know facts about the world; what the base can do there is measured above.",
}


@dataclass(frozen=True)
class Measured:
    """All that a card says of a model: the skills' table, the loss on held-out stories (None where they are not there), and what
    `plain_language.measure` found."""

    skills: Frame
    stories: TextLoss | None
    language: dict[str, Any]


def measure(lm: LanguageModel, n: int) -> Measured:
    """All skills with `n` questions each, and plain language; what needs a file that is not there is skipped."""
    return Measured(skills.measure(lm, n=n, batch_size=lm.spec.batch_size), skills.story_loss(lm), plain_language.measure(lm))


def folder_of(lm: LanguageModel) -> Path:
    """Where a model's card lies: beside its weights or adapter. LabError for a model that the lab neither makes nor fetches."""
    name = lm.spec.name
    if name not in CANNOT:
        raise LabError(f"model {name} is not the lab's own: cards are for {', '.join(CANNOT)}; its skills are measured all the same")
    require_checkout("a model's card")
    return root() / "data/weights" / name


def write_card(lm: LanguageModel, measured: Measured, folder: Path) -> Path:
    """Write `card.json` (the numbers), the training curve and `README.md` (the card); returns the card."""
    made = _made(lm, folder)
    base = _base(lm)
    folder.mkdir(parents=True, exist_ok=True)
    stories = measured.stories
    losses = stories and {"nats_per_token": stories.per_token, "nats_per_byte": stories.per_byte, "tokens": stories.tokens}
    numbers = {"model": describe(lm), "skills": records(measured.skills), "stories": losses, "language": measured.language}
    write_json(folder / "card.json", numbers)
    if made:
        (folder / "curve.png").write_bytes(curve_png(made["curve"]))
    write_text(folder / "README.md", text(lm, measured, made, base))
    return folder / "README.md"


def _made(lm: LanguageModel, folder: Path) -> dict[str, Any] | None:
    """How the lab made the model; None for one that it only fetches."""
    training = folder / "training.json"
    if training.exists():
        return json.loads(training.read_text(encoding="utf-8"))
    if lm.spec.name in packages():
        return None
    raise LabError(f"{training} is missing: a card tells how a model was made; make the model with `make base-model`")


def _base(lm: LanguageModel) -> dict[str, Any] | None:
    """The card's numbers of the model that this one was trained from, where there is such a card."""
    name = BASES.get(lm.spec.name)
    path = root() / "data/weights" / str(name) / "card.json"
    return json.loads(path.read_text(encoding="utf-8")) if name and path.exists() else None


def records(table: Frame) -> list[dict[str, Any]]:
    """The table as JSON: not measured is null; seconds are left out, they belong to the machine."""
    rows = table.drop(columns="seconds").to_dict("records")
    return [{key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()} for row in rows]


def text(lm: LanguageModel, measured: Measured, made: dict[str, Any] | None, base: dict[str, Any] | None) -> str:
    """The card as markdown."""
    skills_of_card = measured.skills.to_dict("records")
    right = {row["skill"]: row["accuracy"] for row in skills_of_card}
    of_text = {name: name.replace(", as blocks", "").replace(" as blocks", "") for name in right if "as blocks" in name}
    adapter = root() / "data/weights" / lm.spec.name / "adapter_model.safetensors"
    environment = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        spec=lm.spec,
        facts=describe(lm),
        vocabulary=len(lm.tokenizer),
        skills=skills_of_card,
        goals=[row["accuracy"] >= row["goal"] for row in skills_of_card if not math.isnan(row["goal"])],
        as_blocks=[(name, right[name], right[blocks]) for blocks, name in of_text.items() if name in right],
        abstention=abstention_table(lm).to_dict("records"),
        most_lost=MOST_LOST,
        plain_english=_plain_english(measured.language, measured.stories),
        base=base["model"]["name"] if base else "",
        against=plain_language.against(measured.language, base["language"]).to_dict("records") if base else [],
        seconds=measured.skills["seconds"].mean(),
        cannot=CANNOT[lm.spec.name],
        made=made and {"base": None, "remark": "", **made},
        adapter_mb=adapter.stat().st_size / 1e6 if made and "base" in made else 0.0,
        package=None if made else packages()[lm.spec.name],
    )


def _plain_english(numbers: dict[str, Any], stories: TextLoss | None) -> Iterator[str]:
    """What each measure of plain language gave, with the file that it needs; nothing of one that was not measured."""
    if sst2 := numbers.get("sst2"):
        raw, centred = sst2["raw"], sst2["centred"]
        yield (
            f"SST-2 (needs `sst2` of `data/README.md`), {sst2['n']} sentences, no examples: {raw['accuracy']:.3f} right by the likelier "
            f"label ({raw['low']:.2f} to {raw['high']:.2f}), {centred['accuracy']:.3f} with the threshold of the calibration sentences "
            f"({centred['low']:.2f} to {centred['high']:.2f}); chance .5."
        )
    if wiki := numbers.get("wikitext2"):
        yield (
            f"WikiText-2, head of the tokenised validation split (needs `wikitext2-valid`): perplexity {wiki['perplexity']:.1f} a token, "
            f"{wiki['nats_per_byte']:.3f} nats a byte."
        )
    if manual := numbers.get("python_manual"):
        yield (
            f"The manual of Python {manual['python']} (SHA-256 {manual['sha256'][:8]}): perplexity {manual['perplexity']:.1f} a token, "
            f"{manual['nats_per_byte']:.3f} nats a byte."
        )
    if stories:
        yield (f"Held-out TinyStories (needs `tinystories`): {stories.per_token:.2f} nats a token, {stories.per_byte:.3f} nats a byte.")


def differences(table: Frame, folder: Path) -> list[str]:
    """What a fresh measurement finds different from the card that is there: one line a number; none where the card holds."""
    card = folder / "card.json"
    if not card.exists():
        return ["there is no card yet"]
    old = {row["skill"]: row for row in json.loads(card.read_text(encoding="utf-8"))["skills"]}
    new = {row["skill"]: row for row in records(table)}
    lines = [f"{name}: only {'measured now' if name in new else 'in the card'}" for name in sorted(old.keys() ^ new.keys())]
    shared = [name for name in new if name in old and abs(new[name]["accuracy"] - old[name]["accuracy"]) > 1e-9]
    return lines + [f"{name}: {old[name]['accuracy']:.3f} in the card, {new[name]['accuracy']:.3f} now" for name in shared]


def curve_png(curve: list[dict[str, float]]) -> bytes:
    """The training curve as PNG bytes: loss of the answers above, accuracy on validation lessons (text solid, blocks dashed) below."""
    with matplotlib.rc_context(STYLE):
        plot = Figure(figsize=(7.2, 5.2), layout="constrained")
        above, below = plot.subplots(2, 1, sharex=True, height_ratios=(1, 1.5))
        minutes = [line["seconds"] / 60 for line in curve]
        above.plot(minutes, [line["answers"] for line in curve], color=INK, linewidth=1.4)
        above.set(ylabel="nats a token", ylim=(0, None))
        above.set_title("Loss of the answers", loc="left", fontsize=11)
        examined = [line for line in curve if "slots" in line]
        for colour, (drill, label) in zip(COLOURS, SHOWN.items(), strict=True):
            for name, style in ((drill, "-"), (f"{drill}/blocks", "--")):
                points = [(line["seconds"] / 60, line[name]) for line in examined if name in line]
                if points:
                    below.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.4, marker="o", markersize=2.5,
                               label=label if style == "-" else f"{label}, as blocks")  # fmt: skip
        below.set(xlabel="minutes", ylabel="right", ylim=(-0.02, 1.02))
        below.set_title("Validation lessons with some eight facts", loc="left", fontsize=11)
        below.grid(axis="y", color=RULE, linewidth=0.5)
        if examined:
            below.legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
        return png(plot)


def skills_figure(skills: Frame) -> Figure:
    """Accuracy of every skill with its interval, its chance level (tick) and its goal (ring). Further right is better."""
    with matplotlib.rc_context(STYLE):
        plot = Figure(figsize=(8, 0.26 * len(skills) + 1.1), layout="constrained")
        panel: Any = plot.subplots()
        rows = range(len(skills))
        panel.hlines(rows, skills["low"], skills["high"], color=INK, linewidth=2)
        panel.scatter(skills["accuracy"], rows, color=INK, s=28, zorder=3)
        panel.scatter(skills["chance"], rows, color=QUIET, marker="|", s=60, zorder=2)
        panel.scatter(skills["goal"], rows, facecolors="none", edgecolors=INK, s=90, linewidths=0.8)
        panel.set_yticks(rows, skills["skill"], fontsize=8)
        panel.set(xlim=(-0.02, 1.02), ylim=(len(skills) - 0.5, -0.5), xlabel="share of questions answered right (ring: goal; tick: chance)")
        panel.grid(axis="y", color=RULE, linewidth=0.5)
        goals = int(skills["goal"].notna().sum())
        reached = int((skills["accuracy"] >= skills["goal"]).sum())
        panel.set_title(f"{reached} of {goals} goals reached" if goals else f"{len(skills)} skills", loc="left")
    return plot
