"""Reworded profiles: the same worlds in frozen wordings that nothing of the lab has, neither the suites' words nor any training text."""

import ast
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from shutil import copytree

import pytest

from hippo_core.errors import LabError
from hippo_core.files import read_yaml, root
from hippo_core.suites import lexicon, reworded
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial import words as places
from hippo_core.suites.spatial.explore import ordinal
from hippo_core.suites.splits import split_of
from tests.texts import texts_of

PROFILES = [
    *((suite, "reworded") for suite in ("semantic", "spatial", "mixed")),
    *(("spatial", f"reworded_{of}") for of in ("paths_5", "explore", "explore_hard")),
    ("semantic", "reworded_hard"),
]


@cache
def drawn(suite, profile, n=60, split="test", seed=7):
    return list(worlds(suite, profile, n, seed, split))


def texts(suite, profile):
    return [[fact.text for fact in world.facts] for world in drawn(suite, profile)]


@pytest.mark.parametrize(("suite", "profile"), PROFILES)
def test_the_same_seed_gives_the_same_world_in_other_words(suite, profile):
    for own, new in zip(drawn(suite, reworded.drawn_as(profile)), drawn(suite, profile), strict=True):
        assert new.items == own.items
        assert [replace(fact, text="") for fact in new.facts] == [replace(fact, text="") for fact in own.facts]
        reworded_facts = [
            fact for fact, other in zip(new.facts, own.facts, strict=True) if "action" not in fact.slots
        ]  # events stay as they are
        assert not {fact.text for fact in reworded_facts} & {fact.text for fact in own.facts}
        for fact in reworded_facts:
            values = {slot: value for slot, value in fact.slots.items() if slot not in ("relation", "step", "who")}
            assert all(re.search(rf"\b{re.escape(value)}\b", fact.text) for value in values.values()), fact
            assert "step" in fact.slots or fact.slots.get("who", "") in fact.text


@pytest.mark.parametrize("profile", ["reworded", "reworded_explore"])
def test_the_words_of_a_step_decide_its_split(profile):
    steps = [
        fact.text
        for world in drawn("spatial", profile)
        for fact in world.facts
        if {"who", "direction"} <= {*fact.slots} or "step" in fact.slots
    ]
    assert len(steps) > 50 and {split_of(text) for text in steps} == {"test"}


def test_a_world_has_the_same_words_whatever_was_drawn_before_it():
    first = texts("semantic", "reworded")
    assert [[fact.text for fact in world.facts] for world in worlds("semantic", "reworded", 60, 7)] == first
    later = list(worlds("semantic", "reworded", 60, 8))
    assert [fact.text for fact in later[0].facts] != first[0]


def test_repeated_facts_have_other_words():
    again = 0
    for world in drawn("semantic", "reworded", 100):
        counts = Counter(fact.text for fact in world.facts)
        assert max(counts.values()) == 1
        again += sum(len(item.retold) for item in world.items)
    assert again > 20


def test_an_explorer_marks_all_steps_in_one_style_and_explorers_differ():
    styles = set()
    for world in drawn("spatial", "reworded_explore", 100):
        known = [
            marker
            for marker in reworded.wordings("spatial")["marker"]
            if all(
                fact.text.startswith(marker[number > 1].format(step=number, nth=ordinal(number)))
                for number, fact in enumerate(world.facts, 1)
            )
        ]
        assert len(known) == 1
        styles.add(known[0][1])
    assert len(styles) > 5
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "103rd", "111th"]
    )


def frames():
    """Every wording with its kind; an explorer's parts one by one."""
    for suite in reworded.FROZEN:
        for name, forms in reworded.wordings(suite).items():
            if name not in ("verb", "unlabeled"):
                yield from ((f"{suite} {name}", form) for some in forms for form in ([some] if isinstance(some, str) else some))


def test_no_fixed_word_is_a_place_an_object_or_a_city():
    fixed = {word for _, form in frames() for word in re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", " ", form))}
    used = {*places.PLACES, *places.OBJECTS, *places.OBSTACLES, *places.EDGE_LABELS, *lexicon.CITIES, *lexicon.SURNAMES}
    used |= {word for groups in (lexicon.OBJECTS, lexicon.PLACES) for group in groups for word in group}
    assert fixed & used == {"shop"}  # of the lab's own forms as well: "the Marlow shop"


@pytest.mark.parametrize("suite", reworded.FROZEN)
def test_a_file_that_was_changed_is_refused(suite, tmp_path, monkeypatch):
    copytree(root() / "data/reworded", tmp_path / "data/reworded")
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    assert reworded.wordings(suite)
    changed = tmp_path / "copy"
    copytree(tmp_path / "data", changed / "data")
    monkeypatch.setenv("HIPPO_ROOT", str(changed))
    with (changed / f"data/reworded/{suite}.yaml").open("a") as file:
        file.write("# fitted\n")
    with pytest.raises(LabError, match=f"{suite}.yaml: expected the wordings that were frozen"):
        reworded.wordings(suite)


# Nothing of the lab has these frames


FILLER = {"the", "a", "an", "shop", "company", "college", "firm"}
SOURCES = (
    *(f"hippo_core/{part}/**/*.{kind}" for part in ("suites", "training", "methods") for kind in ("py", "yaml")),
    *(f"data/{part}/*.yaml" for part in ("chains", "chains/val", "reading", "ways", "ways_second", "ways_third")),
)


def bare(text):
    """A frame's words in small letters, its names and other blanks as one sign; no article and no kind of firm."""
    text = re.sub(r"\{[^{}]*\}(?:'s)?", " _ ", text)
    text = re.sub(r"(?<!^)(?<![.?!:] )\b(?!I\b)[A-Z]\w+", "_", text.strip())
    words = [word for word in re.findall(r"_|\d+|[a-z]+", text.lower()) if word not in FILLER]
    return tuple(word for number, word in enumerate(words) if word != "_" or words[number - 1 : number] != ["_"])


def strings(path):
    """All texts in a file of code or of data; what an f-string fills in is a blank."""
    if path.suffix == ".yaml":
        for text in texts_of(read_yaml(path)):
            yield from (text, *re.split(r"[\n|]|[.?!] ", text))
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
            yield from re.split(r"\n|[.?!] ", node.value)


def of_the_lab():
    paths = {path for pattern in SOURCES for path in root().glob(pattern)}
    assert len(paths) > 100
    return {bare(text): f"{path.relative_to(root())}: {text.strip()[:120]}" for path in sorted(paths) for text in strings(path)}


def test_no_wording_is_a_frame_of_the_lab():
    """Equal up to names, articles and kinds of firm."""
    lab = of_the_lab()
    assert len(lab) > 1000
    equal = [(name, form, lab[bare(form)]) for name, form in frames() if len(bare(form)) > 2 and bare(form) in lab]
    assert [frame for frame in equal if frame[0] != "spatial marker"] == []
