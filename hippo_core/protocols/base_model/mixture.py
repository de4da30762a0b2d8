"""What is practised how often, and how it grows: the share of every drill, the number of facts, how many lessons come as blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hippo_core.protocols.base_model import drills
from hippo_core.protocols.base_model.lessons import UNKNOWN, Lesson, gold_only
from hippo_core.suites.types import Split

SHARES: dict[drills.Drill, float] = {
    drills.slots: 0.24,
    drills.journeys: 0.07,
    drills.nothing_said: 0.08,
    drills.last_mention: 0.07,
    drills.corrected_once: 0.06,
    drills.chains: 0.16,
    drills.tuples: 0.05,
    drills.plans: 0.05,
    drills.dialogue: 0.05,
    drills.needle: 0.04,
    drills.movements: 0.07,
    drills.public_stories: 0.03,
    drills.maps: 0.03,
    drills.open_maps: 0.02,
}
# From nothing, binding a word to its sentence is what takes longest: more of the lessons that teach it.
SHARES_FROM_NOTHING = SHARES | {
    drills.slots: 0.34,
    drills.journeys: 0.09,
    drills.chains: 0.20,
    drills.tuples: 0.03,
    drills.plans: 0.04,
    drills.dialogue: 0.04,
    drills.needle: 0.03,
    drills.movements: 0.05,
    drills.public_stories: 0.02,
    drills.open_maps: 0.01,
}
# A pretrained model soon has the rest: what it still lacks is telling many facts apart that share their words.
SHARES_LATER = SHARES | {
    drills.slots: 0.38,
    drills.journeys: 0.10,
    drills.nothing_said: 0.10,
    drills.last_mention: 0.05,
    drills.corrected_once: 0.05,
    drills.chains: 0.10,
    drills.tuples: 0.06,
    drills.dialogue: 0.02,
    drills.needle: 0.03,
    drills.movements: 0.05,
    drills.maps: 0.02,
}
# Synonyms above all: a model that has learnt to say "unknown" says it too often where every word is another.
SHARES_OTHER_WORDS = SHARES | {
    drills.other_words: 0.35,
    drills.slots: 0.15,
    drills.journeys: 0.06,
    drills.nothing_said: 0.04,
    drills.last_mention: 0.05,
    drills.corrected_once: 0.04,
    drills.chains: 0.08,
    drills.tuples: 0.04,
    drills.dialogue: 0.02,
    drills.maps: 0.02,
    drills.open_maps: 0.01,
}
# At the end many more words, so that a synonym is known by its meaning, and "unknown" for what is asked in the facts' own words.
SHARES_LAST = SHARES | {
    drills.wide_other_words: 0.26,
    drills.wide_slots: 0.14,
    drills.other_words: 0.08,
    drills.slots: 0.10,
    drills.journeys: 0.04,
    drills.plainly_unsaid: 0.12,
    drills.nothing_said: 0.0,
    drills.last_mention: 0.04,
    drills.corrected_once: 0.04,
    drills.chains: 0.07,
    drills.tuples: 0.02,
    drills.plans: 0.03,
    drills.dialogue: 0.01,
    drills.needle: 0.02,
    drills.movements: 0.02,
    drills.public_stories: 0.01,
    drills.maps: 0.01,
    drills.open_maps: 0.0,
}
BLOCKS = 0.68  # of the lessons in which the order of telling does not matter: half of all
PLAIN, GOLD_ONLY, EMPTY = 0.08, 0.06, 0.01


@dataclass(frozen=True)
class Curriculum:
    """How many facts a lesson has: up to `limit` until that share of the training is done; a share of long ones at the end.

    `shares` says how often each drill comes; `turns` has other shares, each from where that share of the training is done.
    """

    limits: tuple[tuple[float, int], ...]
    long_share: float
    long_limit: int
    shares: Mapping[drills.Drill, float]
    turns: tuple[tuple[float, Mapping[drills.Drill, float]], ...] = ()

    def draw(self, random: Random, progress: float) -> int:
        """The number of facts of the next lesson, when the share `progress` of the training is done."""
        limit = next((limit for until, limit in self.limits if progress < until), self.limits[-1][1])
        if limit == self.limits[-1][1] and random.random() < self.long_share:
            return random.randint(limit, self.long_limit)
        return random.randint(1, limit) if random.random() < 0.6 else random.randint(max(1, limit // 4), limit)

    def drill(self, random: Random, progress: float) -> drills.Drill:
        """The drill of the next lesson."""
        shares = next((shares for begin, shares in reversed(self.turns) if progress >= begin), self.shares)
        return random.choices(list(shares), list(shares.values()))[0]


def draw_lesson(random: Random, curriculum: Curriculum, progress: float, split: Split = "train") -> Lesson:
    """One lesson of the mixture."""
    n_facts = curriculum.draw(random, progress)
    while True:
        drill = curriculum.drill(random, progress)
        lesson = drill(random, n_facts if drill is drills.slots else min(n_facts, 20), split)
        if any(branch.question for branch in lesson.branches):
            break
    if random.random() < GOLD_ONLY:
        lesson = gold_only(random, lesson)
    elif random.random() < EMPTY:
        lesson = without_facts(lesson)
    blocks = not lesson.ordered and random.random() < BLOCKS
    return replace(lesson, blocks=blocks, plain=not blocks and random.random() < PLAIN)


def without_facts(lesson: Lesson) -> Lesson:
    """The lesson's questions with nothing to answer them from."""
    branches = tuple(replace(branch, answer=UNKNOWN, gold=(), guided=False, skill=UNKNOWN) for branch in lesson.branches if branch.question)
    return replace(lesson, facts=(), branches=branches)
