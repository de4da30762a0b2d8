"""A small suite of thirteen worlds in which each condition has a known answer, for the tests beside it."""

import json

WORDS = ("amber", "birch", "cobalt", "dune", "ember", "fjord", "grove", "heath", "iris", "juniper", "kelp", "linden", "mango")


def write(folder, worlds=WORDS, altered="", repeats=1):
    """The folder; `altered`: what stands in the place of the right place in every note."""
    (folder / "human_notes").mkdir(parents=True, exist_ok=True)
    notes, items = [], []
    for number, word in enumerate(worlds):
        location = altered or f"shelf {word}"
        notes += [
            {"id": "n1", "world": word, "text": f"The {word} key hangs on {location}.", "tags": ["keys"], "files": [f"{word}.txt"]},
            {"id": "n2", "world": word, "text": "Nils waters the ferns on Fridays.", "tags": ["plants"]},
            {"id": "n3", "world": word, "text": "The lift was painted green in spring.", "tags": ["house"]},
        ]
        asked = {
            "world": word,
            "question": f"Where hangs the {word} key?",
            "expected_notes": ["n1"],
            "tags": ["odd" if number % 2 else "even"],
        }
        items += [
            {"id": f"{word}-r", "type": "retrieval", "top_k": 1, **asked},
            {"id": f"{word}-g", "type": "grounded_answer", "top_k": 1, "required_assertions": [f"shelf {word}"], **asked},
        ]
        (folder / f"human_notes/{word}.md").write_text(f"The {word} key hangs on {location}.\n")
    for name, lines in (("notes", notes), ("items", items)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (folder / "suite.yaml").write_text(f"name: keys\nlabel_status: reviewed\nmin_items: 20\ndefault_repeats: {repeats}\n")
    return folder
