"""The Ask panel: events in, state out; every widget is driven without a browser."""

import asyncio
import re
from datetime import UTC, datetime

import pytest

from hippo_core.dashboard.ask import AskPanel
from hippo_core.dashboard.controls import Controls
from hippo_core.methods.presets import load_preset, preset_names


def words(html):
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.S).split())


@pytest.fixture
def panel():
    panel = AskPanel()
    yield panel
    panel.close()


def test_a_question_is_answered_and_a_flip_shows_both_answers(panel):
    panel.ask.click()
    assert words(panel.answer.value).startswith("station")
    panel.controls.by_key["control"].value = "empty"
    assert words(panel.answer.value).startswith("unknown before: station")
    assert "left" in words(panel.answer.value)
    panel.controls.by_key["control"].value = "none"
    assert "entered" in words(panel.answer.value)
    panel.controls.by_key["delivery"].value = "text"
    assert words(panel.answer.value).startswith("station before: the same")
    panel.controls.by_key["episodic.use_completion"].value = "hopfield"
    assert "hopfield" in panel.answer.value
    assert "Winning units" in panel.answer.value
    assert "Energy of the cue" in panel.answer.value


def test_what_is_typed_is_told(panel):
    panel.sentences.value = "Anna left the bicycle at the museum."
    panel.teach.click()
    assert words(panel.status.value) == "1 sentences are told; ask."
    panel.ask.click()
    assert words(panel.answer.value).startswith("museum")


def test_a_file_is_told(panel):
    content = {"content": b"Ben gave the lamp to Dora.", "size": 26, "last_modified": datetime.now(UTC)}
    panel.file.value = ({"name": "a.txt", "type": "text/plain", **content},)
    panel.question.value = "Who did Ben give the lamp to?"
    assert "Dora" in panel.answer.value


def test_a_suite_brings_its_worlds_questions_and_right_answers(panel):
    panel.source.value = "episodic"
    assert len(panel.world.options) >= 2
    assert panel.question.value == panel.question.options[0]
    assert re.search(r"right|wrong, expected", words(panel.answer.value))
    panel.controls.by_key["control"].value = "oracle"
    panel.count.value = 10
    panel.ask_all.click()
    assert "10 questions in" in words(panel.all.value)


def test_a_gate_shows_what_it_decided(panel):
    panel.preset.value = "memory/hei_nw_gated"
    panel.teach.click()
    assert "What the gate decided" in panel.gate.value
    assert re.search(r"written|refused", panel.gate.value)


def test_mistakes_are_one_line_and_nothing_is_lost(panel):
    panel.ask.click()
    before = panel.answer.value
    for do, says in (
        (lambda: setattr(panel.controls.by_key["control"], "value", "oracle"), "right facts"),
        (lambda: panel.ask_all.click(), "choose a suite"),
        (lambda: setattr(panel.controls.by_key["episodic.code.channels"], "value", "colours"), "channels"),
        (lambda: setattr(panel.question, "value", "  "), "type a question"),
    ):
        do()
        assert says in words(panel.status.value), says
    assert panel.answer.value == before
    assert panel.controls.by_key["episodic.code.channels"].value == "" and "episodic.code.channels" not in panel.setup.settings
    panel.sentences.value = ""
    panel.teach.click()
    assert "there is nothing to teach" in words(panel.status.value)
    assert "Traceback" not in panel.html()


def test_reproduce_and_as_preset(panel):
    panel.ask.click()
    panel.controls.by_key["k"].value = 2
    panel.reproduce.click()
    assert "settings={&#39;k&#39;: 2}" in panel.lines.value
    panel.reset.click()
    assert panel.setup.settings == {}
    assert panel.controls.by_key["k"].value == 1
    assert "settings=" not in panel.lines.value  # they are of what is shown


def test_a_flip_meanwhile_is_answered_when_the_work_ends_and_cancel_is_heard(panel):
    async def script():
        panel.preset.value = "baselines/rag_bm25"
        panel.sentences.value = "\n".join(f"Person {number} has lamp {number}." for number in range(400))
        panel.question.value = "Who has lamp 7?"
        await asyncio.sleep(0)
        panel.controls.by_key["k"].value = 5
        panel.ask.click()
        await asyncio.wait_for(idle(panel), 60)
        assert len(panel.flip.now.traces) == 5
        panel.sentences.value += "\nOne more."
        panel.teach.click()
        await asyncio.sleep(0)
        panel.cancel.click()
        await asyncio.wait_for(idle(panel), 60)
        assert "cancelled" in panel.status.value

    async def idle(panel):
        while panel.turns.busy:
            await asyncio.sleep(0.005)

    asyncio.run(script())


def test_the_state_is_kept_as_html_of_its_own(panel):
    kept = []
    panel._changed = kept.append
    panel.ask.click()
    assert "station" in words(kept[-1])
    assert "Anna left the bicycle" in words(kept[-1])
    assert "http" not in re.sub(r"http://www.w3.org\S*", "", kept[-1])


@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith(("memory/", "baselines/rag"))])
def test_every_method_gets_a_control_for_each_of_its_settings(name):
    settings = load_preset(name).settings
    controls = Controls(settings, lambda key, value: None)
    mappings = ("parts", "trust")  # of a composite, by the names of its parts
    plain = {key for key in load_preset(name).of_step("test") if key.split(".")[0] not in mappings}
    assert set(controls.by_key) == plain
    controls.show(load_preset(name).of_step("test"))


def test_what_a_control_holds_is_what_the_setting_takes():
    changed = {}
    controls = Controls(load_preset("memory/hei_nw").settings, changed.__setitem__)
    controls.by_key["episodic.code.channels"].value = "grams, key"
    controls.by_key["episodic.gate.tau"].value = "0.5"
    controls.by_key["replay.rate"].value = 0.5
    controls.by_key["episodic.use_gate"].value = True
    assert changed == {"episodic.code.channels": ["grams", "key"], "episodic.gate.tau": 0.5, "replay.rate": 0.5, "episodic.use_gate": True}
    assert load_preset("memory/hei_nw", changed).settings.episodic.gate.tau == 0.5
