"""hippo-tiny with its memory, taught once a session by each preset that these tests ask for."""

from functools import cache, cached_property

import pytest

from hippo_core.evaluation.run import answer
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.questions import run
from hippo_core.store import store_path
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds

SESSION = "hei_tests"


class Bench:
    """A few worlds of a suite, taught and asked by presets. Stores are shared by presets that teach the same."""

    def __init__(self, lm, suite, folder, n=20):
        self.lm, self.suite, self.folder = lm, get_suite(suite), folder
        self.worlds = list(worlds(suite, "default", n, 1337, "val", lm.spec.context_limit))
        self.others = list(worlds(suite, "default", n, 2025, "val", lm.spec.context_limit))
        self._rows = cache(self._asked)
        self._taught = {}

    def method(self, name, overrides=None):
        """The method of a preset, bound to the model."""
        preset = load_preset(name, overrides)
        return preset.method(self.lm, preset.settings)

    def taught(self, name, overrides=None):
        """The folder of a store that was taught by a preset, and the rows of it."""
        key = str(load_preset(name, overrides).of_step("teach"))
        if key not in self._taught:
            path = self.folder / f"{self.suite.name}-{len(self._taught)}"
            self._taught[key] = path, run.teach(self.method(name, overrides), self.suite, self.worlds, self.others, path, SESSION)
        return self._taught[key]

    def ask(self, name, **overrides):
        return self._rows(name, tuple((key.replace("__", "."), value) for key, value in overrides.items()))

    def _asked(self, name, overrides):
        return self.test(name, dict(overrides))

    def test(self, name, overrides=None, worlds=None, regime="delayed", store=None, **more):
        """What a preset's method answers from the store that it was taught, or from another one."""
        stores = {"": store_path(store or self.taught(name, overrides)[0], SESSION, "hei_nw")}
        return run.test(self.method(name, overrides), self.suite, worlds or self.worlds, regime, stores, **more)

    @cached_property
    def plain(self):
        return answer(self.lm, self.suite, self.worlds, self.method("baselines/span_short"))


@pytest.fixture(scope="session")
def hippo():
    return load(load_spec("hippo-tiny"), "cpu")


@pytest.fixture(scope="session")
def benches(hippo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return cache(lambda suite: Bench(hippo, suite, folder, n=10 if suite == "episodic_cross" else 20))
