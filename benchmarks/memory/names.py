"""Fit how the spatial memory finds names, and measure it on names and frames that it was not fitted to.

    python benchmarks/memory/names.py fit    # all frames and names of data/reading -> data/weights/spatial/names.safetensors
    python benchmarks/memory/names.py show   # verbs, voices and domains of names held out in turn: names, links, ways

Ridge regression in closed form on worlds that are told in the frames, each place with a name of a domain, half of them
without an article or with capitals. The same file each time. One thread.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import yaml

from benchmarks.memory import likeness as frames_of
from benchmarks.memory.likeness import FOLDS, Frame, frames
from benchmarks.memory.ways import build
from hippo_core.files import home
from hippo_core.methods.spatial.answers import Atlas
from hippo_core.methods.spatial.encoded import Encode, minilm_kept, write_weights
from hippo_core.methods.spatial.likely import _named
from hippo_core.methods.spatial.likeness import Likeness
from hippo_core.methods.spatial.names import mark
from hippo_core.methods.spatial.reading import Link
from hippo_core.methods.spatial.spans import FILE, TAGS, Names, World, made_of

NAMES = "data/reading/names.yaml"
STYLES = ("as they are", "as they are", "as they are", "no article", "capitals", "capitals, no article")
SLOT = re.compile(r"\b([Tt])he (q[a-z]{3}x)\b")
RIDGE = 3.0


@dataclass(frozen=True)
class Told:
    """A world whose names are known: its statements, of each its names as pieces of the text, and its questions with their answers."""

    style: str
    texts: list[str]
    spans: list[list[tuple[int, int]]]
    questions: list[tuple[str, list[str]]]
    slots: list[dict[str, str]]
    gold: list[list[int]]


def domains() -> tuple[dict[str, list[tuple[str, bool]]], list[str]]:
    """The names of each domain, with whether one has an article; and people."""
    told = yaml.safe_load((home() / NAMES).read_text(encoding="utf-8"))
    people = [str(one) for one in told.pop("people")]
    return {name: [(one, True) for one in own["the"]] + [(one, False) for one in own["bare"]] for name, own in told.items()}, people


def worlds_of(held: Sequence[Frame], names: Sequence[tuple[str, bool]], people: Sequence[str], seed: int, worlds: int) -> list[Told]:
    """Worlds told in these frames, of places of these names."""
    rng = random.Random(seed)
    kinds: Mapping[str, list[str]] = defaultdict(list)
    for one in held:
        kind = "directions" if one.compass else {"link": "places", "none": "distractors", "way": "asked_places"}.get(one.kind, one.kind)
        kinds[kind].append(one.frame if kind == "distractors" else one.frame.replace("{p}", rng.choice(people)))
    slots = [f"q{a}{b}{c}x" for a in "bcd" for b in "bcdfg" for c in "bcdf"][:24]
    words = {
        **kinds,
        "asked_directions": kinds["asked_places"],
        "names": {"plain": slots, "two": [], "proper": []},
        "people": list(people),
        "seed": seed,
        "worlds": worlds,
        "questions_per_world": 10,
    }
    facts, items = build(words)
    found = []
    for number in range(worlds):
        style = STYLES[rng.randrange(len(STYLES))]
        called = dict(zip(slots, rng.sample(list(names), min(len(slots), len(names))), strict=False))
        called = {slot: _styled(name, the, style) for slot, (name, the) in called.items()}
        own = [fact for fact in facts if fact["world"] == f"w{number:02}"]
        filled = [_filled(fact["text"], called) for fact in own]
        asked = [item for item in items if item["world"] == f"w{number:02}"]
        bare = {slot: name for slot, (name, _) in called.items()}
        found.append(
            Told(
                style,
                [text for text, _ in filled],
                [spans for _, spans in filled],
                [(_filled(item["question"], called)[0], [_plain(answer, bare) for answer in item["answers"]]) for item in asked],
                [{key: bare.get(value, value) for key, value in fact["slots"].items()} for fact in own],
                [[int(fact.split("f")[-1]) for fact in item["gold_facts"]] for item in asked],
            )
        )
    return found


def _styled(name: str, the: bool, style: str) -> tuple[str, bool]:
    """A name and whether it has an article, as a world tells it."""
    if not the:
        return name, False
    capitals = " ".join(word if word in ("of", "the") else word[0].upper() + word[1:] for word in name.split())
    return (capitals if "capitals" in style else name), "no article" not in style


def _filled(text: str, called: Mapping[str, tuple[str, bool]]) -> tuple[str, list[tuple[int, int]]]:
    """The text with names in the place of slots, and where they stand."""
    found, spans, end = "", [], 0
    for hit in SLOT.finditer(text):
        name, the = called[hit[2]]
        found += text[end : hit.start()] + (f"{hit[1]}he " if the else "")
        if not the and hit[1] == "T":
            name = name[0].upper() + name[1:]
        spans.append((len(found), len(found) + len(name)))
        found += name
        end = hit.end()
    return found + text[end:], spans


def _plain(answer: str, bare: Mapping[str, str]) -> str:
    return re.sub(r"q[a-z]{3}x", lambda hit: bare[hit[0]], answer).lower()


def tags(own: Sequence, spans: Sequence[tuple[int, int]]) -> list[int]:
    """The tag of each token."""
    found = [0] * len(own)
    for start, end in spans:
        inside = [at for at, token in enumerate(own) if token.start >= start and token.end <= end]
        for at in inside:
            found[at] = 1 if at == inside[0] else 2
    return found


def fit(told: Sequence[Told], encode: Encode = minilm_kept) -> dict[str, np.ndarray]:
    """The weights of `Names`."""
    square: np.ndarray | None = None
    cross = np.zeros(0)
    worlds = [World(one.texts) for one in told]
    labels = [tags(own, spans) for one, world in zip(told, worlds, strict=True) for own, spans in zip(world.tokens, one.spans, strict=True)]
    batch: list[tuple[np.ndarray, np.ndarray]] = []

    def add() -> None:
        nonlocal square, cross
        x, y = np.concatenate([x for x, _ in batch]), np.concatenate([y for _, y in batch])
        if square is None:
            square, cross = RIDGE * np.eye(x.shape[1], dtype=np.float64), np.zeros((x.shape[1], len(TAGS)))
        square += x.T @ x
        cross += x.T @ y
        batch.clear()

    for rows, own in zip(made_of(worlds, encode), labels, strict=True):
        batch.append((rows, np.eye(len(TAGS), dtype=np.float32)[own] * 2 - 1))
        if len(batch) == 256:
            add()
    if batch:
        add()
    return {"tags": np.linalg.solve(square, cross).astype(np.float16)}


def training(held_fold: int | None, worlds: int = 24, seed: int = 7) -> list[Told]:
    """Worlds to fit to, without what is held out in this fold."""
    names, people = domains()
    own = [name for number, one in enumerate(names.values()) if number % FOLDS != held_fold for name in one]
    by_domain = [one for number, one in enumerate(names.values()) if number % FOLDS != held_fold]
    told = [one for one in frames() if one.fold != held_fold]
    whom = people if held_fold is None else people[::2]
    return [
        world
        for number, one in enumerate([own, *by_domain])
        for world in worlds_of(told, one, whom, seed + number, worlds // (6 if number else 1))
    ]


def held(fold: int) -> tuple[Names, Likeness, list[Told]]:
    """What is fitted without a fold, and worlds of it: its frames, its domains, every second person."""
    names, people = domains()
    own = [name for number, one in enumerate(names.values()) if number % FOLDS == fold for name in one]
    likeness = Likeness(frames_of.fit([one for one in frames() if one.fold != fold]))
    return Names(fit(training(fold))), likeness, worlds_of([one for one in frames() if one.fold == fold], own, people[1::2], 100 + fold, 24)


def measured(found: Names, likeness: Likeness, told: Sequence[Told], counts: Mapping[str, Counter[str]], misses: bool) -> None:
    """Names, links and ways of worlds, by how their names are written; ways with names by patterns beside them."""
    with_names = Likeness(likeness.weights, likeness.encode, found)
    for one in told:
        count = counts[one.style]
        known = found.found(one.texts)
        for text, spans in zip(one.texts, one.spans, strict=True):
            right = {text[start:end].lower() for start, end in spans}
            said = {known.names.get(noun, noun).lower() for noun in _named(mark(text, known.names), known.places)}
            count["right"] += len(right & said)
            count["named"] += len(right)
            count["said"] += len(said)
            if misses and right != said:
                print("missed:", one.style, "|", text, "|", said - right, "|", right - said)
        atlases = [Atlas(one.texts, likeness=reader) for reader in (None, likeness, with_names)]
        for number, slots in enumerate(one.slots):
            count["links"] += "a" in slots
            count["others"] += "a" not in slots
            for which, atlas in enumerate(atlases):
                link = dict(atlas.told).get(number)
                opened = isinstance(link, Link) and not link.closed and not link.doubt
                named = {atlas.names.get(at, at).lower() for at in (link.origin, link.goal)} if isinstance(link, Link) else set()
                if "a" in slots:
                    count[f"links {which}"] += opened and named == {slots["a"].lower(), slots["b"].lower()}
                else:
                    count[f"others {which}"] += not opened
        for question, answers in one.questions:
            count["ways"] += 1
            for which, atlas in enumerate(atlases):
                said = atlas.say(question)
                count[f"ways {which}"] += bool(said and said.answer.lower() in answers)
                if which == 2 and misses and not (said and said.answer.lower() in answers):
                    print("way:", question, "|", said and said.answer, "|", answers[0])


def show(misses: bool) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for fold in range(FOLDS):
        measured(*held(fold), counts, misses)
    counts["all"] = sum(counts.values(), Counter())
    print(
        "| names | named | found | said that are | links: patterns, likeness, with names | no links | ways |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for style, count in counts.items():
        shares = [[f"{count[f'{what} {which}'] / max(1, count[what]):.3f}" for which in range(3)] for what in ("links", "others", "ways")]
        print(
            f"| {style} | {count['named']} | {count['right'] / count['named']:.3f} | {count['right'] / count['said']:.3f} |"
            f" {' '.join(shares[0])} | {' '.join(shares[1])} | {' '.join(shares[2])} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("fit", "show"))
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    if options.what == "show":
        show(options.misses)
        return
    path = home() / FILE
    write_weights(fit(training(None)), path)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
