"""Python source: as a syntax tree, and the files that a module comes from when it and all that it imports are counted."""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from hippo_core.files import has_checkout, root

TYPES_ONLY = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}  # conditions that no run meets
FACE = "hippo_core.extend"  # whoever imports a name from it imports the module that has it
INSTALLED = {"site-packages", "dist-packages"}  # folders of what the lock pins
_parser_lock = Lock()


def parsed(source: str) -> ast.Module:
    """The syntax tree of a module's source; SyntaxError where it is none.

    Up to 3.11.7 and 3.12.1 Python counts the depth of a tree that it builds in one place for all threads, and fails with SystemError where
    two build theirs at once (https://github.com/python/cpython/issues/106905).
    """
    with _parser_lock:
        return ast.parse(source)


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """The files of these modules and of all that they import, at any depth, by module name. Of Python's own and installed packages only
    those in `modules` count; of a kernel all versions, which are chosen when it runs; of a user's module the packages that it lies in,
    which Python runs first. A YAML file of a module's name beside it counts with the module."""
    waiting = list(modules)
    named = {_top(module) for module in waiting}
    files: dict[str, Path] = {}
    while waiting:
        module = waiting.pop()
        path = _file(module)
        if module in files or path is None or (_top(module) not in named and INSTALLED.intersection(path.parts)):
            continue
        files[module] = path
        if (words := path.with_suffix(".yaml")).is_file():  # its tables (hippo_core/files.py)
            files[f"{module}.yaml"] = words
        waiting += imports(module, path)
        if module.startswith("hippo_core.kernels.") and path.name == "__init__.py":
            waiting += [f"{module}.{version.stem}" for version in path.parent.glob("[a-z]*.py")]
        elif _top(module) != "hippo_core":
            waiting.append(module.rpartition(".")[0])
    return files


@cache
def imports(module: str, path: Path) -> frozenset[str]:
    """The modules that a module imports when it runs, anywhere in its file, with full names; `from a import b` counts as a and as a.b."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    return _imported(tuple(package), path.read_text(encoding="utf-8"))


@cache
def _imported(package: tuple[str, ...], text: str) -> frozenset[str]:
    """What a module of this text in this package imports. It follows from these two: `forget` leaves it, the same is not parsed twice."""
    names: set[str] = set()
    for node in _statements(parsed(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*start, *([node.module] if node.module else [])])
            if source == FACE:
                names |= {module for alias in node.names for module in _behind(alias.name)}
            else:
                names |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _behind(name: str) -> tuple[str, ...]:
    """The modules behind a name of the face that users' code imports."""
    return (module, f"{module}.{name}") if (module := behind_face().get(name)) else ()


@cache
def behind_face() -> dict[str, str]:
    """The module of each name of the face, from the imports that it lists for type checkers."""
    tree = parsed((Path(__file__).parent / "extend.py").read_text(encoding="utf-8"))
    listed = next(node for node in tree.body if isinstance(node, ast.If)).body
    return {alias.name: str(node.module) for node in listed if isinstance(node, ast.ImportFrom) for alias in node.names}


def forget() -> None:
    """Look for modules, and read them, anew when they are asked for next."""
    invalidate_caches()
    for cached in (imports, _file, _folder_of):
        cached.cache_clear()


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a part of a module that can run, at any depth; expressions, which are many more, are not walked."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        if block == "body" and isinstance(node, ast.If) and ast.unparse(node.test) in TYPES_ONLY:
            continue
        for inner in getattr(node, block, ()):
            yield inner
            yield from _statements(inner)


@cache
def _file(module: str) -> Path | None:
    """The file of a module, or the `__init__.py` of a package; None for a name that is neither."""
    top = _top(module)
    folder = root() if top == "hippo_core" and has_checkout() else _folder_of(top)
    if folder is None:
        return None
    path = folder.joinpath(*module.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def _top(module: str) -> str:
    return module.partition(".")[0]


@cache
def _folder_of(top: str) -> Path | None:
    """The folder that a top-level package or module lies in; None for one of Python's own, or that is not there."""
    spec = None if top in sys.stdlib_module_names or not top else find_spec(top)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    return Path(spec.origin).parent if spec.origin else None
