"""Drawings that explain a recall: the winners of cue and trace on one grid, and the cue's energy as Hopfield steps complete it."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from hippo_core.kernels.hopfield import hopfield
from hippo_core.methods.base import Picture
from hippo_core.methods.episodic.components import Components
from hippo_core.retrieval.channels import dense, rows_of
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store.trace import Trace

COLUMNS, CELL = 64, 5  # of the grid, and the pixels of a unit
STEPS = 6
MOST = 2_000  # traces that the energy is worked out over
WIDTH, HEIGHT, LEFT, FOOT = 320, 120, 46, 22
ACCENT, QUIET = "var(--hippo-accent, #0072b2)", "var(--hippo-quiet, #9aa0a6)"


def pictures(memory: Components, question: str, best: Trace | None, traces: Sequence[Trace]) -> list[Picture]:
    """What can be drawn of a question and the best trace; nothing where there is none, or where keys are no channel."""
    if best is None or "key" not in memory.settings.channels:
        return []
    [cue] = memory.encoder.keys([question])
    return [winners(cue, nearest(cue, best.payload.keys)), energy(memory, cue, traces[:MOST])]


def nearest(cue: SparseKey, keys: Sequence[SparseKey]) -> SparseKey:
    """Of the keys of a trace's sentences the one that shares most units with the cue."""
    return max(keys, key=lambda key: len(np.intersect1d(cue.indices, key.indices)))


def winners(cue: SparseKey, trace: SparseKey) -> Picture:
    """The units of the code as a grid: those that win for both, for the cue alone, for the trace alone."""
    asked, stored = set(cue.indices.tolist()), set(trace.indices.tolist())
    width, height = COLUMNS * CELL, math.ceil(cue.dims / COLUMNS) * CELL
    cells = "".join(_units(asked & stored, f'fill="{ACCENT}"'))
    cells += "".join(_units(stored - asked, f'fill="{QUIET}"'))
    cells += "".join(_units(asked - stored, f'fill="none" stroke="{ACCENT}"'))
    frame = f'<rect width="{width}" height="{height}" fill="none" stroke="{QUIET}" stroke-opacity=".5"/>'
    alt = f"{len(asked & stored)} units win for question and trace"
    svg = f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{alt}">{frame}{cells}</svg>'
    reading = (
        f"Each square is one of {cue.dims} units; {len(asked & stored)} win for question and trace (full colour), "
        f"{len(asked - stored)} for the question alone (hollow), {len(stored - asked)} for the trace alone (grey): "
        "the more full colour, the more alike."
    )
    return Picture("Winning units", svg, reading)


def _units(indices: set[int], style: str) -> Iterator[str]:
    for index in sorted(indices):
        row, column = divmod(index, COLUMNS)
        yield f'<rect x="{column * CELL + 0.5}" y="{row * CELL + 0.5}" width="{CELL - 1}" height="{CELL - 1}" {style}/>'


def energy(memory: Components, cue: SparseKey, traces: Sequence[Trace]) -> Picture:
    """E(z) = -log sum exp(beta M z) / beta + z z / 2 along steps z <- softmax(beta M z) M (Ramsauer et al. 2020, arXiv 2008.02217, eq. 2,
    without its constants)."""
    beta = memory.settings.episodic.hopfield.beta
    starts = dense(rows_of([key for trace in traces for key in trace.payload.keys]))
    owner = [trace for trace in traces for _ in trace.payload.keys]
    state, values = dense(rows_of([cue])), []
    for step in range(STEPS + 1):
        state = hopfield(starts, state, beta, 1) if step else state
        values.append(float(-torch.logsumexp(beta * state @ starts.T, -1)[0] / beta + state[0] @ state[0] / 2))
    end = owner[int((starts @ state[0]).argmax())]
    low, high = min(values), max(values)
    spread = high - low or 1.0
    points = [
        (LEFT + step * (WIDTH - LEFT - 8) / STEPS, 8 + (high - value) / spread * (HEIGHT - FOOT - 16)) for step, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{ACCENT}"/>' for x, y in points)
    text = 'font-size="11" fill="currentColor"'
    foot = HEIGHT - 4
    axis = f'<text x="0" y="14" {text}>{high:.2f}</text><text x="0" y="{HEIGHT - FOOT}" {text}>{low:.2f}</text>'
    axis += f'<text x="{LEFT}" y="{foot}" {text}>cue</text>'
    axis += f'<text x="{WIDTH - 8}" y="{foot}" text-anchor="end" {text}>step {STEPS}</text>'
    curve = f'<polyline points="{line}" fill="none" stroke="{ACCENT}" stroke-width="1.5"/>'
    alt = f"energy from {values[0]:.2f} to {values[-1]:.2f} in {STEPS} steps"
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{alt}">{axis}{curve}{dots}</svg>'
    reading = (
        f"The cue's energy as Hopfield steps (beta {beta:g}) pull it towards what is stored; a steep fall ends in one trace, "
        f"a flat one between several. It ends nearest to #{end.source}."
    )
    return Picture("Energy of the cue", svg, reading)
