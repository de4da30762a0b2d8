"""`python -m tests.names` writes docs/names.md: every public name of the library with the first sentence of its docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

from hippo_core.files import root

PAGE = Path("docs/names.md")
HEAD = """# Names

Every public class and function with the first sentence of its docstring, by module, as `python -m tests.names` writes them.
[words.md](words.md) has the terms that they are made of.
"""


def page() -> str:
    """The text of docs/names.md."""
    package = root() / "hippo_core"
    parts = [HEAD]
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if lines := list(names(tree)):
            module = ".".join(path.relative_to(root()).with_suffix("").parts).removesuffix(".__init__")
            parts.append(f"\n## {module}\n\n{sentence(tree)}\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def names(tree: ast.Module) -> Iterator[str]:
    """A line for each public definition of a module, and for each public method of its classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield f"- `{node.name}`: {sentence(node)}"
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")]
                yield from (
                    f"  - `{one.name}`: {sentence(one)}" for one in methods if sentence(one) and not sentence(one).startswith("See `")
                )


def sentence(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """The first paragraph of a docstring up to the end of its first sentence."""
    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""


if __name__ == "__main__":
    (root() / PAGE).write_text(page(), encoding="utf-8")
