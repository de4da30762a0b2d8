"""Pages judged without a browser, and the two suites that build one: their scripted agent's edits, step by step."""

import importlib.util
import json
import shutil

import pytest
from pydantic import ValidationError

from hippo_core.protocols.paired.agents.pages import MOST_TAGS, lacking
from hippo_core.protocols.paired.agents.run import checked
from hippo_core.protocols.paired.items import PageElement
from hippo_core.protocols.paired.suite import read_suite
from tests.protocols.paired.agents.conftest import SMOKE, closest

PAGE = """<html><head><link rel="stylesheet" href="css/look.css?v=2"></head><body>
<header id="top" class="a b">The  Line</header><ul><li>one<li>two</ul><form id="f"></form><b></b><b></b>
<script src="app.js"></script><script src="https://elsewhere.test/x.js"></script></body></html>"""
LOOK = "#top { color: red } .a { color: blue; margin: 0 } header { color: green } @media print { header { margin: 9px } } ::x{}"
SCRIPT = """
// document.querySelector("#gone").addEventListener("click", f)
const KEY = "the.key"
const form = document.getElementById("f");
const save = (value) => localStorage.setItem(KEY, value.replace(/["(]/g, ""));
function unused() { return "never"; }
form.addEventListener(
  "input",
  (event) => { save(`${event.data} (`); },
);
document.querySelectorAll("b").forEach((bold) => bold.addEventListener("click", unused));
"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "css").mkdir()
    for name, text in (("index.html", PAGE), ("css/look.css", LOOK), ("app.js", SCRIPT)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"select": "li", "count": 2}, True),
        ({"select": "li", "count": 0}, False),
        ({"select": "#top", "text": "the line"}, True),
        ({"select": "#top", "text": "the lines"}, False),
        ({"select": "#top", "style": {"color": "red", "margin": "0"}}, True),  # an id wins over what comes later; @media is left out
        ({"select": "#top", "style": {"color": "green"}}, False),
        ({"select": "#f", "listens": {"input": ["localStorage", "the.key"]}}, True),
        ({"select": "#f", "listens": {"input": ["never"]}}, False),
        ({"select": "#f", "listens": {"click": []}}, False),
        ({"select": "b", "listens": {"click": ["never"]}, "count": 2}, True),
        ({"select": "ul", "listens": {"click": []}}, False),
        ({"select": "li", "file": "other.html"}, False),
    ],
)
def test_what_a_page_holds(wanted, passes, page):
    assert (lacking(PageElement.model_validate(wanted), page) == "") is passes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('document.querySelector("#gone").addEventListener("x", f);', "'#gone', which the page lacks"),
        ("const late = { a: [1, 2};", "breaks at '}'"),
        ("const late = 'open;\n", 'breaks at "\'open;"'),
        ("function f() {", "does not close '{'"),
        ("const x = 1;" * 501, "more than 500 rules"),
    ],
)
def test_a_script_that_cannot_be_right_is_named(text, why, page):
    (page / "app.js").write_text(SCRIPT + text)
    assert why in lacking(PageElement(select="#f", listens={"input": []}), page)


@pytest.mark.parametrize(
    ("text", "why"),
    [("<b>" * 300, "nested too deep"), ("<b></b>" * MOST_TAGS, "too many"), ('<script src="/etc/passwd"></script>', "no path")],
)
def test_a_page_that_would_keep_the_harness_busy_or_leaves_the_workspace_is_not_judged(text, why, page):
    (page / "index.html").write_text(text)
    assert why in lacking(PageElement(select="b"), page)


def test_a_selector_that_is_none_is_refused_when_the_suite_is_read():
    with pytest.raises(ValidationError, match="expected a CSS selector"):
        PageElement(select="li:nth(")


def built(name, workspace, monkeypatch, memory=True):
    """Why each step of a suite fails, before and after its scripted edits, in a copy of its fixture."""
    suite = read_suite(SMOKE.with_name(name))
    [item] = suite.items
    shutil.copytree(suite.folder / item.fixture, workspace)
    monkeypatch.chdir(workspace)
    script = suite.folder / "scripts" / "scripted_agent.py"
    spec = importlib.util.spec_from_file_location("scripted_agent", script)
    agent = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(agent)
    edits = json.loads(script.with_name("edits.json").read_text())
    notes = [{"text": note.text} for note in suite.notes]
    for step in item.steps:
        before = [*filter(None, checked(step, workspace))]
        agent.edit(edits[step.id], [note["text"] for text in step.memory_questions if memory for note in closest(notes, text)[:5]])
        yield step, before, [*filter(None, checked(step, workspace))]


@pytest.mark.parametrize(("name", "steps"), [("agents-app", 20), ("agents-followup", 10)])
def test_every_step_asks_for_something_and_the_scripted_agent_does_it_where_it_has_a_memory(name, steps, tmp_path, monkeypatch):
    done = list(built(name, tmp_path / "page", monkeypatch))
    assert len(done) == steps and all(before and not after for _, before, after in done), done
    without = {step.id for step, _, after in built(name, tmp_path / "other", monkeypatch, memory=False) if not after}
    assert without == {step.id for step, _, _ in done if not step.memory_questions}


def test_the_followup_starts_from_what_the_twenty_steps_left(tmp_path, monkeypatch):
    assert len(list(built("agents-app", tmp_path / "page", monkeypatch))) == 20
    saved = SMOKE.with_name("agents-followup") / "fixtures" / "app-built"
    left = {path.name: path.read_text() for path in (tmp_path / "page").iterdir()}
    assert left == {path.name: path.read_text() for path in saved.iterdir()}
