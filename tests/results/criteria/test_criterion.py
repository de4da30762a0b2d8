"""The files of criteria are whole, plain and strict."""

import pytest
import yaml

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.results.criteria import load_criteria
from hippo_core.suites import settings_for
from tests.results.invented import A_OVER_B, HEAD

CRITERION = {"id": "c", "question": "?", "text": "t", "family": "f", "about": "claim", "suites": ["episodic"]} | A_OVER_B


def write(folder, **files):
    """A folder of criteria, by file."""
    (folder / "shared.yaml").write_text(yaml.safe_dump(HEAD))
    for name, criteria in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"criteria": criteria}))


def test_the_files_hold_the_targets_of_the_evaluation_plan():
    loaded = load_criteria()
    by_id = {criterion.id: criterion for criterion in (*loaded.criteria, *loaded.tables)}
    targets = {"episodic_bar_core": 0.1, "episodic_hit_rate": 0.3, "delayed_recall": 0.2, "episodic_partial_core": 0.15,
               "episodic_partial_rag": 0.05, "episodic_multi_gain": 0.08, "multi_hop": 0.1, "contradictions": 0.5,
               "path_success": 0.9, "macro_steps": 0.8,
               "gate_duplicates": 0.7, "gate_edges": 0.75, "gate_overhead_relational": 1.1, "replay_one": 0.03, "consolidation": 0.05,
               "consolidation_sanity": -0.01, "spatial_bar": 0.1, "not_saturated_hard": 0.6, "range_episodic": (0.2, 0.4),
               "range_semantic_hard": (0.55, 0.8), "range_spatial": (0.05, 0.2), "gate_success": (-0.01, 0.01),
               "gate_suboptimality": (-0.02, 0.02), "refusals_episodic": 0.5, "gold_in_prompt": 0.8, "delayed_floor": 0.1}  # fmt: skip
    assert {name: by_id[name].target for name in targets} == targets


def test_criteria_of_paths_judge_paths_and_those_of_gates_count_the_teaching():
    by_id = {criterion.id: criterion for criterion in load_criteria().criteria}
    path = by_id["path_success"]
    assert (path.profiles, path.where.kind, path.metric) == (("paths_5",), ("grid_path",), "success")
    assert settings_for("spatial", path.profiles[0]).model_dump()["grid_size"] == 5
    assert {by_id[f"gate_overhead_{name}"].metric for name in ("spatial", "relational")} == {"item_ms_taught"}
    assert {by_id[name].where.kind for name in ("gate_success", "gate_suboptimality")} == {("grid_path", "graph_path")}


MEMORIES = {  # where each memory makes its claims: on the lab's wordings, and on such that nothing was fitted on
    "memory/hei_nw": ({("episodic", "default"), ("episodic_multi", "default")}, {("notes", "default"), ("squad", "default")}),
    "memory/sgc_rss": ({("semantic", "default")}, {("semantic", "reworded")}),
    "memory/smpd": (
        {("spatial", name) for name in ("default", "paths_5", "explore")},
        {("spatial", name) for name in ("reworded", "reworded_paths_5", "reworded_explore")},
    ),
    "memory/all": ({("mixed", "default")}, {("mixed", "reworded")}),
}


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_claims_the_same_against_the_same_rivals_on_both_wordings(memory):
    asked = [
        criterion
        for criterion in load_criteria().single()
        if criterion.about == "claim" and criterion.metric == "score_calibrated" and criterion.difference
    ]
    rules = {"best_rag_of_all": ("at_least", 0.05), "baselines/longctx": ("at_least", 0.05), "controls/oracle": ("not_below", -0.05)}
    for rival, rule in rules.items():
        mine = [criterion for criterion in asked if [condition.preset for condition in criterion.conditions] == [memory, rival]]
        assert set().union(*MEMORIES[memory]) <= {(criterion.suites[0], criterion.profiles[0]) for criterion in mine}
        assert {(criterion.rule, criterion.target, criterion.margin) for criterion in mine} == {(*rule, None)}
    assert len({criterion.family for criterion in asked if criterion.conditions[0].preset == memory}) == 1


def test_the_rival_of_claims_is_chosen_from_every_rag_that_a_person_may_run():
    criteria = load_criteria()
    [claim] = [criterion for criterion in criteria.criteria if criterion.id == "relational_above_rag"]
    rags = {condition.preset for condition in criteria.members(claim.conditions[1])}
    there = {f"baselines/{path.stem}" for path in (root() / "params/presets/baselines").glob("rag_*.yaml")}
    assert there - rags == {"baselines/rag_synonyms"}  # a bound, for it is given the table


def test_no_claim_names_a_rival_without_the_facts():
    floors = {"best_core", "baselines/core", "baselines/span_short", "controls/random_facts"}
    for criterion in load_criteria().criteria:
        assert criterion.about != "claim" or not floors & {condition.preset for condition in criterion.conditions[1:]}, criterion.id


def test_a_criterion_that_does_not_say_what_it_is_about_is_refused(tmp_path):
    write(tmp_path, c=[{name: value for name, value in CRITERION.items() if name != "about"}])
    with pytest.raises(LabError, match=r"c\.yaml: criteria\.0\.about: Field required"):
        load_criteria(tmp_path)


def test_every_criterion_asks_a_question_in_plain_words():
    for criterion in load_criteria().criteria:
        assert criterion.question.endswith("?") and "_" not in criterion.question and criterion.text and criterion.family


def test_a_criterion_of_many_suites_becomes_one_a_suite():
    singles = load_criteria().single()
    assert len({criterion.id for criterion in singles}) == len(singles) > len(load_criteria().criteria)
    assert all(len(criterion.suites) == 1 for criterion in singles)


@pytest.mark.parametrize(
    "wrong, message",
    [({"colour": "red"}, "Extra inputs"), ({"difference": None}, "needs one of"), ({"at_most": 1}, "needs one of"),
     ({"suites": []}, "at least 1"), ({"regime": "later"}, "immediate"), ({"where": {"colour": ["red"]}}, "Extra inputs"),
     ({"at_least": "much"}, "valid number")],
)  # fmt: skip
def test_a_mistake_in_the_file_is_one_clear_line(tmp_path, wrong, message):
    write(tmp_path, c=[CRITERION | wrong])
    with pytest.raises(LabError, match=rf"c\.yaml: .*{message}") as error:
        load_criteria(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("files", [{"c": [CRITERION, CRITERION]}, {"c": [CRITERION], "d": [CRITERION]}], ids=["one file", "two files"])
def test_two_criteria_of_one_id_are_refused(tmp_path, files):
    write(tmp_path, **files)
    with pytest.raises(LabError, match="two criteria have the id 'c'"):
        load_criteria(tmp_path)


def test_files_add_up_and_a_file_brings_groups_but_no_margins(tmp_path):
    write(tmp_path, c=[CRITERION], d=[CRITERION | {"id": "d"}])
    assert [criterion.id for criterion in load_criteria(tmp_path).criteria] == ["c", "d"]
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"groups": {"mine": ["a", "b"]}}))
    assert {condition.preset for condition in load_criteria(tmp_path).groups["mine"]} == {"a", "b"}
    assert load_criteria(tmp_path).groups.keys() == {*HEAD["groups"], "mine"}
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"alpha": 0.5}))
    with pytest.raises(LabError, match=r"e\.yaml: unknown key 'alpha'; legal: about, criteria, groups"):
        load_criteria(tmp_path)
