"""Bytes that change on the disk: a live memory refuses its folder in one line, or answers and forgets as if nothing had been changed."""

import random
import shutil

import pytest

from hippo_core import Memory
from hippo_core.errors import LabError
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.training.consolidation.lineage import LINEAGE
from hippo_core.training.consolidation.update_rules.base import FILE
from tests.faults.conftest import LONG, SEED
from tests.training.consolidation.conftest import keep_little
from tests.training.consolidation.test_live import TRACES, asleep, learn

STORES, WEIGHTS = (400, 150) if LONG else (40, 12)
SENTENCES = ["Anna left the bicycle at the station.", "Ben left the lamp at the school.", "Dora left the violin in the attic."]


def damaged(content, draw):
    """The bytes with one that is another, eight that are, some that are missing, or a part that is nothing."""
    offset, kind = draw.randrange(len(content)), draw.choice(("a bit", "a bit", "eight bytes", "cut", "nothing"))
    if kind == "cut":
        return content[:offset]
    if kind == "a bit":
        return content[:offset] + bytes([content[offset] ^ 1 << draw.randrange(8)]) + content[offset + 1 :]
    some = bytes(8) if kind == "nothing" else draw.randbytes(8)
    return (content[:offset] + some + content[offset + 8 :])[: len(content)]


def memory():
    return Memory(method="baselines/rag_bm25")


def all_of(folder):
    """What a memory recalls, forgets, and says of what is left; and the number that the next sentence gets."""
    with memory().open(folder) as opened:
        recalled = [[trace.text for trace in opened.recall(text, 3).traces] for text in SENTENCES]
        kept = [(trace.id, trace.text, trace.teller, trace.salience, trace.evidence, trace.uses) for trace in opened.traces()]
        forgotten = opened.forget("diary"), [trace.text for trace in opened.traces()]
        return recalled, kept, forgotten, [taught.id for taught in opened.teach("Otto is at home.")], list(opened.stores[""].decisions())


def test_a_damaged_store_is_refused_or_answers_as_before(tmp_path):
    with memory().open(tmp_path / "whole") as opened_memory:
        for number, text in enumerate(SENTENCES):
            opened_memory.teach(text, who="Anna", provenance="leaflet" if number else "diary")
    undamaged, draw, refused = all_of(shutil.copytree(tmp_path / "whole", tmp_path / "first")), random.Random(SEED), 0
    files = sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*") if path.is_file())
    for number in range(STORES):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / f"{number}")
        path = folder / (draw.choice(files) if number % 8 == 0 else next(name for name in files if name.suffix == ".sqlite"))
        path.write_bytes(damaged(path.read_bytes(), draw))
        try:
            assert all_of(folder) == undamaged, number
        except LabError as error:
            assert "\n" not in str(error)
            refused += 1
        shutil.rmtree(folder)
    print(f"FAULT_SEED={SEED}: {refused} of {STORES} damaged folders refused")
    assert refused > STORES / 4


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), "cpu")


def test_damaged_weights_are_refused_or_the_same(lm, tmp_path, monkeypatch):
    keep_little(monkeypatch, own=True)
    folder = tmp_path / "consolidated"
    learn(lm, folder, TRACES, "sparse")
    undamaged, draw, refused = asleep(lm, folder), random.Random(SEED), 0
    lineage, [weights] = folder / LINEAGE, folder.glob(f"*/{FILE}")
    for number in range(WEIGHTS):
        path = lineage if number % 3 == 0 else weights
        content = path.read_bytes()
        path.write_bytes(damaged(content, draw))
        try:
            assert (asleep(lm, folder) == undamaged).all(), number
        except LabError as error:
            assert "\n" not in str(error)
            refused += 1
        path.write_bytes(content)
    print(f"FAULT_SEED={SEED}: {refused} of {WEIGHTS} damaged sleeps refused")
    assert refused > WEIGHTS * 0.9
