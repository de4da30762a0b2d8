"""A new suite: a folder that is right as it stands, to be filled."""

import re
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import new_folder, write_text

MANIFEST = """\
schema_version: 1
name: {name}
version: "1"
description: what this suite asks, in a sentence
label_status: draft # reviewed: a second reader has read every item (second_reading.jsonl)
default_profile: offline # llm: a model answers
default_repeats: 1
min_items: 20 # fewer are too few for a verdict
tags: []
"""
NOTES = """\
{"id": "n1", "text": "The backup of the ledger runs at 02:00 on the machine Otter.", "tags": ["backup"], "files": ["ops/backup.yaml"]}
{"id": "n2", "text": "From Monday the backup of the ledger runs at 04:30, so that it misses the export.", "tags": ["backup"]}
{"id": "n3", "text": "Inga keeps the spare key of the server room."}
"""
ITEMS = """\
# a line that begins with # is left out
{"id": "r1", "type": "retrieval", "question": "Which file sets up the backup?", "top_k": 2, "expected_notes": ["n1"]}
{"id": "g1", "type": "grounded_answer", "question": "Who has the spare key?", "expected_notes": ["n3"], "required_assertions": ["Inga"]}
{"id": "s1", "type": "adversarial_stale", "question": "At what time does the backup of the ledger run now?", "expect": "prefer_fresh", \
"stale_notes": ["n1"], "fresh_notes": ["n2"], "stale_assertions": ["02:00"], "fresh_assertions": ["04:30"]}
{"id": "s2", "type": "adversarial_stale", "question": "Who pays for the export?", "expect": "refuse"}
{"id": "b1", "type": "resume_quality", "prompt": "What must I know of the backup?", "top_k": 2, "required_topics": ["04:30"]}
"""
HUMAN = "The ledger's backup runs at 04:30 (02:00 is old). Inga has the spare key.\n"


def new_suite(location: str | Path) -> Path:
    """Make a folder with a manifest, notes, items of each type and a human note, at a path from the current folder or an absolute one.
    LabError where there is something already."""
    if "\0" in str(location):
        raise LabError(f"the name of a folder has no NUL character, got {str(location)!r}")
    folder = Path(location).expanduser().resolve()
    if folder.exists():
        raise LabError(f"{folder} is there already; name a new folder")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-._") or "suite"
    with new_folder(folder) as made:
        files = {"suite.yaml": MANIFEST.format(name=name), "notes.jsonl": NOTES, "items.jsonl": ITEMS, "human_notes/main.md": HUMAN}
        for path, text in files.items():
            write_text(made / path, text)
    return folder
