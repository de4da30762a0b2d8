"""Whatever is given to a live memory: a result, or one line that says what to pass; and nothing is stored by half."""

import datetime
import json
import math
import os

import pytest

from hippo_core import Memory
from hippo_core.errors import LabError
from hippo_core.files import write_sealed
from hippo_core.live.memory import BEGUN
from hippo_core.methods.base import Observation
from hippo_core.store.trace import Statement

RAG = "baselines/rag_bm25"
HALF = "Anna is at the \ud800 station."
LONG = "a" * 5000, "a/" * 5000
DEEP: list = []
for _ in range(5000):
    DEEP = [DEEP]
NUMBERS = [True, 1.5, math.nan, -math.inf, -1, 10**5000]
STRANGE = [None, *NUMBERS, b"Anna", bytearray(b"Anna"), {"Anna": 1}, {"Anna"}, DEEP, object(), HALF, "", " \n", *LONG]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory(method=RAG).open(tmp_path_factory.mktemp("memory")) as opened:
        opened.teach("Ben has the lamp.", provenance="letter")
        opened.teach("Dora has the violin.")
        yield opened


def one_line(call, *given, **named):
    """What a call with wrong arguments says."""
    with pytest.raises(LabError) as raised:
        call(*given, **named)
    message = str(raised.value)
    assert "\n" not in message
    return message


CALLS = {
    "teach": (lambda memory, value: memory.teach(value), LONG),
    "teach many": (lambda memory, value: memory.teach(["Otto is here.", value]), LONG),
    "who": (lambda memory, value: memory.teach("Otto is here.", who=value), ("", " \n", *LONG)),
    "when": (lambda memory, value: memory.teach("Otto is here.", when=value), ("", " \n", *LONG)),
    "provenance": (lambda memory, value: memory.teach("Otto is here.", provenance=value), ("", " \n", *LONG)),
    "pin": (lambda memory, value: memory.teach("Otto is here.", pin=value), (True,)),
    "progress": (lambda memory, value: memory.teach("Otto is here.", progress=value), (None,)),
    "ask": (lambda memory, value: memory.ask(value), ()),
    "tokens": (lambda memory, value: memory.ask("Who?", tokens=value), ()),
    "recall off": (lambda memory, value: memory.ask("Who?", recall=value), (True,)),
    "recall": (lambda memory, value: memory.recall(value), LONG),
    "k": (lambda memory, value: memory.recall("Who?", value), ()),
    "forget": (lambda memory, value: memory.forget(value), ()),
    "sleep": (lambda memory, value: memory.sleep(value), ()),
    "steps": (lambda memory, value: memory.sleep("sparse", value), ()),
    "sleep's progress": (lambda memory, value: memory.sleep("sparse", 1, value), (None,)),
    "open": (lambda memory, value: Memory(method=RAG).open(value), ()),
    "read_only": (lambda memory, value: Memory(method=RAG).open(memory.folder, value), (True,)),
    "model": (lambda memory, value: Memory(value), ()),
    "method": (lambda memory, value: Memory(method=value), ()),
    "settings": (lambda memory, value: Memory(method=RAG, settings=value), (None,)),
    "k of the settings": (lambda memory, value: Memory(method=RAG, settings={"k": value}), (True, 10**5000)),
    "a deep setting": (lambda memory, value: Memory(method=RAG, settings={"k." * 50_000: value}), ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_are_one_line_each_and_store_nothing(memory, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = memory.traces()
    call, right = CALLS[name]
    for value in STRANGE:
        if not any(value is example or (type(value) is type(example) and value == example) for example in right):
            one_line(call, memory, value)
    assert memory.traces() == before


@pytest.mark.parametrize("wrong", [HALF, None, datetime.date(2026, 1, 1), "", "x" * 1_000_001])
def test_a_batch_with_one_bad_sentence_is_not_stored_at_all(memory, wrong):
    before = memory.traces()
    batch = [f"Person {number} has a key." for number in range(70)]
    assert one_line(memory.teach, [*batch, wrong]).startswith("text 71 of 71")
    observations = [Observation(Statement("", "", text, 0), teller="Otto") for text in batch]
    one_line(list, memory.tell([*observations, Observation(Statement("", "", "Otto is here.", 0), teller=wrong or None)]))
    assert memory.traces() == before


@pytest.mark.parametrize("field", [{"confidence": math.nan}, {"confidence": True}, {"confidence": "sure"}, {"reward": 1}, {"pin": None}])
def test_what_a_teller_says_beside_the_text_is_checked_too(memory, field):
    one_line(list, memory.tell([Observation(Statement("", "", "Otto is here.", 0), **field)]))


def test_a_moment_is_told_as_text(memory):
    assert one_line(memory.teach, "Otto is here.", when=datetime.datetime.now()) == "text 1 of 1: when must be a string, got datetime"


def test_what_is_told_and_asked_has_one_form_whoever_typed_it(tmp_path):
    with Memory(method=RAG).open(tmp_path) as memory:
        memory.teach("Zoe\u0308\u2019s lamp is\u00a0here.", who="Zoe\u0308", when="Mai\u00a0", provenance="Zoe\u0308\u2019s diary")
        [trace] = memory.recall("Where is Zo\u00eb's lamp?").traces
        assert (trace.text, trace.who, trace.when, trace.provenance) == ("Zo\u00eb's lamp is here.", "Zo\u00eb", "Mai ", "Zo\u00eb's diary")
        assert memory.recall("Where is Zoe\u0308\u2019s lamp?").traces == memory.recall("Where is Zo\u00eb's lamp?").traces
        assert memory.forget("Zoe\u0308\u2019s diary") == 1


def test_an_open_memory_stays_open_where_another_folder_cannot_be(memory, tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file/below", tmp_path / ("x" * 300)):
        one_line(Memory(method=RAG).open, folder)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def memory_folder(tmp_path):
    """A closed memory's folder, with a sentence of a diary."""
    with Memory(method=RAG).open(tmp_path / "memory") as opened:
        opened.teach(["Ben has the lamp.", "Dora has the violin."], provenance="diary")
    return tmp_path / "memory"


def size(folder, read_only=False):
    """How many sentences a memory's folder holds."""
    with Memory(method=RAG).open(folder, read_only) as opened:
        return len(opened)


@pytest.mark.parametrize(
    "begun",
    [
        b'{"forget": "diary"}',
        b'{"forget": ""}',
        b'{"tell": [{"text": "Otto is here."}], "first": 3}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\x00",
        b"",
        b"[]",
        b'{"forget": "diary", "memory": null, "seal": null}',
    ],
)
def test_a_note_that_the_lab_did_not_write_is_refused_and_nothing_is_lost(memory_folder, begun):
    (memory_folder / BEGUN).write_bytes(begun)
    assert "its seal does not fit; move it away" in one_line(Memory(method=RAG).open, memory_folder)
    assert (memory_folder / BEGUN).read_bytes() == begun and size(memory_folder, read_only=True) == 2
    (memory_folder / BEGUN).rename(memory_folder / "away.json")
    assert size(memory_folder) == 2


@pytest.mark.parametrize(
    "begun",
    [
        {},
        *({"forget": what} for what in (None, "", "\u200b", 1.5, True, ["diary"])),
        *({"tell": memory_folder, "first": 3} for memory_folder in (5, [5], [{}], [{"text": 5}], [{"text": "Otto is here.", "fact": 1}])),
        *({"tell": [{"text": "Otto is here."}], "first": first} for first in (None, "3", 2**70)),
        {"tell": [{"text": "Otto is here."}]},
    ],
)
def test_a_sealed_note_that_says_nothing_that_can_be_done_is_refused(memory_folder, begun):
    with Memory(method=RAG).open(memory_folder) as opened:
        write_sealed(memory_folder / BEGUN, {**begun, "memory": opened._identified})
    assert "does not say what was begun" in one_line(Memory(method=RAG).open, memory_folder)
    (memory_folder / BEGUN).unlink()
    assert size(memory_folder) == 2


def test_a_note_of_another_memory_is_refused(memory_folder, tmp_path):
    with Memory(method=RAG).open(tmp_path / "other") as other:
        write_sealed(memory_folder / BEGUN, {"forget": "diary", "memory": other._identified})
    assert "was written for another memory" in one_line(Memory(method=RAG).open, memory_folder)
    assert size(memory_folder, read_only=True) == 2


def test_a_note_that_comes_while_a_memory_is_open_is_refused_too(memory_folder):
    with Memory(method=RAG).open(memory_folder) as opened:
        (memory_folder / BEGUN).write_text(json.dumps({"forget": "diary"}))
        for call in (lambda: opened.teach("Otto is here."), lambda: opened.forget(1), lambda: opened.sleep("sparse")):
            one_line(call)
        assert len(opened) == 2


def names(folder):
    """All files, folders and links below a folder; no link is followed."""
    return sorted(os.path.join(parent, name) for parent, folders, files in os.walk(folder) for name in (*folders, *files))


def test_files_and_folders_of_the_user_beside_a_memory_stay(memory_folder, tmp_path):
    own = tmp_path / "own"
    for folder in (own, memory_folder / "consolidated/mine", memory_folder / "consolidated/.0123456789abcdef.x"):
        folder.mkdir(parents=True)
        (folder / "diary.txt").write_text("Monday")
    for name in (".begun.json.bak", ".begun.json.abcdefgh", "consolidated/.lineage.json.old"):
        (memory_folder / name).write_text("mine")
    (memory_folder / ".begun.json.abcdefgh.hippo-unwritten").symlink_to(own / "diary.txt")
    (memory_folder / "consolidated/0123456789abcdef").symlink_to(own)
    before = names(tmp_path)
    with Memory(method=RAG).open(memory_folder) as opened:
        opened.forget("diary")
        opened.wake()
    with Memory(method=RAG).open(memory_folder):
        pass
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    "said",
    [*STRANGE, "Anna is here.", ["Anna is here."], [None], [Observation(None)], [{"text": "Anna is here."}]],  # type: ignore[arg-type]
    ids=lambda said: type(said).__name__,
)
def test_only_observations_are_told(memory, said):
    before = len(memory)
    assert "expected a" in one_line(lambda: list(memory.tell(said)))
    assert len(memory) == before
