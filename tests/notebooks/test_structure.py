"""What every notebook keeps to: a parameters cell of literals that say what they are, short cells, nothing defined, no outputs."""

import ast
import json
import tokenize
from io import StringIO
from pathlib import Path

import papermill
import pytest

from hippo_core.errors import LabError
from hippo_core.lab.run import notebook_files
from hippo_core.protocols.base.experiment import load_experiment, names_of_ours

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
LONGEST = 12  # lines of a cell, the parameters cell aside

each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@each
def test_it_begins_with_its_question_and_has_no_outputs(path):
    notebook = content(path)
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert not [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"])]


@each
def test_parameters_are_literals_with_a_comment_each(path):
    source = notebook_files.parameters_cell(path)
    assert notebook_files.defaults(path)
    comments = {token.start[0] for token in tokenize.generate_tokens(StringIO(source).readline) if token.type == tokenize.COMMENT}
    assert {line.end_lineno for line in ast.parse(source).body} <= comments


@each
def test_papermill_sees_the_same_parameters(path):
    assert set(papermill.inspect_notebook(str(path))) == set(notebook_files.defaults(path))


@each
def test_unknown_and_wrong_parameters_are_refused(path):
    known = notebook_files.defaults(path)
    assert notebook_files.check_values(path, known) == known
    with pytest.raises(LabError, match=next(iter(known))):
        notebook_files.check_values(path, {"colour": "red"})
    with pytest.raises(LabError, match="expected"):
        notebook_files.check_values(path, {next(name for name, value in known.items() if value is not None): object()})


@each
def test_what_it_imports_is_there(path):
    for source in notebook_files.code(path):
        plain = "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))
        exec("\n".join(ast.unparse(node) for node in ast.walk(ast.parse(plain)) if isinstance(node, ast.Import | ast.ImportFrom)), {})


@each
def test_cells_are_short_and_define_nothing(path):
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for source in notebook_files.code(path):
        plain = "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))
        assert not [node for node in ast.walk(ast.parse(plain)) if isinstance(node, defined)]
        assert len(source.splitlines()) <= LONGEST


@pytest.mark.parametrize("name", names_of_ours())
def test_a_notebook_that_asks_and_its_checks_know_the_same_parameters(name):
    experiment = load_experiment(name)
    assert notebook_files.defaults(FOLDER / f"{experiment.notebook}.ipynb") == experiment.parameters().model_dump()
