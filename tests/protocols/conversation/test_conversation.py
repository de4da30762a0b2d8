"""What rows of conversations come to: means, groups, pairs with corrected p, figures; and what a cell may be told."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hippo_core.errors import LabError
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.conversation import protocol, run
from hippo_core.protocols.conversation.commands import app
from hippo_core.protocols.conversation.generator import generate
from hippo_core.protocols.conversation.lines import write_lines
from hippo_core.protocols.conversation.parameters import ConversationParameters
from hippo_core.protocols.conversation.phases import KEY, RAW, SCORED
from hippo_core.protocols.conversation.report import comparisons, in_words, sections
from hippo_core.protocols.conversation.run import DIALOGUES
from hippo_core.protocols.conversation.table import COLUMNS, by_technique
from hippo_core.results.criteria.tables import TableRows

RIGHT = {"oracle": 1.0, "none": 0.0, "recency": 0.5, "random": 0.25, "bm25": 0.75}


@pytest.fixture
def rows():
    known = {
        "salience": "high",
        "kind": "fact",
        "category": "identity",
        "key": "fact",
        "turns": 40,
        "presence": 1.0,
        "tokens": 128.0,
        "ms": 1.0,
    }
    lines = []
    for technique, dialogue, number in product(RIGHT, range(12), range(4)):
        line = dict.fromkeys(COLUMNS, np.nan) | known | {"technique": technique, "dialogue": f"d{dialogue}", "index_ms": 2.0}
        line["question"], line["budget"] = f"d{dialogue}/{number}", "full" if technique == "none" else "128"
        line["entry"] = f"{line['question']}/{technique}/{line['budget']}"
        line["position"], line["distance"] = ("early", "middle", "recent", "recent")[number], 35.0 - 10 * number
        line["em"] = float((number + dialogue) % 4 < round(4 * RIGHT[technique]))
        lines.append(line)
    return pd.DataFrame(lines)[list(COLUMNS)]


def test_means_by_technique(rows):
    means = {line["technique"]: line for line in by_technique(rows)}
    assert {name: line["em"]["mean"] for name, line in means.items()} == RIGHT
    assert means["bm25"]["em"]["n_worlds"] == 12 and means["bm25"]["hit_1"]["mean"] is None
    assert "128 tokens oracle" not in in_words("m", by_technique(rows)) and "128 tokens bm25 0.75" in in_words("m", by_technique(rows))


def test_pairs_are_corrected_over_all_of_them(rows):
    table = comparisons(rows).set_index(["technique", "against"])
    assert set(table.index) == {("recency", "random"), ("bm25", "random"), ("bm25", "recency")}
    assert table.loc[("bm25", "recency"), "difference"] == 0.25
    assert (table["holm"] >= table["p"]).all() and (table["bonferroni"] >= table["holm"]).all()
    assert table["bonferroni"].tolist() == [min(1.0, 3 * p) for p in table["p"]]


def test_sections_have_tables_and_figures(rows):
    table = TableRows("conversation", "answer", "entry", "dialogue", rows.assign(model="m", seed=1, record="r"), ("em",))
    by_title = {section.title: section for section in sections([table])}
    assert by_title["Techniques"].table["exact match"].tolist()[:2] == ["0.00", "1.00"]
    assert by_title["What is answered, by tokens"].figure and by_title["Lost in the middle"].figure
    early = by_title["By position"].table.set_index("technique").loc["recency", "early"]
    assert early.startswith("0.50")
    assert {"p, Holm", "p, Bonferroni", "d", "needed for 80% power"} <= set(by_title["Which differences are shown"].table)
    twice = TableRows("conversation", "answer", "entry", "dialogue", pd.concat([table.rows, table.rows]), ("em",))
    assert "48 questions about 12 dialogues" in sections([twice])[0].sentence


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"techniques": ["bm52"]}, "unknown technique 'bm52'"),
        ({"techniques": ["bm25", "bm25"]}, "named twice"),
        ({"techniques": ["actr[tau=0]"]}, "legal: top_k, decay, strength, weight, noise, threshold"),
        ({"techniques": ["model_rank"]}, "hippo-tiny answers in a word and cannot write; give another model"),
        ({"budgets": ["turns[ratio=2]"]}, "ratio"),
        ({"budgets": [0]}, "number of tokens from 1"),
        ({"budgets": ["half"]}, "budgets"),
        ({"budgets": [128, 128]}, "twice"),
        ({"lengths": [8]}, "16 turns or more"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_one_line(values, says):
    with pytest.raises(LabError) as error:
        load_experiment("conversation").check(values, "here")
    assert says in str(error.value) and "\n" not in str(error.value)


def test_the_plan_names_what_is_not_usual():
    experiment = load_experiment("conversation")
    plan = experiment.plan(experiment.check({"techniques": ["bm25@3"], "n": 3}, "here"))
    assert plan.label == "conversation n=3 techniques=bm25@3"


def test_a_cell_rests_on_its_techniques_alone_and_on_the_presets_that_they_show(monkeypatch):
    experiment = load_experiment("conversation")

    def plan(*names):
        return experiment.plan(experiment.check({"techniques": list(names)}, "here"))

    run, folder = "hippo_core.protocols.conversation.run", "hippo_core.protocols.conversation.techniques"
    assert plan("bm25", "none").modules == (run, f"{folder}.selective", f"{folder}.plain") and "presets" not in plan("bm25").inputs
    taught = plan("hei_nw")
    assert {f"{folder}.memories", "hippo_core.methods.episodic"} <= set(taught.modules)
    monkeypatch.setattr(protocol.checksums, "fitted", lambda *_: "other weights")
    assert plan("hei_nw").inputs["presets"] != taught.inputs["presets"]


@pytest.mark.parametrize(("own", "most"), [(False, 8), (True, 32)])
def test_an_answer_about_own_dialogues_has_more_tokens(tmp_path, monkeypatch, own, most):
    (tmp_path / "d.json").write_text(generate(1, lengths=(16,))[0].model_dump_json())
    given = {}
    monkeypatch.setattr(run, "execute", lambda *_, max_tokens: given.update(room=max_tokens) or [])
    monkeypatch.setattr(run, "evaluate", lambda *_: [])
    monkeypatch.setattr(run, "table_of", lambda scored: scored)
    parameters = ConversationParameters(n=1, lengths=[16], dialogues=str(tmp_path / "d.json") if own else "")
    run.converse(SimpleNamespace(parameters=parameters, record=tmp_path, language_model=SimpleNamespace(spec=None)))
    assert given == {"room": most}


def test_a_cell_rests_on_the_dialogues_that_it_reads(tmp_path):
    experiment, file = load_experiment("conversation"), tmp_path / "mine.jsonl"
    file.write_text("".join(dialogue.model_dump_json() + "\n" for dialogue in generate(2, lengths=(16,))))
    checked = [experiment.check({"dialogues": str(path)}, "here") for path in (file, tmp_path)]
    before = [experiment.plan(parameters).inputs for parameters in checked]
    assert before == [experiment.plan(parameters).inputs for parameters in checked]
    file.write_text("".join(dialogue.model_dump_json() + "\n" for dialogue in generate(3, lengths=(16,))))
    assert all(experiment.plan(parameters).inputs != old for parameters, old in zip(checked, before, strict=True))
    with pytest.raises(LabError, match="no such file or folder"):
        experiment.plan(experiment.check({"dialogues": str(tmp_path / "none.jsonl")}, "here"))


def test_the_phases_of_a_record_run_again_alone(tmp_path):
    """From a record's raw answers and dialogues to scores, from these to a report; other answers, other scores."""
    dialogues = generate(12, lengths=(16,))
    asked = [(dialogue, question) for dialogue in dialogues for question in dialogue.questions]
    known = {"lines": [], "places": [], "ranking": None, "tokens_in": 9, "tokens_out": 1, "seconds": 0.0, "select_ms": 0.0, "index_ms": 0.0}
    known |= dict.fromkeys(KEY, "") | {"error": None}
    known |= {"budget": "128"}
    raw = []
    for dialogue, question in asked:
        raw.append(known | {"dialogue": dialogue.id, "question": question.id, "technique": "bm25", "text": question.answer, "cut": False})
        raw.append(raw[-1] | {"technique": "recency", "text": "nobody", "cut": True})
    (tmp_path / DIALOGUES).write_text("".join(dialogue.model_dump_json() + "\n" for dialogue in dialogues))
    write_lines(tmp_path / RAW, raw)
    runner = CliRunner()
    assert runner.invoke(app, ["evaluate", str(tmp_path / DIALOGUES), "--out", str(tmp_path)]).exit_code == 0
    assert runner.invoke(app, ["aggregate", "--out", str(tmp_path)]).exit_code == 0
    report = (tmp_path / "report.md").read_text()
    assert "| bm25 | 128 | 60 | 0 | 0 | 12 | 1.00 |" in report and "| recency | 128 | 60 | 0 | 60 | 12 | 0.00 |" in report
    assert "bm25 (128) − recency (128) | 60 | +1.00 |" in report
    (tmp_path / SCORED).unlink()
    assert isinstance(runner.invoke(app, ["aggregate", "--out", str(tmp_path)]).exception, LabError)
