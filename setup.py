"""How a wheel is made: pyproject.toml says all but what travels of params/ and data/, which lie outside the package.

A wheel holds copies of these files below `hippo_core/shipped` (hippo_core/files.py); the source tree, and `pip install -e .`, have none.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (
    *("params/*.yaml", "params/criteria/*.yaml", "params/grids/*.yaml", "params/models/*.yaml", "params/presets/**/*.yaml"),
    *(
        "params/suites/*.yaml",
        "params/gates/*.yaml",
        "data/paired/**/*",
        "data/notes/*.yaml",
        "data/lessons/*.yaml",
        "data/reworded/*.yaml",
        "data/relations/**/*.yaml",
    ),
    *(
        *(
            f"data/weights/minilm/{part}"
            for part in ("confidence.*", "head-1337.*", "pieces-1337.*", "statements.*", "tags.*", "cuts.*", "places.*")
        ),
        "data/weights/relational/*",
    ),
    *(f"data/weights/{of}/*.{kind}" for of in ("hippo-tiny", "smollm2-135m-reader") for kind in ("json", "safetensors", "md")),
    "data/weights/hippo-tiny/*.jinja",
)


class BuildWithShipped(build_py):
    """The package's own files, and those that it reads from a checkout."""

    def finalize_options(self):
        """A wheel is hippo_core alone; an editable install has recipes, too."""
        super().finalize_options()
        if not self.editable_mode:
            self.packages = [name for name in self.packages if name.partition(".")[0] == "hippo_core"]

    def run(self):
        """Build from nothing, so that no file of an earlier build travels; in editable mode nothing is copied."""
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "hippo_core"), ignore_errors=True)
        super().run()
        for target, source in self._shipped().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(source, target, preserve_mode=False)

    def get_outputs(self, include_bytecode=True):
        """What is built."""
        return [*super().get_outputs(include_bytecode), *self._shipped()]

    def get_source_files(self):
        """What an sdist must hold, so that a wheel can be made of it."""
        return [*super().get_source_files(), *_sources()]

    def _shipped(self):
        """Where each shipped file lies in the build, and where it comes from."""
        place = Path(self.build_lib, "hippo_core", "shipped")
        return {} if self.editable_mode else {str(place / source): source for source in _sources()}


def _shipped(path):
    """Whether a path is a file that somebody wrote."""
    return path.is_file() and "__pycache__" not in path.parts


def _sources():
    """The shipped files, by their paths from here."""
    found = {pattern: sorted(str(path) for path in Path().glob(pattern) if _shipped(path)) for pattern in SHIPPED}
    if empty := [pattern for pattern, files in found.items() if not files]:
        raise SystemExit(f"no file matches {', '.join(empty)}; build the wheel in a whole checkout")
    return [path for files in found.values() for path in files if not Path(path).name.startswith(".")]


setup(cmdclass={"build_py": BuildWithShipped})
