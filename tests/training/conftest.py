"""Fixtures of these tests: random models on disk and in memory; a lab whose texts of others are made up."""

import json
from itertools import islice
from random import Random

import pytest
import yaml

from hippo_core.files import root, sha256
from hippo_core.suites import lexicon
from hippo_core.suites.babi import public, story
from hippo_core.suites.draw import worlds
from hippo_core.text_files import listed
from tests.models.handmade import folders, lm, loaded

__all__ = ["folders", "lm", "loaded"]


@pytest.fixture(scope="session")
def made_up_lab(tmp_path_factory):
    """A lab whose texts of others are made up, of the same forms: its root, with the texts below `texts`."""
    lab_path, random, files = tmp_path_factory.mktemp("lab"), Random(5), {}
    names, objects, locations = lexicon.names(held_out=False), story.OBJECTS, story.ROOMS

    def prose(n: int) -> str:
        return " ".join(f"{random.choice(names)} saw the {random.choice(objects)} at the {random.choice(locations)}." for _ in range(n))

    files["tinystories"] = "\n<|endoftext|>\n".join(prose(30) for _ in range(300))
    for part in ("train", "valid"):
        files[f"wikitext2-{part}"] = "".join(f" = The {part} {object_name} = \n\n {prose(30)} \n\n" for object_name in objects[:19])
    reviews = {f"{prose(1).lower()}\t{number % 2}" for number in range(800)}
    files["sst2"] = "\n".join(sorted(reviews)) + "\n"
    files["squad"] = json.dumps([passage_of(title, prose, number) for title in names[:48] for number in range(4)])
    for task in public.TASKS:
        for part in ("train", "test"):
            stories = islice(worlds("babi", "default", None, 3, part, overrides={"tasks": [task], "n_items": 2}), 200)
            files[f"babi-{task}-{part}"] = "\n".join(line for world in stories for line in public_lines(world)) + "\n"
    entries = {name: listed().files[name].model_dump() for name in files}
    for name, text in files.items():
        path = lab_path / "texts" / entries[name]["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        entries[name] |= {"sha256": sha256(path), "bytes": path.stat().st_size}
    (lab_path / "params").mkdir()
    for path in (*(root() / "params").iterdir(), *root().iterdir()):
        target = lab_path / path.relative_to(root())
        if not target.exists() and path.name != "data.yaml":
            target.symlink_to(path)
    (lab_path / "params/data.yaml").write_text(yaml.safe_dump({"folder": "texts", "files": entries}))
    return lab_path


def passage_of(title: str, prose, number: int) -> dict:
    """A passage as SQuAD's file has it; every other one is too long for a lesson, and the last answer is that of
    all passages of the article."""
    year, river, bridge = f"{1000 + 7 * sum(map(ord, title)) + number}", f"{title}mouth {number}", f"{title}bridge"
    text = f"{prose(3)} {title} was founded in {year}. It lies on the river {river}. {prose(30 if number % 2 else 3)} One sees {bridge}."
    asked = [("was founded when", year), ("lies on which river", river), ("has which bridge", bridge)]
    questions = [{"question": f"The place {number} of {title} {words}?", "answer": answer} for words, answer in asked]
    return {"title": title, "context": text, "questions": questions}


def public_lines(world):
    """A world of the babi suite as lines of the public files."""
    line_of, lines = {}, []
    for number, fact in enumerate(world.facts, 1):
        lines.append(fact.text)
        line_of[fact.id] = len(lines)
        for item in world.items:
            if len(item.window) == number:
                lines.append(f"{item.question} \t{item.answers[0]}\t{' '.join(str(line_of[gold]) for gold in item.gold_facts)}")
    return [f"{number} {line}" for number, line in enumerate(lines, 1)]


@pytest.fixture
def made_up_texts(made_up_lab, monkeypatch):
    """The lab with made-up texts is the one in use."""
    monkeypatch.delenv("HIPPO_DATA", raising=False)
    monkeypatch.setenv("HIPPO_ROOT", str(made_up_lab))
    return made_up_lab
