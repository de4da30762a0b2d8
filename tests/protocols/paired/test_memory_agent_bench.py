"""MemoryAgentBench's rows become a suite: told once a context, asked many times; a later fact wins, and only the right answer counts."""

import json
from pathlib import Path

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired import memory_agent_bench
from hippo_core.protocols.paired.lint import examined
from hippo_core.protocols.paired.memory_agent_bench import adapted
from hippo_core.protocols.paired.run import run
from hippo_core.protocols.paired.settings import RunSettings

FACTS = "Here is a list of facts:\n0. The mill of Orrin stands in Tarn.\n1. Vesna plays the horn.\n2. The mill of Orrin stands in Lusk."
STORY = "Document 1:\nThe bridge of Halm was built by Ines.\n\nDocument 2:\nThe oldest boat in Perl is the Gannet."
ROWS = [
    {
        "context": FACTS,
        "questions": ["Where stands the mill of Orrin?", "What plays Vesna?"],
        "answers": [["Lusk"], ["horn", "the horn"]],
        "metadata": {"source": "factconsolidation_sh_6k", "demo": None},
    },
    {"context": STORY, "questions": ["Who built the bridge of Halm?"], "answers": [["Ines"]], "metadata": {"source": "ruler_qa1_197K"}},
    {"context": STORY, "questions": ["Sum it up."], "answers": [["a story"]], "metadata": {"source": "infbench_sum"}},
]


class Latest:
    """Recalls, of notes that share most words with the question, the latest; counts how often it was taught."""

    taught = 0

    def __init__(self, notes):
        type(self).taught += 1
        self.notes = notes

    def recall(self, question, k):
        asked = set(question.lower().strip("?").split())
        order = sorted(enumerate(self.notes), key=lambda pair: (-len(asked & set(pair[1]["text"].lower().strip(".").split())), -pair[0]))
        return [note["id"] for _, note in order[:k]]


def written(tmp_path, rows):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows))
    return file


def success(suite):
    settings = RunSettings(conditions=("no-memory", "full-memory"), memory=f"{__name__}:Latest", encoder="own")
    rows = pd.DataFrame(run(suite, settings, "hippo-tiny", log=lambda line: None))
    return rows[rows["condition"] == "full-memory"].set_index("item")["success"].to_dict()


def test_each_context_is_taught_once_and_the_later_fact_is_right(tmp_path):
    suite = adapted(written(tmp_path, ROWS), tmp_path / "suite")
    assert [note.text for note in suite.by_world["context-1"]] == FACTS.splitlines()[1:]
    bare = adapted(tmp_path / "rows.json", tmp_path / "bare", numbers=False)
    assert [note.text for note in bare.by_world["context-1"]] == [line.partition(" ")[2] for line in FACTS.splitlines()[1:]]
    assert {item.id: item.tags[0] for item in suite.items}["context-2-q1"] == "accurate-retrieval"
    Latest.taught = 0
    assert success(suite) == {"context-1-q1": 1, "context-1-q2": 1, "context-2-q1": 1}
    assert Latest.taught == 2


def test_facts_in_the_other_order_make_the_answer_wrong(tmp_path):
    turned = FACTS.replace("Tarn", "X").replace("Lusk", "Tarn").replace("X", "Lusk")
    suite = adapted(written(tmp_path, [{**ROWS[0], "context": turned}]), tmp_path / "suite", questions=1)
    assert success(suite) == {"context-1-q1": 0}


@pytest.mark.parametrize(("source", "right"), [("factconsolidation_sh_6k", "Lusk"), ("factconsolidation_mh_6k", "Tarn")])
def test_the_benchmarks_own_files_are_known_by_name_and_pass_the_doctor(tmp_path, monkeypatch, source, right):
    def line(answer):
        return json.dumps({"id": "q", "question": "Where stands the mill of Orrin?", "answers": [answer]}) + "\n"

    texts = {"facts": FACTS, "single": line("Lusk"), "multi": line("Tarn")}
    monkeypatch.setattr(memory_agent_bench, "read_text", lambda name: texts[name.removeprefix("factconsolidation-")])
    suite = adapted(Path(source), tmp_path / "suite")
    [item] = suite.items
    assert item.required_assertions == [[right]] and item.tags == ["conflict-resolution", source] and len(suite.notes) == 3
    assert success(suite) == {"context-1-q1": right == "Lusk"}
    assert not [finding for finding in examined(suite) if finding.level == "fail"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROWS[2]], "expected rows of sources factconsolidation.*got infbench_sum"),
        ([{**ROWS[0], "answers": [["Lusk"]]}], "row 1: .*expected answers to each of 2 questions, got 1"),
        ([{"context": "x"}], "row 1: .*questions"),
    ],
)
def test_other_files_are_refused(tmp_path, rows, says):
    with pytest.raises(LabError, match=says):
        adapted(written(tmp_path, rows), tmp_path / "suite")
    assert not (tmp_path / "suite").exists()
