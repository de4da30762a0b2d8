"""Imports go one way: a package imports only those before it, and no module itself by others; the command line loads no torch."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import rustworkx

from hippo_core.lab.run.fingerprints import SHARED
from hippo_core.protocols.base.experiment import load_experiment, names_of_ours
from hippo_core.source_code import closure

PACKAGE = Path(__file__).resolve().parents[1] / "hippo_core"
RANKS = (
    ("errors", "files", "plugins", "source_code", "discovery", "spoken", "text"),
    ("kernels",),
    ("models",),
    ("providers",),
    ("suites",),
    ("retrieval", "store"),
    ("methods", "delivery"),
    ("results",),
    ("evaluation",),
    ("training",),
    ("live",),
    ("protocols",),
    ("lab",),
    ("dashboard",),
)
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
MODULES = {
    ".".join(["hippo_core", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(path: Path, runs: bool = False) -> set[str]:
    """The modules that a file imports; `runs`: only those that it imports when it runs, at its top or in a function."""
    names_imported: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if runs and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names_imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            names_imported |= names if names <= MODULES.keys() else {str(node.module), *names}
        waiting += ast.iter_child_nodes(node)
    return names_imported


def part(module: str) -> str:
    return [*module.split("."), ""][1] if module.startswith("hippo_core.") else ""


def test_every_package_has_a_rank():
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages == {name for name in RANK if (PACKAGE / name).is_dir()}


def test_a_module_imports_only_what_stands_before_it():
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in sorted(imports(path))
        if part(module) in RANK and part(name) in RANK and part(name) != part(module) and RANK[part(name)] > RANK[part(module)]
    ]
    assert wrong == []


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    graph, number = rustworkx.PyDiGraph(), {}
    for names in edges:
        for name in names:
            number[name] = number[name] if name in number else graph.add_node(name)
        graph.add_edge(number[names[0]], number[names[1]], None)
    return [
        sorted(map(graph.get_node_data, component)) for component in rustworkx.strongly_connected_components(graph) if len(component) > 1
    ]


def edges() -> list[tuple[str, str]]:
    return [(module, name) for module, path in MODULES.items() for name in imports(path, runs=True) - {module} if name in MODULES]


def test_no_module_comes_back_to_itself_by_what_it_imports_even_in_its_functions():
    assert circles(edges()) == []


def test_the_folders_of_the_lab_import_each_other_one_way():
    folders = [
        (".".join(a.split(".")[:3]), ".".join(b.split(".")[:3])) for a, b in edges() if "hippo_core.lab." in a and "hippo_core.lab." in b
    ]
    assert circles((a, b) for a, b in folders if a != b) == []


# How many files a cell's rows hang on, at most: each that is changed makes its records out of date. A number here may only fall.
HASHED = {
    **{"answer": 38, "memory": 53, "forgetting": 31, "conversation": 53, "cache": 61, "paired": 89},
    **{"consolidation": 112, "sleeps": 113},
}
OF_NO_NUMBER = ("figures", "report", "lab", "cli", "widgets", "dashboard", "matplotlib", "seaborn")


@pytest.mark.parametrize("name", names_of_ours())
def test_a_cell_hangs_on_the_files_that_its_numbers_depend_on_alone(name):
    files = {module: path for module, path in closure([load_experiment(name).run, *SHARED]).items() if path.suffix == ".py"}
    assert len(files) <= HASHED[name], f"{name}: {len(files)} files; import less, or from a smaller module, in what makes its rows"
    reached = {name for module, path in files.items() for name in (module, *imports(path, runs=True))}
    drawn = sorted(name for name in reached if set(name.split(".")) & {*OF_NO_NUMBER})
    assert drawn == [], f"{name}: pictures of a record come from Experiment.files, words from its report: {drawn}"


@pytest.mark.parametrize("face", ["training", "training.consolidation", "results.statistics", "evaluation"])
def test_the_face_of_a_folder_whose_files_are_imported_alone_imports_nothing(face):
    assert imports(MODULES[f"hippo_core.{face}"]) == set(), f"import from the module itself, not from hippo_core.{face}"


def test_the_library_imports_no_notebook_no_test_no_recipe_and_no_benchmark():
    leaves = {"notebooks", "tests", "recipes", "benchmarks"}
    assert not [module for module, path in MODULES.items() if leaves & {name.split(".")[0] for name in imports(path)}]


def test_the_command_line_starts_without_torch_and_statistics():
    """Seconds of imports, of each command that most need not do."""
    code = "import sys; import hippo_core.lab.cli.commands; sys.exit(bool({'torch', 'transformers', 'pandas', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_class_has_a_name_that_no_other_class_has():
    named: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(module)
    twice = {name: modules for name, modules in named.items() if len(modules) > 1}
    assert not twice, f"say in the name what sets each apart, in words of the field: {twice}"


def test_protocols_import_none_of_each_other():
    def folder(module: str) -> str:
        return [*module.removeprefix("hippo_core.protocols.").split("."), ""][0] if module.startswith("hippo_core.protocols.") else ""

    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in sorted(imports(path))
        if folder(module) and folder(name) not in ("", "base", folder(module))
    ]
    assert not wrong, (
        f"ask for another protocol by its name, load_experiment('memory'), or move what both need into protocols/base: {wrong}"
    )


@pytest.mark.parametrize("folder", sorted(path.name for path in (PACKAGE / "protocols").iterdir() if (path / "run.py").exists()))
def test_a_protocol_is_read_in_its_folder(folder):
    """And what says what it measures, and what it can be told, is read without torch and pandas."""
    there = {path.stem for path in (PACKAGE / "protocols" / folder).iterdir()}
    assert {"protocol", "run", "report"} <= there, sorted(there)
    code = (
        f"import sys; import hippo_core.protocols.{folder}.protocol; sys.exit(bool({{'torch', 'pandas', 'matplotlib'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, f"{folder}/protocol.py loads what only a run needs"


def test_kernels_run_with_torch_and_what_compiles_them_alone():
    """They are taken into programs that have nothing else of the lab's."""
    code = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(("pandas", "yaml", "pydantic", "transformers", "scipy", "matplotlib", "jinja2", "typer")))
import torch, hippo_core.kernels
names = [one.name for one in pkgutil.walk_packages(hippo_core.kernels.__path__, "hippo_core.kernels.") if "triton" not in one.name]
[importlib.import_module(name) for name in names]
hippo_core.kernels.kwta(torch.rand(2, 8), 2)
others = {name for name in sys.modules if name.startswith("hippo_core.") and name.split(".")[1] not in ("kernels", "errors")}
sys.exit(", ".join(sorted(others)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"a kernel imports torch, numpy, numba, triton and hippo_core.errors alone: {done.stderr[-500:]}"


# Lines of Python at most. A number here may only fall; who must raise one says in the lab book what was deleted first.
LINES = {"hippo_core": 59_720, "recipes": 4_330, "benchmarks": 6_860, "tests": 40_560}


@pytest.mark.parametrize("folder", LINES)
def test_the_code_does_not_grow(folder):
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (PACKAGE.parent / folder).rglob("*.py"))
    assert count <= LINES[folder], f"{folder} has {count} lines of {LINES[folder]}: delete what the change makes superfluous"
    assert count > 0.97 * LINES[folder], f"{folder} has {count} lines: lower its ceiling to that"


TREE = 60_000_000  # bytes of all files in git


def test_the_tree_stays_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PACKAGE.parent, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [PACKAGE.parent / name for name in listed.stdout.split("\0") if name]
    assert sum(path.stat().st_size for path in files if path.is_file()) <= TREE, "smaller figures, fewer rows, or weights as a package"


# How often functions, classes, arguments and variables are named by words that say nothing to a reader; a number may only fall. What is
# left are places of maps, rooms of houses, and fields of stores, records and grids.
WORDS = {
    "place": 136,
    "held": 30,
    "room": 25,
    "say": 37,
    "side": 8,
    "way": 7,
    "together": 4,
    "told": 4,
    "said": 2,
    "met": 5,
    "found": 0,
    "alike": 0,
    "brought": 0,
    "gone": 0,
    "sure": 0,
    "sureness": 0,
    "heard": 0,
}


def test_names_are_words_of_the_field():
    """`told`, `found` or `way` name nothing: write statements, matches, route, update_rule, or what else it is."""
    count = dict.fromkeys(WORDS, 0)
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "name", None) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
            name = node.arg if isinstance(node, ast.arg) else name
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else name
            for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name or ""):
                if (word := word.lower().removesuffix("s")) in count:
                    count[word] += 1
    assert {word: n for word, n in count.items() if n > WORDS[word]} == {}, "take the word that papers and libraries use"
