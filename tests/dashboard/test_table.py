"""The table: what it holds is what was given, seen as its sort and query say; every text stays text."""

import json
import shutil
import subprocess

import pytest

from hippo_core.dashboard.table import HERE, STATIC, ItemTable

COLUMNS = [
    {"name": "who", "label": "Who", "kind": "text"},
    {"name": "n", "label": "n", "kind": "number"},
    {"name": "right", "label": "Right", "kind": "mark"},
    {"name": "gain", "label": "Gain", "kind": "interval"},
]
ROWS = [
    {"id": "a", "who": "Nia <script>", "n": 3, "right": True, "gain": [0.1, -0.05, 0.25]},
    {"id": "b", "who": "bo", "n": 1200, "right": None, "gain": [-0.2, -0.3, -0.1]},
    {"id": "c", "who": "Lea", "n": float("nan"), "right": False, "gain": [float("nan"), None, None]},
]


def table(rows=ROWS, **more):
    return ItemTable(columns=COLUMNS, rows=rows, **more)


def ids(shown):
    return [row["id"] for row in shown.seen()]


def test_the_browser_gets_numbers_texts_and_none_for_what_was_not_measured():
    shown = table()
    json.dumps(shown.rows, allow_nan=False)
    assert shown.rows[1]["n"] == {"value": 1200.0, "text": "1,200"}
    assert shown.rows[1]["gain"]["text"] == "−0.20 (−0.30 to −0.10)"
    assert shown.rows[2]["n"]["value"] is None and shown.rows[2]["gain"] == {"value": None, "low": None, "high": None, "text": "–"}


def test_all_intervals_stand_on_one_axis_that_holds_zero():
    low, high = table().axis
    assert low < -0.3 and high > 0.25
    assert table([{**ROWS[1]}]).axis[1] >= 0
    assert table([{**ROWS[2]}]).axis == [-1, 1]


@pytest.mark.parametrize(
    ("name", "up", "down"), [("who", "bca", "acb"), ("n", "abc", "bac"), ("right", "cab", "acb"), ("gain", "bac", "abc")]
)
def test_sorted_by_any_column_with_what_is_not_measured_last(name, up, down):
    assert ids(table(sort=name)) == list(up)
    assert ids(table(sort=name, descending=True)) == list(down)


def test_a_query_keeps_the_rows_that_hold_all_its_words():
    shown = table()
    for query, kept in (("", "abc"), ("LEA", "c"), ("1,200", "b"), ("nia 0.25", "a"), ("nia bo", "")):
        shown.query = query
        assert ids(shown) == list(kept), query


def test_what_the_browser_sees_is_what_python_sees(tmp_path):
    """Both sort and filter for themselves; skipped where there is no node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    shutil.copy(HERE / "table.js", tmp_path / "table.mjs")
    asked = [(query, sort, down) for query in ("", "1,200", "nia") for sort in ("", "who", "n", "right", "gain") for down in (False, True)]
    (tmp_path / "asked.json").write_text(json.dumps({"rows": table().rows, "columns": COLUMNS, "asked": asked}))
    code = """import { seen } from "./table.mjs"; import { readFileSync } from "fs";
    const { rows, columns, asked } = JSON.parse(readFileSync("asked.json"));
    console.log(JSON.stringify(asked.map((one) => seen(rows, columns, ...one).map((row) => row.id))));"""
    (tmp_path / "ask.mjs").write_text(code)
    shown = json.loads(subprocess.run([node, "ask.mjs"], cwd=tmp_path, capture_output=True, check=True, text=True).stdout)
    assert shown == [ids(table(query=query, sort=sort, descending=down)) for query, sort, down in asked]


def test_a_row_is_selected_until_it_is_gone():
    shown = table(selected="b")
    assert '<tr class="selected"><td class="text">bo' in shown.html()
    shown.rows = ROWS[1:]
    assert shown.selected == "b"
    shown.rows = ROWS[2:]
    assert shown.selected == ""


def test_the_static_page_escapes_follows_the_sort_and_is_cut():
    page = table(sort="who").html()
    assert "Nia &lt;script&gt;" in page and "<script>" not in page
    assert page.index(">bo<") < page.index(">Lea<") < page.index("Nia")
    assert page.count('class="bar"') == 2 and page.count('class="guide"') == 2
    many = table([{**ROWS[0], "id": str(number)} for number in range(5000)]).html()
    assert many.count("<tr") == 1 + STATIC and "The first 200 of 5,000 rows." in many


def test_nothing_comes_from_outside_and_nothing_is_set_as_html():
    code, style = ((HERE / name).read_text() for name in ("table.js", "table.css"))
    assert "import " not in code and "innerHTML" not in code
    assert "url(" not in style and "@import" not in style
    assert "http" not in code.replace("http://www.w3.org/2000/svg", "") + style
