"""The section Sleep of the Ask panel, driven without a browser: a sleep, its stop, its state, and what it brought."""

import asyncio
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from hippo_core.dashboard.ask import AskPanel
from hippo_core.dashboard.session import Setup, command, own_sentences, python
from hippo_core.errors import LabError
from hippo_core.files import seal, write_sealed
from hippo_core.training.consolidation.lineage import LINEAGE, read_lineage
from tests.dashboard.test_ask import words
from tests.training.consolidation.conftest import keep_little

SENTENCES = "On Monday, Ben sold a lamp at the market.\nIn May, Otto found a guitar at the school."
QUESTION = "What did Ben sell at the market on Monday?"
STEPS = 2


@pytest.fixture(scope="module")
def panel():
    panel = AskPanel()
    panel.sentences.value, panel.question.value = SENTENCES, QUESTION
    panel.sleep.update_rule.value, panel.sleep.steps.value = "lora", STEPS
    with pytest.MonkeyPatch.context() as patch:
        keep_little(patch, own=True)
        panel.sleep.sleep.click()
        yield panel
    panel.close()


def test_a_sleep_says_what_it_rehearsed_and_what_it_brought(panel):
    assert "2 of 2 sentences rehearsed into the model" in words(panel.sleep.state.value)
    assert f"by lora, {STEPS} steps" in words(panel.sleep.state.value)
    [uplift] = panel.sleep.uplifts
    assert (str(uplift.memory), str(uplift.before)) == ("lamp", "unknown")
    assert [answer.consolidated for answer in (uplift.memory, uplift.before, uplift.after)] == [False, False, True]
    assert f"{QUESTION} lamp unknown {uplift.after}" in words(panel.sleep.gains.value)
    assert "from memory, and from what sleep put into the model" in words(panel.answer.value)
    assert words(panel.sleep.gains.value) in words(panel.html())


@contextmanager
def scaled_consolidation(panel, factor):
    """Within the block, what the panel's model has learnt is so many times as strong."""
    [tensors], [lineage] = (list(Path(panel.session._folder.name).rglob(name)) for name in ("*.safetensors", LINEAGE))
    tensors_of_sleep, made = load_file(tensors), read_lineage(lineage.parent)

    def write(values):
        save_file(values, tensors)
        write_sealed(lineage, made | {"files": made["files"] | {tensors.name: seal(tensors)}})

    write({name: factor * tensor for name, tensor in tensors_of_sleep.items()})
    try:
        yield
    finally:
        write(tensors_of_sleep)


def test_with_the_memory_off_the_model_that_slept_answers(panel):
    with scaled_consolidation(panel, 300):
        panel.sleep.off.value = True
        assert re.search("^(?!unknown).*from what sleep put into the model", words(panel.answer.value))
        unchanged = panel.session.uplift(panel.scene, panel.setup, QUESTION)
        assert (str(unchanged.memory), str(unchanged.before)) == ("lamp", "unknown")
    panel.ask.click()
    [uplift] = panel.sleep.uplifts
    assert re.search(f"^{uplift.after} .*from what sleep put into the model", words(panel.answer.value))
    assert "The memory is off" in words(panel.answer.value)
    panel.reproduce.click()
    assert f"memory.sleep(consolidate=&#39;lora&#39;, steps={STEPS})" in panel.lines.value
    assert "recall=False" in panel.lines.value
    panel.sentences.value = ""
    panel.ask.click()
    assert words(panel.answer.value).startswith(str(uplift.after))
    panel.sentences.value, panel.sleep.off.value = SENTENCES, False
    assert "from memory, and" in words(panel.answer.value)


def test_a_sentence_that_is_told_later_is_not_among_those_rehearsed(panel):
    panel.sentences.value = SENTENCES.splitlines()[0] + "\nIn June, Carla lost a coin at the park."
    state = words(panel.sleep.state.value)
    assert "1 of 2 sentences" in state
    assert "– In June, Carla lost a coin at the park." in state
    assert "In May, Otto found a guitar at the school. no longer told" in state
    panel.sentences.value = SENTENCES


def test_a_sleep_that_is_stopped_or_fails_leaves_the_model_as_it_was(panel):
    [before], state = panel.sleep.uplifts, panel.sleep.state.value

    async def stopped():
        panel.sleep.update_rule.value, panel.sleep.steps.value = "sparse", 500
        panel.sleep.sleep.click()
        while "asleep: step" not in panel.status.value:
            await asyncio.sleep(0.002)
        assert panel.sleep.sleep.disabled
        panel.cancel.click()
        while panel.turns.busy:
            await asyncio.sleep(0.002)

    asyncio.run(stopped())
    assert "cancelled" in words(panel.status.value)
    assert not panel.sleep.sleep.disabled
    for text, says in (("", "nothing to sleep on"), ("so it is", "none of 1 traces says anything")):
        panel.sentences.value = text
        panel.sleep.sleep.click()
        assert says in words(panel.status.value)
    panel.sentences.value = SENTENCES
    assert panel.sleep.state.value == state
    after = panel.session.uplift(panel.scene, panel.setup, QUESTION)
    for name in ("memory", "before", "after"):
        assert str(getattr(after, name)) == str(getattr(before, name))


def test_what_sleep_brought_is_forgotten(panel):
    panel.sleep.off.value = True
    panel.sleep.wake.click()
    assert re.search("^unknown .*from the model alone", words(panel.answer.value))
    assert "has not slept" in words(panel.sleep.state.value)
    assert panel.sleep.gains.value == panel.sleep.html() == ""


def test_the_lines_that_do_the_same_say_that_the_memory_is_off(panel):
    setup = Setup(recall=False)
    assert "recall=False" in python(own_sentences(SENTENCES), setup, QUESTION)
    assert "memory off" in command(own_sentences(SENTENCES), setup, 5)
    with pytest.raises(LabError, match="unknown way"):
        list(panel.session.sleep(own_sentences(SENTENCES), setup, "surgery", 1))
