"""`python -m tests.names` prints every public name of the library with the first sentence of its docstring."""

import ast
from collections.abc import Iterator

from hippo_core.files import root

HEAD = """# Names

Every public class and function with the first sentence of its docstring, by module. docs/words.md has the terms that they are made of.
"""


def page() -> str:
    """All of it as markdown."""
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
    print(page())
