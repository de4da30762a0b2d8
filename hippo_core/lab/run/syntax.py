"""Python source as a syntax tree, safely from many threads: the cells of a grid are started by as many threads as there are jobs."""

import ast
from threading import Lock

_one_at_a_time = Lock()


def parsed(source: str) -> ast.Module:
    """The syntax tree of a module's source; SyntaxError where it is none.

    Up to 3.11.7 and 3.12.1 Python counts the depth of a tree that it builds in one place for all threads, and fails with SystemError where
    two build theirs at once (https://github.com/python/cpython/issues/106905).
    """
    with _one_at_a_time:
        return ast.parse(source)
