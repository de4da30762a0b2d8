"""Execute, evaluate, aggregate: each alone, and answers that follow what is shown."""

import pytest

from hippo_core.errors import LabError
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.conversation.dialogue import contains_words
from hippo_core.protocols.conversation.generator import generate
from hippo_core.protocols.conversation.lines import read_lines, write_lines
from hippo_core.protocols.conversation.phases import evaluate, execute, prompt
from hippo_core.protocols.conversation.report import in_words
from hippo_core.protocols.conversation.scores import entity_precision, entity_recall, exact, hit, recall
from hippo_core.protocols.conversation.table import COLUMNS, by_technique, table_of
from hippo_core.protocols.conversation.techniques import plain
from hippo_core.protocols.conversation.techniques.base import Technique, TechniqueContext, turns_of
from hippo_core.protocols.conversation.techniques.model_summary import write
from hippo_core.providers import Completion, Provider
from hippo_core.providers.local import LocalProvider
from hippo_core.providers.retry import CallFailed


class LastWord(Provider):
    """Answers with the last word of the last line of the history; fails where there is none."""

    identity = "last word"

    def describe(self):
        return self.identity

    def call(self, prompt, max_tokens, temperature):
        lines = prompt.split("\n\n")[1:-1]
        if not lines:
            raise CallFailed("nothing to read")
        return Completion(lines[-1].split()[-1], tokens_in=len(prompt.split()))


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), threads=1)


def asked(dialogue, setting, *names, budgets=("turns",)):
    return execute([dialogue], names, budgets, setting, LastWord(), log=lambda text: None)


def test_each_phase_can_be_run_again_from_its_file(tmp_path, dialogue, setting):
    raw = asked(dialogue, setting, "oracle", "recency", "bm25", budgets=("turns", "8"))
    write_lines(tmp_path / "raw.jsonl", raw)
    scored = evaluate(read_lines(tmp_path / "raw.jsonl"), [dialogue])
    write_lines(tmp_path / "scored.jsonl", scored)
    rows, again = table_of(scored), table_of(read_lines(tmp_path / "scored.jsonl"))
    assert rows.equals(again) and tuple(rows) == COLUMNS and len(rows) == 12 and rows["entry"].is_unique
    oracle = rows[(rows["technique"] == "oracle") & (rows["budget"] == "turns")].set_index("question")
    assert oracle["em"].tolist() == [1.0, 1.0] and oracle["presence"].tolist() == [1.0, 1.0] and oracle["shown"].tolist() == [1.0, 1.0]
    assert oracle.loc["d/0", "distance"] == 3 and oracle.loc["d/0", "stale"] == 0


def test_the_distance_counts_from_the_last_evidence(dialogue, setting):
    both = dialogue.questions[0].model_copy(update={"evidence": ("0", "4")})
    changed = dialogue.model_copy(update={"questions": (both, dialogue.questions[1].model_copy(update={"evidence": ()}))})
    distances = [row["distance"] for row in evaluate(asked(changed, setting, "recency"), [changed])]
    assert distances == [3, None]


def test_an_answer_that_failed_has_no_score(dialogue, setting):
    rows = table_of(evaluate(asked(dialogue, setting, "none"), [dialogue]))
    assert rows["em"].isna().all() and rows["entity_recall"].isna().all() and rows["presence"].tolist() == [0.0, 0.0]
    assert rows["budget"].unique().tolist() == ["full"]  # nothing is shown under every budget alike


class Fails(Technique):
    """Fails over the dialogue "broken", and over the second question of every other one."""

    def open(self, dialogue):
        if dialogue.id == "broken":
            raise ValueError("3200 columns\nwhere 3233 are expected")

        def choose(asked, budget):
            if asked.key == "1":
                raise LabError("no word to look for")
            return turns_of(dialogue, [4], [4])

        return choose


class Chokes(LastWord):
    """Breaks down over the harp, whatever else it is asked with."""

    def answers(self, prompts, *, max_tokens=64, temperature=0.0):
        if any("harp" in prompt for prompt in prompts):
            raise RuntimeError("cannot read a harp")
        return super().answers(prompts, max_tokens=max_tokens, temperature=temperature)


def test_what_a_technique_cannot_read_is_its_own_failure_and_the_rest_goes_on(tmp_path, dialogue, setting, monkeypatch):
    monkeypatch.setattr(plain, "Recency", Fails)
    broken, messages = dialogue.model_copy(update={"id": "broken"}), []
    dialogues = [broken, dialogue]
    raw = execute(dialogues, ["recency", "oracle"], ["turns"], setting, LastWord(), log=messages.append)
    write_lines(tmp_path / "raw.jsonl", raw)
    errors = [row["error"] for row in read_lines(tmp_path / "raw.jsonl")]
    assert errors == ["3200 columns where 3233 are expected"] * 2 + [None, "no word to look for"] + [None] * 4
    assert "4 answers, 3 failed (3200 columns where 3233 are expected)" in messages[0] and "failed" not in messages[1]
    rows = table_of(evaluate(raw, dialogues))
    assert rows["em"].tolist()[2] == 1.0 and rows[rows["em"].isna()][["presence", "shown", "hit_1"]].isna().all(axis=None)
    means = by_technique(rows)
    assert [(line["technique"], line["failed"], line["em"]["mean"]) for line in means] == [("recency", 3, 1.0), ("oracle", 0, 1.0)]
    assert in_words("m", means).endswith("; 3 failed.")


class Talks(LastWord):
    """Says as many words as it may, of ten."""

    def call(self, prompt, max_tokens, temperature):
        return Completion(" ".join(["word"] * min(10, max_tokens)), cut=max_tokens < 10)


@pytest.mark.parametrize(("most", "cut"), [(8, 2), (32, 0)])
def test_answers_that_the_limit_has_cut_are_counted_and_reported(tmp_path, dialogue, setting, most, cut):
    messages = []
    raw = execute([dialogue], ["oracle"], ["turns"], setting, Talks(), messages.append, most)
    write_lines(tmp_path / "raw.jsonl", raw)
    lines = by_technique(table_of(evaluate(read_lines(tmp_path / "raw.jsonl"), [dialogue])))
    assert [row["cut"] for row in raw] == [cut > 0] * 2 and [line["cut"] for line in lines] == [cut]
    assert (f"2 cut at {most} tokens" in messages[0]) == (f"{cut} cut by the limit of new tokens" in in_words("m", lines)) == (cut > 0)


def test_answers_of_before_cut_ones_were_counted_are_read(dialogue, setting):
    raw = [{name: value for name, value in row.items() if name != "cut"} for row in asked(dialogue, setting, "oracle")]
    assert by_technique(table_of(evaluate(raw, [dialogue])))[0]["cut"] == 0


@pytest.mark.parametrize("change", [{"text": 3}, {"seconds": "long"}, {"ranking": 1}, {"places": 1}, {"dialogue": ["d"]}])
def test_a_line_that_is_no_complete_answer_is_reported_in_a_line(dialogue, setting, change):
    [row, _] = asked(dialogue, setting, "bm25")
    with pytest.raises(LabError, match=r"^raw.jsonl:1: no (whole answer|question)"):
        evaluate([row | change], [dialogue])
    with pytest.raises(LabError, match=r"^raw.jsonl:1: no whole answer"):
        evaluate([{name: value for name, value in row.items() if name != "select_ms"}], [dialogue])


def test_a_model_that_breaks_down_over_one_prompt_answers_the_others(dialogue, setting):
    raw = execute([dialogue], ["oracle"], ["turns"], setting, Chokes(), log=lambda text: None)
    assert [(row["text"], row["error"]) for row in raw] == [("Oslo.", None), ("", "cannot read a harp")]


def test_answers_of_the_model_follow_what_is_shown(lm):
    """Wiring: the evidence is read; under the lines of another dialogue the answers are gone."""
    dialogues = generate(6, seed=3, split="val", lengths=(16,))
    local = LocalProvider(lm)
    raw = execute(dialogues, ["none", "oracle", "bm25"], ["turns"], TechniqueContext(lm), local, log=lambda text: None)
    means = table_of(evaluate(raw, dialogues)).groupby("technique")["em"].mean()
    assert means["none"] < 0.1 and means["oracle"] > 0.8 and means["bm25"] > 0.7
    shuffled = [question.model_copy(update={"evidence": ("0",)}) for question in dialogues[0].questions]
    other = dialogues[0].model_copy(update={"questions": tuple(shuffled), "turns": dialogues[1].turns})
    raw = execute([other], ["oracle", "bm25"], ["turns"], TechniqueContext(lm), local, log=lambda text: None)
    assert table_of(evaluate(raw, [other]))["em"].mean() < 0.3


def test_what_the_limit_does_not_hold_was_not_shown(lm):
    [dialogue] = generate(1, split="val", lengths=(120,))
    [row, *_] = execute([dialogue], ["full"], ["full"], TechniqueContext(lm), LocalProvider(lm), log=lambda text: None)
    assert row["places"][-1] == 119 and row["places"][0] > 0 and len(row["lines"]) == len(row["places"]) and row["tokens_in"] <= 512


def test_a_model_that_summarises_keeps_to_the_tokens_and_reads_no_more_than_its_limit(lm):
    [dialogue] = generate(1, split="val", lengths=(16,))
    lines = [turn.line for turn in dialogue.turns]
    assert 0 < len(lm.encode(write(lm, lines[:5], 12))) <= 13
    assert write(lm, lines * 5, 12) is None


def test_the_prompt_of_the_specification():
    assert prompt(["user: a", "assistant: b"], "Who?", False).split("\n\n")[1:] == ["user: a", "assistant: b", "User: Who?"]


def test_a_row_of_another_kind_is_reported_with_its_line(dialogue):
    with pytest.raises(LabError, match=r"a/raw.jsonl:1: a row without provider; run the phase before"):
        evaluate([{"dialogue": "d", "question": "0"}], [dialogue], "a/raw.jsonl")


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("It takes 1.5 hours.", "5", False), ("It takes 1.5 hours.", "1.5", True), ("At -5 degrees", "5", False),
        ("1,000 men", "1000", True),
        ("Lea\u2019s hat", "Lea", True), ("Zoe\u0308 came", "Zo\u00eb", True), ("He writes C++.", "C", False),
        ("Mr. Ito, 50%.", "50%", True),
        ("\u4ed6\u4f4f\u5728\u5317\u4eac\u3002", "\u5317\u4eac", True), ("\uc11c\uc6b8\uc5d0 \uc0b0\ub2e4", "\uc11c\uc6b8", True),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928", False), ("Go. On", "go on", False),
    ],
)  # fmt: skip
def test_what_occurs_in_a_text(text, phrase, expected):
    assert contains_words(text, phrase) == expected


def test_an_answer_is_exact_whatever_the_script_and_never_but_for_a_point():
    assert exact("\u5317\u4eac\u3002", ["\u5317\u4eac"]) and exact("1,000", ["1000"]) and exact("zoe\u0308", ["Zo\u00eb"])
    assert not any(exact(answer, [right]) for answer, right in (("15", "1.5"), ("5", "-5"), ("C", "C#"), ("730", "7:30")))


def test_scores_go_by_whole_words():
    assert entity_recall("I took the bus", ["US"]) == 0 and entity_recall("the US, I think", ["US", "Oslo"]) == 0.5
    assert exact("The harp.", ["harp"]) == 1 and exact("a harp and more", ["harp"]) == 0 and exact("", ["harp"]) == 0
    assert entity_precision("Oslo or Rome", ["Oslo"], ["Oslo", "Rome", "Lima"]) == 0.5
    assert entity_precision("a looking glass", ["looking glass"], ["glass", "looking glass"]) == 1.0
    assert entity_precision("nobody", ["Oslo"], ["Oslo"]) != entity_precision("nobody", ["Oslo"], ["Oslo"])  # NaN
    assert (hit([3, 1], [1], 1), hit([1, 3], [1], 1), recall([1, 2, 3], [1, 9], 3)) == (0.0, 1.0, 0.5)
