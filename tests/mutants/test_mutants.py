"""The list of mutants does not rot, and what makes them tells a catch from a survivor and from a mistake."""

import subprocess
import sys

import pytest

from tests.mutants import __main__ as runner
from tests.mutants.listed import DoesNotApply, Edit, Mutant, edited, mutants

CODE, TEST = "def add(a, b):\n    return a + b\n", "from code_of_it import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_list_can_be_made(mutant):
    assert edited(mutant, runner.ROOT)
    assert mutant.equivalent or mutant.caught_by
    assert all((runner.ROOT / test.split("::")[0]).exists() for test in mutant.caught_by)


def test_names_are_unique():
    names = [mutant.name for mutant in mutants()]
    assert len(set(names)) == len(names) >= 108


@pytest.fixture
def tree(tmp_path):
    place = tmp_path / "tree"
    place.mkdir()
    (place / "code_of_it.py").write_text(CODE)
    (place / "test_it.py").write_text(TEST)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


def mutant(old, new, **told):
    return Mutant(name="one", breaks="it", edits=(Edit(file="code_of_it.py", old=old, new=new),), caught_by=("test_it.py",), **told)


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (mutant("a + b", "a - b"), "caught"),
        (mutant("a + b", "b + a"), "survived"),
        (mutant("a + b", "b + a", equivalent="a sum has no order"), "equivalent"),
        (mutant("a * b", "a"), "does not apply"),
        (mutant("def add", "def plus"), "error"),  # the tests cannot be collected, which is no catch
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_comes_of_a_mutant(tree, one, state):
    [outcome] = runner.all_tried([one], tree, jobs=1)
    assert outcome.state == state
    assert (tree / "code_of_it.py").read_text() == CODE


def test_a_copy_is_mended_after_each_mutant(tree):
    broken, harmless = mutant("a + b", "a - b"), mutant("a + b", "b + a")
    assert [one.state for one in runner.all_tried([broken, harmless, broken], tree, jobs=1)] == ["caught", "survived", "caught"]


def test_a_mutant_is_not_tried_where_a_test_of_it_is_skipped(tree):
    (tree / "test_it.py").write_text(f"{TEST}\n\ndef test_more():\n    import pytest\n    pytest.skip('no model here')\n")
    survivor, broken = runner.all_tried([mutant("a + b", "b + a"), mutant("a + b", "a - b")], tree, jobs=1)
    assert survivor.state == "not tried" and "no model here" in survivor.said
    assert broken.state == "caught"


def test_tests_that_fail_by_themselves_are_told_before_any_mutant_is_made(tree):
    assert runner.unbroken([mutant("a + b", "a - b")], tree)[0] == 0
    (tree / "code_of_it.py").write_text(CODE.replace("+", "*"))
    assert runner.unbroken([mutant("a * b", "a - b")], tree)[0] == 1


def test_a_passage_that_stands_there_twice_is_refused(tree):
    with pytest.raises(DoesNotApply, match="2 times"):
        edited(mutant("b", "c"), tree)


def test_an_unknown_name_lists_those_there_are():
    done = subprocess.run([sys.executable, "-m", "tests.mutants", "nothing_like_it"], cwd=runner.ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "gold_trace_ranks_first" in done.stderr
