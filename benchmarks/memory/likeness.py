"""Fit what the spatial memory reads by likeness, and measure it on verbs that it was not fitted to.

    python benchmarks/memory/likeness.py fit    # all frames of data/reading -> data/weights/spatial/likeness.safetensors
    python benchmarks/memory/likeness.py show   # each fifth of the verbs held out in turn: sentences, questions, and ways in worlds of them

Ridge regression in closed form on MiniLM's vectors and words; the same file each time. One thread, some ten seconds.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import yaml

from benchmarks.memory.ways import build
from hippo_core.files import home
from hippo_core.methods.spatial.answers import Atlas
from hippo_core.methods.spatial.asked import asked
from hippo_core.methods.spatial.encoded import Encode, minilm_kept, write_weights
from hippo_core.methods.spatial.likely import likely, likely_way
from hippo_core.methods.spatial.likeness import FILE, KINDS, Blanked, Likeness, between, made_of
from hippo_core.methods.spatial.reading import Link, directions, read
from hippo_core.spoken import OPPOSITE

FOLDER = "data/reading"
VOICES = ("guide", "letter", "leaflet", "child", "logbook")
FOLDS = len(VOICES)
COUNT = {"link": 1.0, "closed": 1.5, "none": 1.0, "way": 1.0, "other": 1.0}  # of a frame: there are fewer of some kinds
RIDGE = {"told": 2.0, "asked": 1.0, "begins": 0.3}
NAMES = {
    "plain": ["mill", "barn", "well", "attic", "tower", "smithy", "market", "pond", "chapel", "ford", "kennel", "pantry", "wharf",
              "orchard", "granary", "study", "dairy", "stable", "library", "cottage", "inn", "abbey"],
    "two": ["long gallery", "white house", "salt barn", "dove cote", "brick kiln", "wash house", "fish pond", "wine shop"],
    "proper": ["Saint Olave's", "Marsh End", "Tanner's Row", "Kiln Lane", "Hope Square", "Birch Hall"],
}  # fmt: skip
PEOPLE = ["Anna", "Mr Brown", "Paul", "Widow Gray", "Tilda", "Uncle Sam"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a kind and a verb, and a sentence of it; `first`: whether one stands at the place that it names first."""

    kind: str
    verb: str
    frame: str
    sentence: Blanked
    first: bool

    voice: bool = False

    @property
    def compass(self) -> bool:
        return "{d}" in self.frame or "{o}" in self.frame

    @property
    def fold(self) -> int:
        return VOICES.index(self.verb) if self.voice else crc32(f"{self.kind} {self.verb}".encode()) % FOLDS


def frames() -> list[Frame]:
    """All that were written, one sentence of each."""
    rng, found = random.Random(43), []
    for name in ("frames", "questions", "voices"):
        for outer, inner in yaml.safe_load((home() / FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).items():
            for group, own in inner.items():
                kind, verb = (group, outer) if name == "voices" else (outer, group)
                found += [_told(frame, {"links": "link"}.get(kind, kind), verb, name == "voices", rng) for frame in own]
    return found


def _told(frame: str, kind: str, verb: str, voice: bool, rng: random.Random) -> Frame:
    a, b = rng.sample(NAMES["plain"], 2)
    d = rng.choice(("north", "east", "south", "west"))
    text = frame.format(a=f"the {a}", b=f"the {b}", d=d, o=OPPOSITE[d], p=rng.choice(PEOPLE))
    if next(iter(directions(text)), d) != d:  # the step that it names leads back
        a, b = b, a
    first = text.lower().index(f"the {a}") < text.lower().index(f"the {b}")
    return Frame(kind, verb, frame, Blanked(text[0].upper() + text[1:], (a, b) if first else (b, a)), first, voice)


def ridge(x: np.ndarray, y: np.ndarray, strength: float, count: np.ndarray) -> np.ndarray:
    """The weights [F, K] that take x [N, F] nearest to y [N, K], each row counted `count` [N] times, and stay small."""
    x, y = x * np.sqrt(count)[:, None], y * np.sqrt(count)[:, None]
    return x.T @ np.linalg.solve(x @ x.T + strength * np.eye(len(x)), y)


def fit(told: Sequence[Frame], encode: Encode = minilm_kept) -> dict[str, np.ndarray]:
    """The weights of a `Likeness`."""
    sides = {"told": KINDS, "asked": ("way",), "begins": ()}
    weights = {}
    for name, kinds in sides.items():
        own = [one for one in told if (one.kind in ("link", "way") if name == "begins" else (one.kind in KINDS) == (name == "told"))]
        x = (between if name == "begins" else made_of)([one.sentence for one in own], encode)
        y = [[1.0 if one.first else -1.0] if name == "begins" else [1.0 if one.kind == kind else -1.0 for kind in kinds] for one in own]
        weights[name] = ridge(x, np.array(y), RIDGE[name], np.array([COUNT[one.kind] for one in own])).astype(np.float16)
    return weights


def is_right(one: Frame, likeness: Likeness | None) -> bool:
    """Whether a sentence is read, or a question, as what it is."""
    a, b = one.sentence.places if one.first else one.sentence.places[::-1]
    text = one.sentence.text
    if one.kind in ("way", "other"):
        wanted = asked(text)
        if likeness and (wanted is None or wanted.kind == "by"):  # as on a map that does not say by what
            wanted = likely_way(text, {a, b}, likeness)
        way = (wanted.start.label, wanted.goal.label) if wanted and wanted.kind == "way" and wanted.goal else None
        return way == ((a, b) if one.kind == "way" else None)
    texts = [text, f"A lane goes from the {a} to the {b}."]  # names the places, as other statements of a world do
    read_so = [read(one) for one in texts]
    found = (likely(texts, read_so, likeness) if likeness else read_so)[0]
    link = found if isinstance(found, Link) else None
    if one.kind != "link":
        return (link is not None and link.closed) if one.kind == "closed" else link is None
    ends = (link.origin, link.goal) if link and not link.closed else ()
    return ends == (a, b) if one.compass else set(ends) == {a, b}


def worlds_of(held: Sequence[Frame], seed: int) -> dict[str, tuple[list[str], list[tuple[str, list[str]]]]]:
    """Worlds told in these frames alone: of each its statements, and its questions with their answers."""
    kinds: Mapping[str, list[str]] = defaultdict(list)
    for one in held:
        kind = "directions" if one.compass else {"link": "places", "none": "distractors", "way": "asked_places"}.get(one.kind, one.kind)
        kinds[kind].append(one.frame if kind == "distractors" else one.frame.replace("{p}", PEOPLE[one.fold]))
    words = {
        **kinds,
        "asked_directions": kinds["asked_places"],
        "names": NAMES,
        "people": PEOPLE,
        "seed": seed,
        "worlds": 24,
        "questions_per_world": 10,
    }
    facts, items = build(words)
    found = {
        fact["world"]: ([one["text"] for one in facts if one["world"] == fact["world"]], list[tuple[str, list[str]]]()) for fact in facts
    }
    for item in items:
        found[item["world"]][1].append((item["question"], [answer.lower() for answer in item["answers"]]))
    return found


def show(misses: bool) -> None:
    """Accuracy by kind and success of ways, patterns alone and with likeness."""
    told, right = frames(), defaultdict(list)
    for fold in range(FOLDS):
        held = [one for one in told if one.fold == fold]
        likeness = Likeness(fit([one for one in told if one.fold != fold]))
        for one in held:
            name = f"{one.kind}{', direction' if '{d}' in one.frame else ''}"
            right[name].append((is_right(one, None), is_right(one, likeness)))
            if misses and not right[name][-1][1]:
                print("missed:", name, "|", one.frame)
        for texts, questions in worlds_of(held, fold).values():
            maps = [Atlas(texts), Atlas(texts, likeness=likeness)]
            for question, answers in questions:
                said = [one.say(question) for one in maps]
                right["ways in worlds of these"].append(tuple(bool(one and one.answer.lower() in answers) for one in said))
    print("| held out | frames, ways | patterns | with likeness |\n|---|--:|--:|--:|")
    for name, own in right.items():
        print(f"| {name} | {len(own)} | {np.mean([one for one, _ in own]):.3f} | {np.mean([one for _, one in own]):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fit", "show"))
    parser.add_argument("--misses", action="store_true", help="print the frames that are missed")
    options = parser.parse_args()
    if options.what == "show":
        show(options.misses)
        return
    path = home() / FILE
    write_weights(fit(frames()), path)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
