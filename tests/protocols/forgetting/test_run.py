"""Phases: what is learnt from, that a seed alone learns the same, that a killed course goes on, and what each method keeps."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from hippo_core.discovery import members
from hippo_core.errors import LabError
from hippo_core.files import made_folder
from hippo_core.protocols.forgetting import learner, learners, run, transformer
from hippo_core.protocols.forgetting.checkpoint import read_phase
from hippo_core.protocols.forgetting.commands import app, examined
from hippo_core.protocols.forgetting.learners import forever
from hippo_core.protocols.forgetting.tasks import TaskBatch
from hippo_core.protocols.forgetting.transformer import PRESETS, TransformerShape, initial, load_shape, logits

UNTIMED = ["seconds", "seconds_to_99"]
TOKENS, AT = torch.randint(0, 100, (2, 12), generator=torch.Generator().manual_seed(0)), torch.tensor([[3, 7], [7, 7]])
LATER = torch.cat([TOKENS[:, :8], torch.full((2, 4), 5)], 1)  # other tokens behind all places that are asked


def rows_of(course):
    return pd.DataFrame(course.run()).drop(columns=UNTIMED)


def same(rows, other, tolerance=0.0):
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), other.reset_index(drop=True), rtol=tolerance, atol=tolerance)


def test_logits_at_a_place_know_nothing_of_later_tokens():
    shape, vector = PRESETS["small"], initial(PRESETS["small"], 3)
    result = logits(shape, vector, TOKENS, AT)
    assert torch.allclose(result, logits(shape, vector, LATER, AT), atol=1e-5)
    assert torch.allclose(result[1, 0], logits(shape, vector, TOKENS[1:, :8], AT[1:])[0, 0], atol=1e-5)
    assert not torch.allclose(result, logits(shape, vector, TOKENS.flip(1), AT), atol=1e-3)


def test_a_band_keeps_what_lies_near_the_diagonal_of_the_mlp():
    bands = TransformerShape(24, width=4, fc1=4, fc2=8).bands
    rows = ["".join(map(str, row)) for row in bands["up"].int().tolist()]
    assert rows[:7] == ["1000", "1000", "1100", "0100", "0100", "0100", "0110"]
    assert bands["down"].int().tolist()[1] == [1] * 9 + [0] * 7
    assert bands["up"].mean() < bands["down"].mean()


def test_a_band_as_wide_as_the_matrix_is_the_whole_model():
    bands = {"dense": {}, "wide": {"fc1": 1024, "fc2": 1024}, "fc1": {"fc1": 64}, "fc2": {"fc2": 64}}
    results = {name: logits(load_shape("small", **settings), initial(PRESETS["small"], 3), TOKENS, AT) for name, settings in bands.items()}
    assert torch.equal(results["dense"], results["wide"])
    assert not torch.allclose(results["dense"], results["fc1"], atol=1e-4) and not torch.allclose(results["fc1"], results["fc2"], atol=1e-4)


def test_rounded_products_are_nearly_those_of_float32():
    results = [logits(load_shape("small", bf16=bf16), initial(PRESETS["small"], 3), TOKENS, AT) for bf16 in (False, True)]
    assert results[1].dtype == torch.float32 and not torch.equal(*results)
    assert torch.allclose(*results, atol=0.01, rtol=0.02)


def test_a_sort_layer_mixes_the_last_places_and_no_later_ones():
    shape = load_shape("small", sort=2)
    vector = initial(shape, 3)
    assert len(vector) == len(initial(PRESETS["small"], 3)) + 2 * shape.layers
    hidden, two = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]), torch.zeros(2)
    share = 1 / (1 + math.exp(2))
    weight = 1 / (1 + math.exp(1 / math.sqrt(2)))  # of the place before, whose likeness is 0, beside its own, 1
    expected = [(1 - share) * 0 + share * weight, 1 - share + share * (1 - weight)]
    assert transformer._mixed(hidden, two, 2)[0, 1].tolist() == pytest.approx(expected)
    assert torch.equal(transformer._mixed(hidden, two, 1), hidden)
    result = logits(shape, vector, TOKENS, AT)
    assert torch.allclose(result, logits(shape, vector, LATER, AT), atol=1e-5)
    assert not torch.allclose(result, logits(load_shape("small", sort=4), vector, TOKENS, AT), atol=1e-4)


@pytest.mark.parametrize("method", ["replay", "lora", "generative"])
def test_models_in_step_learn_what_each_would_alone(course, method):
    in_step = rows_of(course(method=method, seed=7))
    for number, seed in enumerate((7, 8)):
        alone = rows_of(course(f"alone{number}", method=method, seed=seed, inits=1))
        mine = in_step[in_step["init"] == str(seed)]
        assert np.allclose(mine["loss"], alone["loss"], atol=1e-3), method


class Killed(Exception):
    pass


WHEN = [  # in the first phase, after it, in the second
    *(("replay", {"policy": "spaced"}, 5), ("ewc", {"optimizer": "kept"}, 5), ("none", {}, 10)),
    *(("replay", {"policy": "spaced"}, 13), ("lora", {}, 13), ("forever", {}, 13), ("generative", {}, 13)),
]


@pytest.mark.parametrize(("method", "settings", "when"), WHEN)
def test_a_killed_course_goes_on_as_if_nothing_had_happened(course, monkeypatch, method, settings, when):
    monkeypatch.setattr(run, "EVERY", 2)
    monkeypatch.setattr(run, "SAVED_EVERY", 0.0)
    monkeypatch.setattr(run, "LEVELS", (4.5,))  # nats, to which the training loss falls in these few steps
    settings = {"method": method, **settings}
    unbroken = rows_of(course("whole", **settings))
    assert unbroken["loss_at_4.5"].notna().any()
    killed, steps = course("killed", **settings), []
    step = killed.step

    def until(*arguments):
        steps.append(0)
        if len(steps) > when:
            raise Killed
        step(*arguments)

    monkeypatch.setattr(killed, "step", until)
    with pytest.raises(Killed):
        killed.run()
    again, left = course("killed", **settings), []
    step_again = again.step
    monkeypatch.setattr(again, "step", lambda *arguments: (left.append(0), step_again(*arguments)))
    same(unbroken, rows_of(again))
    assert len(left) == 20 - when + when % 2


def test_replay_of_nothing_is_no_replay(course):
    for method in ("replay", "forever"):
        same(rows_of(course(f"none {method}", method="none")), rows_of(course(f"nothing {method}", method=method, stored=0.0)))
    assert not np.allclose(rows_of(course("some", method="replay"))["loss"], rows_of(course("none", method="none"))["loss"])


def test_replay_draws_from_earlier_tasks_training_items_alone(course):
    here = course(method="replay", stored=0.1, rehearsed=30)
    assert here.method.more(0, 1, [0, 1]) is None
    here.method.end(0)
    drawn = here.method.more(1, 1, [0, 1])
    train = set(here.corpus.items(0, "train").tolist())
    for row in drawn.tolist():
        stored = [item for item in row if item >= 0]
        assert len(set(stored)) == len(stored) == 26 and set(stored) <= train  # a tenth of 256
    assert drawn[0].tolist() != drawn[1].tolist()


def test_the_store_is_rehearsed_when_the_weights_have_moved_so_many_days(course, monkeypatch):
    monkeypatch.setattr(forever, "CYCLE", 2)
    here, rehearsed = course(method="forever", stored=0.1, inits=1), []
    here.method.end(0)
    here.method.begin(1)
    for step in range(1, 20):
        more = here.method.more(1, step, [0])
        rehearsed.append(more is not None and bool((more >= 0).any()))
        with torch.no_grad():  # a move of one a step: two are a day; none from the tenth on
            here.learner.learnt[0][0] += float(step < 10)
    days = [1, 2, 4]  # of two steps: after 2, 4 and 8
    assert [step for step, drawn in enumerate(rehearsed, 1) if drawn] == [2 * day + 1 + more for day in days for more in (0, 1)]


def test_what_is_written_of_a_task_has_its_cue_and_the_models_own_answers(course):
    here = course(method="generative", tasks=["majority", "add"], inits=2, rehearsed=3, model="tiny")
    here.method.begin(0)
    before = here.learner.stacked([0, 1])
    for task in (0, 1):
        known = here.corpus.tasks[task]
        written = here.method.written(task, 1)
        assert (written[..., known.cue_at] == known.cue).all() and not (written[0] == written[1]).all()
        at = torch.full((2, 64, 1), known.first)
        asked = TaskBatch(written[..., : known.first + 1], at, written[..., known.first + 1, None], torch.ones(1))
        assert here.learner.scored(before, asked).right.all()
    here.method.end(0)
    here.method.begin(1)
    here.method.notes["step"] = 5
    batch = here.method._drawn(1, [1])
    rows = {tuple(row) for row in here.method.tensors["written.0"][1][:, : batch.tokens.shape[-1]].tolist()}
    assert {tuple(row) for row in batch.tokens[0].tolist()} <= rows and batch.tokens.shape[:2] == (1, 3)
    assert (batch.at == here.corpus.tasks[0].first).all()


def test_prompts_are_learnt_so_that_they_can_be_written(course):
    here = course(method="generative", tasks=["copy"], model="small", steps=80, inits=1, rate=0.003, batch=32, early_stop=False)
    here.run()
    written = {tuple(row[:10]) for row in here.method.written(0, 0)[0].tolist()}
    real = {tuple(row[:10]) for row in here.corpus.tokens.tolist()}
    assert written <= real and len(written) > 30  # of 64


def test_what_is_drawn_goes_once_through_the_training_items(course):
    here = course(tasks=["copy"], batch=16)
    drawn = np.concatenate([here.drawn(0, 0, step) for step in range(1, 9)])
    assert sorted(drawn) == sorted(here.corpus.items(0, "train"))
    assert sorted(np.concatenate([here.drawn(0, 0, step) for step in range(9, 17)])) == sorted(drawn)
    assert here.drawn(0, 0, 1).tolist() != here.drawn(1, 0, 1).tolist()


def test_joint_learns_all_tasks_so_far_in_equal_parts(course):
    here = course(method="joint")
    items = here.drawn(0, 1, 1)
    assert [int((items < 512).sum()), int((items >= 512).sum())] == [4, 4]


def test_lora_answers_an_earlier_task_as_it_did_before(course):
    rows = rows_of(course(method="lora", tasks=["majority", "copy", "reverse"]))
    for task, own in (("majority", 1), ("copy", 2)):
        mine = rows[(rows["task"] == task) & (rows["phase"] >= own)]
        assert mine.groupby("init")["loss"].nunique().max() == 1


@pytest.mark.parametrize("method", ["l2", "ewc", "lwf"])
def test_what_holds_back_without_strength_is_nothing(course, method):
    plain = rows_of(course("plain"))
    same(plain, rows_of(course("weak", method=method, strength=0.0)), 1e-4)
    constrained = rows_of(course("held", method=method, strength=1e6))
    assert not np.allclose(plain["loss"], constrained["loss"], atol=1e-3)


@pytest.fixture
def lwf(course):
    """LwF that has learnt two tasks and then changed a little; what it adds for 8 items of the third, and under which cues these are
    asked."""
    here = course(method="lwf", tasks=["majority", "copy", "reverse"], inits=1)
    vectors = here.method.vectors(1)
    here.method.tensors["before"] = vectors + 0.01 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    items, cues = torch.from_numpy(here.corpus.items(2, "train")[:8])[None], []

    def penalty():
        return here.method.penalty(vectors, 2, items, [0]).item()

    def asked(vectors, batch):
        cues.append(batch.tokens[..., here.corpus.tasks[2].cue_at].flatten().tolist())
        return type(here.learner).logits(here.learner, vectors, batch)

    here.learner.logits = asked
    return SimpleNamespace(penalty=penalty, cues=cues, tasks=here.corpus.tasks)


def test_lwf_asks_new_items_as_each_earlier_task_equally_often(lwf):
    assert lwf.penalty() > 0
    majority, copied, reversed_ = (task.cue for task in lwf.tasks)
    assert all((cues.count(majority), cues.count(copied), cues.count(reversed_)) == (4, 4, 0) for cues in lwf.cues)


def test_lwf_pulls_as_much_at_a_high_temperature_as_at_a_higher_one(lwf, monkeypatch):
    """Its gradients shrink as 1 / temperature ** 2 but for the factor (Hinton et al. 2015, arXiv 1503.02531, section 2)."""
    penalties = []
    for temperature in (10.0, 20.0):
        monkeypatch.setattr("hippo_core.protocols.forgetting.learners.lwf.TEMPERATURE", temperature)
        penalties.append(lwf.penalty())
    assert penalties[0] == pytest.approx(penalties[1], rel=0.1)


def test_a_task_is_learnt_and_the_learning_stops(course):
    here = course(tasks=["majority"], model="small", steps=100, inits=1, rate=0.003, batch=32)
    last = rows_of(here).iloc[-1]
    assert last["accuracy"] > 0.9 and last["steps_to_99"] == last["taken"] < 100
    lines = [json.loads(line) for line in here.curve.read_text().splitlines()]
    assert lines[-1]["majority"]["right"][0] >= run.LEARNT > max(line["majority"]["right"][0] for line in lines[:-1])
    index = next(index for index, line in enumerate(lines) if line["training"][0] <= 0.5)
    ends = sorted(lines[number]["majority"]["nats"][0] for number in (index - 1, index))
    assert lines[0]["step"] == 0 and ends[0] <= last["loss_at_0.5"] <= ends[1]


def test_the_split_that_is_asked_for_is_examined(course):
    here = course(tasks=["copy"])
    splits = [set(here.corpus.items(0, name).tolist()) for name in ("val", "test")]
    assert not splits[0] & splits[1]
    val, test = (rows_of(course(name, tasks=["copy"], split=name))["loss"] for name in ("val", "test"))
    assert not np.allclose(val, test)


def test_a_checkpoint_of_another_shape_and_one_that_is_damaged(course):
    here = course(inits=1)
    made_folder(here.folder)
    here.curve.write_text("{}\n")
    here.keep(here.arrived(0, []))
    with pytest.raises(LabError, match=r"holds 1 models of \d+ weights, expected 2 models of"):
        course().run()
    with pytest.raises(LabError, match=r"holds 1 models of \d+ weights, expected 1 models of 413312"):
        course(inits=1, model="formal").run()
    content = here.file.read_bytes()
    for damaged in (content[:100], content[:-1] + bytes([content[-1] ^ 1]), content.replace(b"phase", b"phare", 1)):
        here.file.write_bytes(damaged)
        with pytest.raises(LabError, match="is damaged"):
            course(inits=1).run()


def test_a_checkpoint_of_a_phase_answers_as_its_models_did(course):
    """An update a task from the second phase on; also by the command, of a task that they never learnt."""
    here = course(method="lora", checkpoint_mb=1)
    rows = pd.DataFrame(here.run()).set_index(["phase", "task", "init"]).sort_index()
    for number in (1, 2):
        phase = read_phase(here.folder / f"phase_{number}.safetensors")
        assert (phase.phase, phase.tasks) == (number, ["majority", "copy"])
        assert len(phase.weights) == number
        for task in phase.tasks:
            name, items, nats, right = examined(phase, task, "val")
            assert (name, items) == (task, len(here.corpus.items(0 if task == "majority" else 1, "val")))
            assert nats == pytest.approx(rows.loc[number, task]["loss"].tolist(), abs=1e-5)
            assert right == rows.loc[number, task]["accuracy"].tolist()
    page = CliRunner().invoke(app, [str(here.folder), "parity", "--split", "val"]).output
    assert "| 1 | majority | parity | 64 |" in page and "| 2 | copy | parity | 64 |" in page
    with pytest.raises(LabError, match="task squares has the token 104"):
        examined(replace(phase, shape=replace(phase.shape, vocabulary=104)), "squares", "val")


def test_the_latest_checkpoints_of_phases_are_kept_and_what_is_none_is_one_line(course, capsys):
    here = course()
    here.parameters = here.parameters.model_copy(update={"checkpoint_mb": 0})
    here.keep_phase(1)
    assert not here.folder.exists()
    here.parameters, said = here.parameters.model_copy(update={"checkpoint_mb": 1}), []
    here.say = said.append
    here.learner.learn([torch.zeros(80_000) for _ in here.learner.seeds])  # .64 MB a phase
    for phase in (1, 2):
        made_folder(here.folder)
        here.keep_phase(phase)
    assert [path.name for path in here.folder.glob("phase_*")] == ["phase_2.safetensors"] and "phase_1.safetensors is not kept" in said[0]
    (other := here.folder / "checkpoint.safetensors").write_bytes(b"none")
    with pytest.raises(LabError, match=r"expected a checkpoint of a phase, phase_N\.safetensors"):
        read_phase(other)


@pytest.mark.parametrize("damaged", [b"", b'{"phase": 0', b'{"phase": 1}\n'])
def test_a_curve_that_is_damaged_is_not_gone_on_with(course, damaged):
    here = course(inits=1)
    made_folder(here.folder)
    here.curve.write_bytes(b'{"phase": 0}\n')
    here.keep(here.arrived(0, []))
    here.curve.write_bytes(damaged)
    with pytest.raises(LabError, match=r"curve\.jsonl is damaged: it is not what stood there"):
        course(inits=1).run()


def test_every_method_goes_through_the_phases(course):
    for method in members(learners.__name__):
        rows = rows_of(course(method, method=method, steps=2, inits=1))
        assert len(rows) == 6 and rows["loss"].notna().all(), method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "grokking", "tasks": ["copy"]}, "task copy has sequences of 19 tokens, preset grokking takes 8; use model=formal"),
        ({"batch": 129}, "a batch of 129 is larger than the 128 training items of task copy"),
        ({"tasks": ["copy"], "subset": 0.05}, "a batch of 8 is larger than the 6 training items of task copy"),
        ({"model": "hippo-tiny"}, "unknown model of this experiment 'hippo-tiny'; legal: formal, grokking, small, tiny"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(course, settings, message):
    with pytest.raises(LabError, match=message):
        course(**settings)


def test_a_person_who_waits_sees_a_bar(course, capsys):
    going = course(bar=True)
    going.run()
    assert "20/20" in capsys.readouterr().err


def test_only_passes_that_are_learnt_from_are_translated(course, monkeypatch):
    passes = []
    monkeypatch.setattr(torch, "compile", lambda run, fullgraph: lambda *given: passes.append(torch.is_grad_enabled()) or run(*given))
    plain, translated = course("plain").run(), course("translated", compiled=True).run()
    assert passes == [True] * 20
    assert [row["accuracy"] for row in plain] == [row["accuracy"] for row in translated]


def test_translating_needs_a_compiler(course, monkeypatch):
    monkeypatch.setattr(learner, "which", lambda name: None)
    with pytest.raises(LabError, match=r"C\+\+ compiler"):
        course(compiled=True)
