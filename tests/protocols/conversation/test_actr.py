"""ACT-R against cases worked by hand, and against pyactup where that is installed (`make peers`)."""

import math
from random import Random

import pytest

from hippo_core.protocols.conversation.dialogue import Turn
from hippo_core.protocols.conversation.techniques import load_technique
from hippo_core.protocols.conversation.techniques.actr import ACTR, ACTRSettings, base_level, logistic, spreading, uses_of
from hippo_core.protocols.conversation.techniques.base import TechniqueContext


@pytest.mark.parametrize(
    ("uses", "now", "decay", "level"),
    [
        ([0], 1, 0.5, 0.0),  # ln 1
        ([0], 4, 0.5, -math.log(2)),  # ln 4^-.5
        ([0, 3], 4, 0.5, math.log(1.5)),  # ln (1/2 + 1)
        ([0, 5, 8], 9, 0.5, math.log(1 / 3 + 1 / 2 + 1)),
        ([2, 6], 10, 1.0, math.log(1 / 8 + 1 / 4)),
        ([4], 4, 0.5, -math.inf),  # a use now is not yet one
    ],
)
def test_base_level_as_by_hand(uses, now, decay, level):
    assert base_level(uses, now, decay) == pytest.approx(level, abs=1e-9)


def test_spreading_as_by_hand():
    settings = ACTRSettings(strength=2.0)
    fan = {"lea": 1, "lives": 4}
    both = spreading(["lea", "lives", "unheard"], frozenset({"lea", "lives"}), fan, settings)
    assert both == pytest.approx(0.5 * 2.0 + 0.5 * (2.0 - math.log(4)), abs=1e-9)
    assert spreading(["lea", "lives"], frozenset({"lives"}), fan, settings) == pytest.approx(1.0 - math.log(2), abs=1e-9)
    assert spreading(["unheard"], frozenset({"lea"}), fan, settings) == 0.0


def test_noise_is_logistic():
    random = Random(3)
    drawn = [logistic(random, 0.25) for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0, abs=0.01)
    assert sum(value**2 for value in drawn) / len(drawn) == pytest.approx(math.pi**2 * 0.25**2 / 3, rel=0.05)
    assert logistic(random, 0.0) == 0.0


def turns(*texts):
    return [[Turn(speaker="user", text=text)] for text in texts]


def test_every_later_mention_of_a_name_is_a_use():
    dialogue_turns = turns("Lea lives in Rome.", "I see.", "Omar met Lea.", "Omar went home.")
    assert uses_of(dialogue_turns) == [[0, 2], [1], [2, 3], [3]]
    chunks = [[dialogue_turns[0][0], dialogue_turns[1][0]], [dialogue_turns[2][0], dialogue_turns[3][0]]]
    assert uses_of(chunks) == [[0, 1, 2], [2, 3]]


def test_activation_ranks_by_recency_frequency_and_fit():
    dialogue_turns = turns("Lea likes tea.", "Omar likes milk.", "Ivo likes cocoa.")
    texts = [part[0].text for part in dialogue_turns]
    assert list(ACTR(TechniqueContext(None)).rank(texts, dialogue_turns)("What does Omar like?")) == [1, 2, 0]
    assert list(load_technique("actr_base", TechniqueContext(None)).rank(texts, dialogue_turns)("What does Omar like?")) == [2, 1, 0]


def test_base_level_equals_pyactup():
    pyactup = pytest.importorskip("pyactup")
    memory = pyactup.Memory(noise=0, decay=0.5, threshold=None)
    memory.activation_history = True
    random, uses = Random(5), []
    for step in range(40):
        if random.random() < 0.3 or step == 0:
            uses.append(memory.time)
            memory.learn({"name": "Lea"})
        memory.advance()
    memory.activation_history = []
    memory.retrieve({"name": "Lea"})
    [seen] = memory.activation_history
    assert base_level(uses, memory.time, 0.5) == pytest.approx(seen["activation"], abs=1e-6)
