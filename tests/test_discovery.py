"""Members of a package are discovered in its source: a new file is enough, nothing is loaded, and no name stands for two."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from hippo_core import extend
from hippo_core.discovery import find_member, member, members
from hippo_core.errors import LabError
from hippo_core.protocols.base.experiment import names_of_ours
from hippo_core.source_code import behind_face, closure, parsed
from hippo_core.suites import suite_names

PACKAGE = Path(__file__).resolve().parents[1] / "hippo_core"
MODULE = 'class Base:\n    name: str\n\n\nclass First(Base):\n    name = "first"\n    preset = "memory/all"\n'
MADE = 'A = Thing("a", order=2)\nB = replace(A, name="b", order=1)\nC = other("c")\nD = Thing(name="")\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose modules a test writes."""
    folder = tmp_path / "found_here"
    (folder / "inner").mkdir(parents=True)
    for path in (folder, folder / "inner"):
        (path / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    members.cache_clear()
    yield folder
    members.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "found_here"]:
        del sys.modules[name]


def test_a_class_with_a_name_is_a_member_and_is_loaded_by_it(package):
    (package / "inner" / "one.py").write_text(MODULE)
    by_name = members("found_here")
    assert (
        list(by_name) == ["first"]
        and by_name["first"].module == "found_here.inner.one"
        and by_name["first"].constants["preset"] == "memory/all"
    )
    assert "found_here.inner.one" not in sys.modules
    assert member("found_here", "first", "thing").__name__ == "First"
    with pytest.raises(LabError, match="unknown thing 'last'"):
        member("found_here", "last", "thing")


def test_what_is_made_of_a_class_is_a_member_in_the_order_that_it_says(package):
    (package / "made.py").write_text(MADE)
    paths = [(name, entry.path) for name, entry in members("found_here", "Thing").items()]
    assert paths == [("b", "found_here.made:B"), ("a", "found_here.made:A")]


def test_two_members_of_one_name_are_refused(package):
    (package / "one.py").write_text(MODULE)
    (package / "two.py").write_text(MODULE)
    with pytest.raises(LabError, match=r"found_here\.one:First and found_here\.two:First are both called 'first'; rename one"):
        members("found_here")


def test_the_lab_names_no_member_of_a_folder_that_is_searched():
    """Rule: whoever adds a suite, an experiment, a defence, a technique, a learner or a way adds one file."""
    assert suite_names()[:3] == ("episodic", "episodic_multi", "episodic_cross") and {"answer", "memory", "sleeps"} <= {*names_of_ours()}
    folders = ("protocols.cache.defences", "protocols.conversation.techniques", "protocols.forgetting.learners")
    for folder in (*folders, "training.consolidation.update_rules"):
        tree = parsed((PACKAGE / folder.replace(".", "/") / "__init__.py").read_text())
        listed = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & members(f"hippo_core.{folder}").keys()
        assert not listed and len(members(f"hippo_core.{folder}")) > 3, f"{folder} lists {listed}: a class says its name, and is discovered"


def test_members_are_named_without_loading_torch():
    code = (
        "import sys; from hippo_core.protocols.cache import defences; from hippo_core.suites import suite_names; suite_names(); "
        "defences.find_defences(['reset', 'ecc']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ones_own_is_a_member_by_its_module_path(package):
    (package / "mine.py").write_text(MODULE)
    assert find_member("hippo_core.protocols.cache.defences", "found_here.mine:First", "defence").module == "found_here.mine"
    with pytest.raises(LabError, match=r"there is no module 'found_here\.other'"):
        find_member("hippo_core.protocols.cache.defences", "found_here.other:First", "defence")


def test_the_face_for_ones_own_code_has_what_it_lists_and_loads_a_name_alone():
    assert len(behind_face()) > 30 and all(getattr(extend, name) is not None for name in behind_face())
    code = "import sys; from hippo_core.extend import Suite; sys.exit(Suite.__name__ != 'Suite' or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match=r"hippo_core\.extend has no 'Suit'; it has ANSWER"):
        _ = extend.Suit


def test_a_record_follows_the_module_behind_the_face_and_no_other(package):
    (package / "mine.py").write_text("from hippo_core.extend import words\n")
    files = closure(["found_here.mine"])
    assert "hippo_core.retrieval.lexicon" in files and "hippo_core.extend" not in files and "hippo_core.methods.base" not in files
