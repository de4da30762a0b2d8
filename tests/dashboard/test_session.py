"""What the Ask panel works with: what is stored anew and what is not, the same numbers as a run, and lines that reproduce it."""

import subprocess
import sys
from inspect import signature

import pandas as pd
import pytest

from hippo_core.dashboard.session import Session, Setup, command, own_sentences, paired, python, scenes_of, upload
from hippo_core.errors import LabError
from hippo_core.live.memory import OpenWorld
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions import run
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds

SENTENCES = "Anna left the bicycle at the station.\n\n  Ben gave the lamp to Carl.\n"
QUESTION = "Where did Anna leave the bicycle?"


@pytest.fixture(scope="module")
def session():
    session = Session()
    yield session
    session.close()


def test_a_setting_of_the_recall_asks_the_same_store_and_one_of_the_key_a_new_one():
    setup = Setup()
    assert setup.changed("episodic.use_completion", "hopfield").stored == setup.stored
    assert setup.changed("delivery", "text").stored == setup.stored
    assert setup.changed("episodic.use_sparsity", False).stored != setup.stored
    assert Setup(preset="baselines/rag_bm25").stored != setup.stored


def test_a_setting_that_is_as_the_preset_has_it_is_none():
    assert Setup().changed("k", 3).changed("k", 1) == Setup()
    with pytest.raises(LabError, match="k"):
        _ = Setup().changed("k", 0).loaded


def test_the_answer_follows_the_sentences_and_the_switch(session):
    assert str(session.ask(own_sentences(SENTENCES), Setup(), QUESTION)) == "station"
    assert str(session.ask(own_sentences(SENTENCES.replace("station", "museum")), Setup(), QUESTION)) == "museum"
    empty = session.ask(own_sentences(SENTENCES), Setup().changed("control", "empty"), QUESTION)
    assert (str(empty), empty.traces) == ("unknown", ())


def test_an_answer_about_ones_own_sentences_has_the_room_of_a_live_memory(session, monkeypatch):
    budgets, answered = [], OpenWorld.ask
    monkeypatch.setattr(
        OpenWorld, "ask", lambda world, question, tokens, *more: budgets.append(tokens) or answered(world, question, tokens, *more)
    )
    session.ask(own_sentences(SENTENCES), Setup(), QUESTION)
    [scene, *_] = scenes_of("episodic", 5)
    session.ask(scene, Setup(), QUESTION)
    assert budgets == [signature(answered).parameters["tokens"].default, get_suite("episodic").answer_budget]


def test_all_questions_give_the_numbers_of_a_run(session, tmp_path):
    suite, drawn = get_suite("episodic"), list(worlds("episodic", "default", 20))
    scenes = scenes_of("episodic", 20)
    rows = list(session.ask_all(scenes, Setup()))
    before = list(session.ask_all(scenes, Setup().changed("control", "empty")))
    preset = load_preset("memory/hei_nw")
    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec

    method = preset.method(load(load_spec("hippo-tiny")), preset.settings)
    run.teach(method, suite, drawn, [], tmp_path, "t")
    [store] = tmp_path.rglob("traces.sqlite")
    expected = run.test(method, suite, drawn, "delayed", {"": store})
    assert [row["pred"] for row in rows] == expected["pred"].tolist()
    assert [row["score"] for row in rows] == expected["score"].tolist()
    assert [float(row["found"]) for row in rows] == expected["found"].tolist()
    result, differing = paired(rows, before)
    assert result.mean_a == pytest.approx(expected["score"].mean())
    assert result.n == 20
    assert set(differing["item_id"]) == {a["item_id"] for a, b in zip(rows, before, strict=True) if a["score"] != b["score"]}
    assert isinstance(differing, pd.DataFrame)


def test_controls_that_read_labels_need_a_world(session):
    scene = own_sentences(SENTENCES)
    for control, words in (("oracle", "right facts"), ("shuffled", "second world")):
        with pytest.raises(LabError, match=words):
            session.ask(scene, Setup().changed("control", control), QUESTION)
    world = scenes_of("episodic", 20)[0]
    item = world.world.items[0]
    shown = session.ask(world, Setup().changed("control", "oracle"), item.question, item).traces
    assert tuple(str(trace.id) for trace in shown) == world.gold(item)
    other = session.ask(world, Setup().changed("control", "shuffled"), item.question, item).traces
    assert not {trace.text for trace in other} & {fact.text for fact in world.world.facts}


def test_a_scene_that_is_left_halfway_keeps_nothing(session):
    scene = own_sentences("\n".join(f"Person {number} has a lamp." for number in range(200)))
    teaching = session.teach(scene, Setup(preset="baselines/rag_bm25"))
    assert next(teaching) < 200
    teaching.close()
    assert not [key for key in session._memories if key[0] == f"{scene.name} {hash(scene.observations)}"]


def test_the_python_lines_give_the_same_answer(session):
    scene, setup = own_sentences(SENTENCES), Setup().changed("episodic.use_completion", "hopfield")
    lines = python(scene, setup, QUESTION)
    printed = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout.splitlines()
    answer = session.ask(scene, setup, QUESTION)
    assert printed[0] == str(answer)
    assert printed[1] == answer.why


def test_the_command_names_suite_preset_and_changed_settings():
    scene = scenes_of("episodic", 5)[0]
    words = command(scene, Setup().changed("episodic.use_completion", "hopfield"), 5)
    assert words.endswith("run memory suite=episodic preset=memory/hei_nw model=hippo-tiny profile=default n=5 seed=1337 "
                          "overrides='[episodic.use_completion=hopfield]'")  # fmt: skip
    assert "run answer" in command(scene, Setup(preset="baselines/rag_bm25"), 5)


def test_a_file_is_text_and_not_too_large():
    assert upload("a.txt", "\ufeffAnna.".encode()) == "Anna."
    with pytest.raises(LabError, match="no UTF-8 text"):
        upload("a.bin", b"\xff\xfe\x00")
    with pytest.raises(LabError, match="expected at most"):
        upload("a.txt", b"a" * 100, most=10)
