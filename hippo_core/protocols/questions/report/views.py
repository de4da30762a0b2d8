"""What the report says of each setting and of the run, gathered once for the HTML page and the markdown files."""

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from hippo_core.protocols.questions.drawing import kept
from hippo_core.protocols.questions.figures import plots, titles
from hippo_core.protocols.questions.figures.plots import sweep_figure
from hippo_core.protocols.questions.report import tables, warnings
from hippo_core.protocols.questions.report.contract import violation_messages
from hippo_core.protocols.questions.report.runs import Links, Run
from hippo_core.protocols.questions.sweeps import sweeps as find
from hippo_core.results import summaries
from hippo_core.results.conditions import base
from hippo_core.results.figures import drawing
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import listing, share
from hippo_core.results.frames import Frame
from hippo_core.results.report.pages import slug, write_pictures

BARS = "Bars are 95% intervals, clustered by world"
PAIRED = (
    "Two conditions whose bars overlap may still differ: both answered the same questions, and the table of paired comparisons compares "
    "them question by question."
)
AXIS = "The values are evenly spaced along the axis; higher is better."
# Of each figure its title, what draws it, its caption, and whether rows have what it shows.
FIGURES: dict[str, tuple[Callable[[Frame], str], Callable[[Frame], Figure], str, Callable[[Frame], bool]]] = {
    "conditions": (
        titles.overview,
        plots.conditions_overview,
        f"Each dot is the score of one condition; further right is better. {BARS}; the dashed line is what a guess would get. "
        "Baselines are muted, controls hollow, memories in colour.",
        lambda rows: rows["score"].notna().any(),
    ),
    "rungs": (
        titles.ladder,
        plots.rungs_by_condition,
        "One panel for each condition, one point for each way of asking: in the fact's own words (exact), with just enough of them "
        f"(partial), in other words (paraphrase), misspelt (noisy). Higher is better. {BARS}; the dashed line is chance. {PAIRED}",
        lambda rows: len(summaries.order_of(rows, "rung")) > 1,
    ),
    "recall": (
        titles.recall,
        plots.recall_at_k,
        "The share of gold facts among the first k facts that a condition ranks, whatever the model answers. Higher and further left is "
        f"better. {BARS}. There is no chance line, because chance depends on the size of the world. Controls are left out.",
        lambda rows: rows["recall_1"].notna().any(),
    ),
    "cost": (
        titles.cost,
        plots.tokens_against_accuracy,
        f"Up and to the left is better: more right answers from fewer tokens. {BARS}; the dashed line is chance.",
        lambda rows: rows["prompt_tokens"].notna().any(),
    ),
}


def setting(run: Run, name: str, links: Links, out: Path) -> dict[str, Any]:
    """The view of one setting; its figures are written below `out`."""
    numbers = run.numbers
    rows, validation = numbers[numbers["setting"] == name], run.validation_of(name)
    figures = [
        figure_view(out, f"figures/{slug(name)}_{key}.png", key, claim(rows), caption, drawing.png(draw(rows)))
        for key, (claim, draw, caption, can_be_drawn) in FIGURES.items()
        if can_be_drawn(rows)
    ]
    blocks = tables.comparisons(rows, validation, links)
    lines = [line for block in blocks for line in block["lines"]]
    clear = sum(line["p_value"] <= 0.05 for line in lines)
    return {
        "name": name,
        "model": rows["model"].iloc[0],
        "short": run.settings_of(rows["model"].iloc[0])[name],
        "slug": slug(name),
        "folder": slug(name),
        "pairs_page": links.pairs_page,
        "facts": _facts(rows, validation),
        "primary": tables.primary(rows),
        "warnings": [
            *violation_messages(violation for violation in run.invalid if violation.setting == name),
            *warnings.warnings(rows, validation),
        ],
        "figures": figures,
        "drawings": _drawings(run, name, out),
        "conditions": tables.conditions(rows, links),
        "policies": tables.policies(rows),
        "retrieval": tables.retrieval(rows),
        "groups": list(filter(None, (tables.groups(rows, by, links) for by in ("rung", "kind")))),
        "slices": tables.slices(rows),
        "comparisons": blocks,
        "paired_note": f"{clear} of {len(lines)} differ with p ≤ 0.05, without correction for their number",
        "expected": tables.expected_ranges(rows, validation),
    }


def _drawings(run: Run, name: str, out: Path) -> list[dict[str, Any]]:
    """What memories drew of how they came to an answer in a setting: of each the condition with the shortest name, which no setting
    changes."""
    cells = {base(cell.condition): cell for cell in sorted(run.cells_of(name), key=lambda cell: (-len(cell.condition), -cell.seed))}
    views = []
    for memory, cell in sorted(cells.items()):
        question, pictures = kept(run.folder / cell.record)
        for number, picture in enumerate(pictures, 1):
            drawn = picture.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" ', 1).encode()
            file, claim = f"figures/{slug(name)}_{slug(memory)}_{number}.svg", f"{style_of(cell.condition).label}, {picture.title.lower()}"
            write_pictures(out, {file: drawn})
            data = base64.b64encode(drawn).decode()
            views.append({"file": file, "claim": f"{claim}: {question}", "caption": picture.reading, "data": data})
    return views


def sweeps(run: Run, out: Path) -> list[dict[str, Any]]:
    """The view of each sweep of the run; their figures are written. Axes on validation worlds are those that test worlds do not have."""
    all_sweeps = find(run.numbers)
    known = {(sweep.axis, sweep.shared("model"), sweep.shared("suite")) for sweep in all_sweeps}
    all_sweeps += [sweep for sweep in find(run.validation) if (sweep.axis, sweep.shared("model"), sweep.shared("suite")) not in known]
    caption = f"{AXIS} {BARS}; the dashed line is chance, drawn where it is the same for all values. {PAIRED}"
    views = []
    for number, sweep in enumerate(all_sweeps, 1):
        file, picture = f"figures/sweep_{number}_{slug(sweep.axis)}.png", drawing.png(sweep_figure(sweep))
        claim = titles.apart(sweep.axis, summaries.estimate(sweep.rows, ["panel", "line", "x"]))
        facts = [
            sweep.shared("model") if len(run.models) > 1 else "",
            "validation worlds" if sweep.shared("split") == "val" else "",
            f"profile {sweep.shared('profile')}",
            sweep.shared("regime"),
            f"n = {sweep.shared('n')} a point",
            f"seed {listing(sorted(sweep.rows['seed'].unique()))}",
        ]
        views.append(
            {
                "name": f"{sweep.shared('suite')} along {sweep.axis}",
                "slug": f"sweep-{number}",
                "facts": f"{', '.join(filter(None, facts))}.",
                "figure": figure_view(out, file, sweep.axis, claim, caption, picture),
                "tables": tables.sweep_tables(sweep),
            }
        )
    return views


def figure_view(out: Path, file: str, name: str, claim: str, caption: str, data: bytes) -> dict[str, Any]:
    """A picture for the page, which is written to its file too. `crop` is the share of its width that the title takes, which the page shows
    as text instead."""
    write_pictures(out, {file: data})
    width, height = struct.unpack(">II", data[16:24])
    shown = {"data": base64.b64encode(data).decode(), "width": width // 2, "height": height // 2}
    return {"name": name, "file": file, "claim": claim, "caption": caption, "crop": f"{100 * drawing.HEADER / drawing.WIDTH:.3f}", **shown}


def _facts(rows: Frame, validation: Frame) -> str:
    first, seeds = rows.iloc[0], listing(sorted(rows["seed"].unique()))
    items, worlds = rows["key"].nunique(), rows["cluster"].nunique()
    chance = share(rows["chance"].mean())
    rival = " and the best rag" if summaries.best_rag(rows, validation)[1] else ""
    checked = f"; validation worlds give the expected ranges{rival}" if len(validation) else ""
    who = ", ".join(filter(None, [f"{first['model']}, profile {first['profile']}", first["suite_overrides"].replace(";", ", ")]))
    return f"{who}: {items} items in {worlds} worlds, seed {seeds}; chance {chance}{checked}."
