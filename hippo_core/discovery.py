"""The members of a package, as its suites or defences, which are discovered in its source: whoever adds one adds a file, and no list."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.plugins import imported, is_path, located
from hippo_core.source_code import parsed

ORDER = 1000  # of members that say none


@dataclass(frozen=True)
class Member:
    """A member of a package: its module path, and the constants that its class, or the call that made it, is given by name."""

    path: str
    constants: Mapping[str, Any]

    @property
    def module(self) -> str:
        """The module that it is in."""
        return self.path.partition(":")[0]


@cache
def members(package: str, made: str = "") -> dict[str, Member]:
    """A package's members by their names, read from its source: nothing is imported, so that no torch is loaded.

    Args:
        made: of what class members are instances: a variable that holds a call of it, or of `replace`, with a constant name
            (`EPISODIC = Suite("episodic", ...)`, `MEMORY = replace(ANSWER, name="memory")`). Without it a member is a class whose body
            says `name = "..."`.

    Returns:
        In the order of what they say as `order`, then of their modules.

    Raises:
        LabError: two members have one name.
    """
    by_name: dict[str, Member] = {}
    for module, path in _modules(package):
        for target, constants in _candidates(parsed(path.read_text(encoding="utf-8")), made):
            name = constants.get("name")
            if isinstance(name, str) and name:
                if name in by_name:
                    raise LabError(f"{package}: {by_name[name].path} and {module}:{target} are both called {name!r}; rename one")
                by_name[name] = Member(f"{module}:{target}", constants)
    return dict(sorted(by_name.items(), key=lambda entry: entry[1].constants.get("order", ORDER)))


def member(package: str, name: str, what: str) -> Any:
    """The member of this name, loaded; LabError with the names that there are otherwise."""
    return imported(find_member(package, name, what).path, f"{what} {name}")


def find_member(package: str, name: str, what: str, made: str = "") -> Member:
    """The member of this name, or one's own of this module path; neither is loaded. LabError with what is legal otherwise."""
    known = members(package, made)
    if is_path(name):
        located(name, f"{what} {name}")
        return Member(name, {})
    if name not in known:
        raise unknown(what, name, [*known, "package.module:NAME"])
    return known[name]


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(package)
    for folder in map(Path, (spec and spec.submodule_search_locations) or ()):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)]), path


def _candidates(tree: ast.Module, made: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names at the top of a module that may stand for members, and the constants that each is given."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not made:
            pairs = [(target, line.value) for line in node.body if isinstance(line, ast.Assign) for target in line.targets]
            yield node.name, _constants((ast.unparse(target), value) for target, value in pairs)
        if made and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call, maker = node.value, ast.unparse(node.value.func)
            given = [(key.arg, key.value) for key in call.keywords if key.arg]
            given += [("name", value) for value in call.args[:1] if maker == made]
            yield ast.unparse(node.targets[0]), _constants(given) if maker in (made, "replace") else {}


def _constants(pairs: Iterable[tuple[str, ast.expr]]) -> dict[str, Any]:
    return {name: value.value for name, value in pairs if isinstance(value, ast.Constant)}
