"""Imports go one way: a package imports only those before it, and no module itself by others; planning a grid loads no torch."""

import ast
import subprocess
import sys
from pathlib import Path

import rustworkx

PACKAGE = Path(__file__).resolve().parents[1] / "hippo_core"
RANKS = (
    ("files",),
    ("kernels",),
    ("models",),
    ("suites",),
    ("retrieval", "store"),
    ("methods", "delivery"),
    ("results",),
    ("experiments",),
    ("training",),
    ("lab",),
)
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}
MODULES = {
    ".".join(["hippo_core", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(path: Path, always: bool = False) -> set[str]:
    """The modules that a file imports; `always`: only those that it cannot be imported without."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if always and (isinstance(node, ast.FunctionDef) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= MODULES.keys() else {str(node.module), *names}
        waiting += ast.iter_child_nodes(node)
    return found


def part(module: str) -> str:
    return [*module.split("."), ""][1] if module.startswith("hippo_core.") else ""


def test_every_package_has_a_rank():
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert found == set(RANK) - {"files"}


def test_a_module_imports_only_what_stands_before_it():
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in sorted(imports(path))
        if part(module) in RANK and part(name) in RANK and part(name) != part(module) and RANK[part(name)] > RANK[part(module)]
    ]
    assert wrong == []


def test_no_module_needs_itself_to_be_imported():
    graph = rustworkx.PyDiGraph()
    number = {module: graph.add_node(module) for module in MODULES}
    for module, path in MODULES.items():
        graph.add_edges_from_no_data([(number[module], number[name]) for name in imports(path, always=True) - {module} if name in number])
    circles = [sorted(map(graph.get_node_data, one)) for one in rustworkx.strongly_connected_components(graph) if len(one) > 1]
    assert circles == []


def test_the_library_names_no_notebook_and_no_test():
    assert not [module for module, path in MODULES.items() if {"notebooks", "tests"} & {name.split(".")[0] for name in imports(path)}]


def test_the_command_line_plans_without_torch():
    code = "import sys; import hippo_core.lab.cli.commands; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
