"""hippo-tiny with its memory, taught once a session by each preset that these tests ask for."""

from functools import cache

import pytest

from hippo_core.experiments import memory
from hippo_core.experiments.answer.run import evaluate
from hippo_core.methods import load_memory, load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.build import worlds

SESSION = "hei_tests"


class Bench:
    """A few worlds of a suite, taught and asked by presets. Stores are shared by presets that teach the same."""

    def __init__(self, lm, suite, folder, n=20):
        self.lm, self.suite, self.folder = lm, get_suite(suite), folder
        self.worlds = list(worlds(suite, "default", n, 1337, "val", lm.spec.context_limit))
        self.others = list(worlds(suite, "default", n, 2025, "val", lm.spec.context_limit))
        self._rows = cache(self._asked)
        self._taught = {}

    def taught(self, preset):
        key = str(preset.of_phase("teach"))
        if key not in self._taught:
            place = self.folder / f"{self.suite.name}-{len(self._taught)}"
            self._taught[key] = place, memory.teach(self.lm, self.suite, self.worlds, self.others, preset, place, SESSION)
        return self._taught[key]

    def ask(self, name, **overrides):
        return self._rows(name, tuple((key.replace("__", "."), value) for key, value in overrides.items()))

    def _asked(self, name, overrides):
        preset = load_memory(name, dict(overrides))
        place, _ = self.taught(preset)
        return memory.test(self.lm, self.suite, self.worlds, preset, "delayed", place, SESSION)

    @property
    def plain(self):
        return evaluate(self.lm, self.suite, self.worlds, load_preset("baselines/span_short"), "delayed")


@pytest.fixture(scope="session")
def hippo():
    return load(load_spec("hippo-tiny"), "cpu")


@pytest.fixture(scope="session")
def benches(hippo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return cache(lambda suite: Bench(hippo, suite, folder))
