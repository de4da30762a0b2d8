"""`hippo_core.Memory`: told, asked, forgotten and slept in a program, on hippo-tiny."""

import signal
import subprocess
import sys
import time

import pytest

from hippo_core import Memory
from hippo_core.errors import LabError
from hippo_core.live.memory import BLOCK
from hippo_core.retrieval import encoded
from hippo_core.training.consolidation import live
from hippo_core.training.consolidation.sleep import SleepRecipe
from tests.methods.asking import needs_minilm as needs_reader
from tests.training.consolidation.conftest import keep_little

SENTENCES = (
    "Anna left the bicycle at the station.",
    "Ben gave the lamp to Carl.",
    "Dora put the violin in the attic.",
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with Memory("hippo-tiny").open(tmp_path_factory.mktemp("memory")) as memory:
        memory.teach(SENTENCES, who="Anna", when="Monday", provenance="diary")
        yield memory


def test_an_answer_says_where_it_comes_from(memory):
    answer = memory.ask("Where did Anna leave the bicycle?")
    assert str(answer) == "station"
    [shown] = answer.traces
    assert (shown.text, shown.id, shown.who, shown.when, shown.provenance) == (SENTENCES[0], 1, "Anna", "Monday", "diary")
    assert shown.score == pytest.approx(sum(shown.terms.values()), abs=1e-5)
    assert {"grams", "key"} <= set(shown.terms)
    assert shown.shared == ("anna", "bicycle")
    assert answer.recall.traces[0].id == 1
    assert "#1 is first of 3" in answer.why
    assert {"recall", "answer", "total"} <= answer.ms.keys()
    assert answer.tokens["traces"] > 0


def test_the_answer_follows_what_is_stored(tmp_path):
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.teach("Anna left the bicycle at the museum.")
        assert str(memory.ask("Where did Anna leave the bicycle?")) == "museum"
        memory.teach("Anna left the violin at the station.")
        assert str(memory.ask("Where did Anna leave the violin?")) == "station"
        assert memory.forget(1) == 1
        assert str(memory.ask("Where did Anna leave the bicycle?")) != "museum"
        assert [trace.text for trace in memory.traces()] == ["Anna left the violin at the station."]


def test_a_folder_holds_everything_after_a_restart_and_numbers_are_not_given_again(tmp_path):
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.teach(SENTENCES[:2])
        memory.forget(2)
    with Memory("hippo-tiny").open(tmp_path) as memory:
        assert [taught.id for taught in memory.teach(SENTENCES[2])] == [3]
        best = memory.recall("Where is the violin?").traces[0]
        assert (best.id, best.text) == (3, SENTENCES[2])


def test_no_vectors_of_what_it_is_told_are_kept_beside_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(encoded, "home", lambda: tmp_path / "home")
    with Memory("hippo-tiny", settings={"encoder": "own"}).open(tmp_path / "memory") as memory:
        memory.teach([f"Anna has {number} lamps. Ben has {number} keys." for number in range(64)], provenance="diary")
        memory.recall("Who has 12 lamps?")
        memory.forget("diary")
    assert not (tmp_path / "home").exists()


def test_all_of_a_provenance_is_forgotten(tmp_path):
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.teach(SENTENCES[:2], provenance="leaflet")
        memory.teach(SENTENCES[2])
        assert memory.forget("leaflet") == 2
        assert len(memory) == 1
        with pytest.raises(LabError, match="nothing is stored of 'leaflet'; expected a provenance"):
            memory.forget("leaflet")
        memory.teach([SENTENCES[0], SENTENCES[0]], provenance="twice")
        memory.sleep()  # which joins what is said twice
        assert memory.forget("twice") == 2
        assert [trace.text for trace in memory.traces()] == [SENTENCES[2]]


def test_a_second_writer_is_told_so_and_a_reader_sees_what_is_written(tmp_path):
    with Memory("hippo-tiny").open(tmp_path) as writer, Memory("hippo-tiny") as reader:
        writer.teach(SENTENCES[0])
        with pytest.raises(LabError, match="another process or store object writes to"):
            Memory("hippo-tiny").open(tmp_path)
        reader.open(tmp_path, read_only=True)
        assert reader.recall("Who has the lamp?").traces[0].text == SENTENCES[0]
        writer.teach(SENTENCES[1])
        assert reader.recall("Who has the lamp?").traces[0].text == SENTENCES[1]
        with pytest.raises(LabError, match="read-only"):
            reader.teach(SENTENCES[2])


@pytest.mark.long
def test_what_was_taught_before_a_kill_is_there_in_whole_blocks(tmp_path):
    code = f"from hippo_core import Memory\nm = Memory('hippo-tiny', method='baselines/rag_bm25').open({str(tmp_path)!r})\n"
    code += "m.teach([f'Person {i} has {i} lamps.' for i in range(10**6)], progress=lambda done, of: print(done, flush=True))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        n_taught = [int(process.stdout.readline()) for _ in range(3)][-1]
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    with Memory("hippo-tiny", method="baselines/rag_bm25").open(tmp_path) as memory:
        assert len(memory) >= n_taught
        assert len(memory) % BLOCK == 0
        assert [taught.id for taught in memory.teach("Anna has a lamp.")] == [len(memory)]


def test_a_rag_needs_no_model_to_recall(tmp_path):
    with Memory("hippo-tiny", method="baselines/rag_bm25", settings={"k": 1}).open(tmp_path) as memory:
        memory.teach(SENTENCES)
        assert memory.recall("Who has the lamp?", k=1).traces[0].text == SENTENCES[1]
        assert "loaded" not in vars(memory._lm)
        assert str(memory.ask("Where did Dora put the violin?")) == "attic"


def test_a_setting_changes_what_is_recalled(tmp_path):
    with Memory("hippo-tiny", settings={"episodic.use_completion": "hopfield", "k": 2}).open(tmp_path) as memory:
        memory.teach(SENTENCES)
        answer = memory.ask("Where did Anna leave the bicycle?")
        assert len(answer.traces) == 2
        assert answer.recall.traces[0].rank_before == 1
        assert "hopfield" in answer.recall.traces[0].terms


def test_an_empty_store_control_answers_as_one_that_was_told_nothing():
    with Memory("hippo-tiny", settings={"control": "empty"}) as masked, Memory("hippo-tiny") as empty:
        masked.teach(SENTENCES)
        question = "Where did Anna leave the bicycle?"
        assert str(masked.ask(question)) == str(empty.ask(question))
        assert masked.ask(question).traces == ()
        assert masked.ask(question).why.endswith("None of them reached the model.")
        assert empty.ask(question).why == "Nothing is stored."


def test_a_sleep_rehearses_what_is_stored(memory):
    slept = memory.sleep()
    assert (slept.rehearsed, slept.cycles) == (3, 1)
    assert all(trace.uses > 0 for trace in memory.traces()) or slept.recalled < 3
    with Memory("hippo-tiny", method="baselines/rag_bm25") as rag, pytest.raises(LabError, match="has no replay"):
        rag.sleep()


class Quick(SleepRecipe):
    """A sleep that learns alone: what must not be lost takes most of a step."""

    lessons: int = 0
    texts: int = 0


def test_a_sleep_puts_what_is_stored_into_the_model_until_it_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "SleepRecipe", Quick)
    keep_little(monkeypatch, own=True)
    sentences = ["On Friday, Carla sold a guitar at the market.", "In May, Otto found a lamp at the school."]
    question, steps = "What did Carla sell at the market on Friday?", 20
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.teach(sentences)
        before = memory.ask(question, recall=False)
        assert not before.traces and "guitar" not in str(before)
        recalled = memory.ask(question)
        memory.sleep(consolidate="lora", steps=steps)
        asleep = memory.ask(question, recall=False)
        assert str(asleep) == "guitar" and not asleep.traces
        assert (before.origin, recalled.origin, asleep.origin) == ("model", "recall", "consolidation")
        assert memory.ask(question).origin == "recall and consolidation"
        slept = memory.consolidated
        assert slept and (slept.way, slept.steps, slept.sentences) == ("lora", steps, dict(enumerate(sentences, start=1)))
        with Memory(memory.language_model) as other:
            assert str(other.ask(question)) == str(before)
        with pytest.raises(InterruptedError) as stopped:
            memory.sleep(consolidate="lora", progress=_stop)
        assert memory.consolidated == slept
        assert str(memory.ask(question, recall=False)) == "guitar" and stopped.tb  # which holds the frames of the sleep
    with Memory("hippo-tiny").open(tmp_path, read_only=True) as again:
        assert str(again.ask(question, recall=False)) == "guitar"
        assert again.consolidated == slept
        with pytest.raises(LabError, match="open read-only"):
            again.wake()
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.forget(2)
        assert str(memory.ask(question, recall=False)) == str(before)
        assert not (tmp_path / "consolidated").exists()
        assert memory.consolidated is None
        with pytest.raises(LabError, match="unknown way"):
            memory.sleep(consolidate="surgery")


def test_a_memory_that_is_closed_in_mid_sleep_gives_its_folder_back(tmp_path):
    memory = Memory("hippo-tiny", method="baselines/rag_bm25").open(tmp_path)
    memory.teach(SENTENCES)
    learning = memory._consolidation.learn(memory.traces(), "sparse", 1)
    next(learning)
    with pytest.raises(LabError, match="hippo-tiny is busy: a sleep rehearses into it"):
        memory.close()
    learning.close()
    with Memory("hippo-tiny", method="baselines/rag_bm25").open(tmp_path) as again:
        assert len(again) == 3


def _stop(done, of):
    if done:
        raise InterruptedError


def test_a_gate_decides_and_says_why(tmp_path):
    with Memory("hippo-tiny", method="memory/hei_nw_gated", settings={"episodic.store.budget": 0.9}).open(tmp_path) as memory:
        first, again = memory.teach([SENTENCES[0], SENTENCES[0]])
        assert again.action in ("aggregate", "refuse")
        assert set(first.terms) == {"surprise", "novelty", "reward", "pin"}
        assert first.salience == pytest.approx(sum(first.terms.values()))
        pinned, plain = memory.teach(SENTENCES[1], pin=True)[0], memory.teach(SENTENCES[2])[0]
        assert pinned.terms["pin"] > plain.terms["pin"]
        for number in {trace.source for trace in memory.traces()}:  # the others are weighed again; at last there is none
            memory.forget(int(number))
        assert len(memory) == 0


def test_wrong_words_are_one_line_each(tmp_path):
    with pytest.raises(LabError, match="unknown model 'hippo-large'"):
        Memory("hippo-large")
    with pytest.raises(LabError, match="unknown preset"):
        Memory("hippo-tiny", method="memory/nothing")
    with Memory("hippo-tiny") as memory:
        with pytest.raises(LabError, match=r"text 2 of 2 is '  '; expected a sentence"):
            memory.teach([SENTENCES[0], "  "])
        assert len(memory) == 0
        with pytest.raises(LabError, match="does not fit into"):
            memory.teach("lamp " * 2000)
        with pytest.raises(LabError, match="expected a question"):
            memory.ask("")
    with Memory("hippo-tiny").open(tmp_path) as memory:
        memory.teach(SENTENCES)
    with pytest.raises(LabError, match="holds a store of hei_nw, this is memory"):
        Memory("hippo-tiny", method="baselines/rag_bm25").open(tmp_path)
    with pytest.raises(LabError, match="was written with another model or memory"):
        Memory("hippo-tiny", settings={"episodic.code.winners": 32}).open(tmp_path)
    with pytest.raises(LabError, match="there is no memory in"):
        Memory("hippo-tiny").open(tmp_path / "none", read_only=True)


def test_importing_the_library_brings_no_torch():
    code = "import sys, hippo_core; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_reader
def test_why_says_which_statement_the_answers_one_replaced(tmp_path):
    with Memory("hippo-tiny", settings={"encoder": "minilm"}).open(tmp_path) as memory:
        memory.teach(["Anna lives in Paris.", "Ben lives in Rome.", "Anna lives in Oslo."])
        answer = memory.ask("Where does Anna live?")
        assert str(answer) == "Oslo" and 'It replaced #1 "Anna lives in Paris."' in answer.why
        assert "replaced" not in memory.ask("Where does Ben live?").why
