"""What is practised how often, and how it grows: the share of every drill, the number of facts, how many lessons come as blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hippo_core.suites.types import Split
from hippo_core.training import tasks
from hippo_core.training.lessons import UNKNOWN, Lesson, gold_only

SHARES: dict[tasks.Drill, float] = {
    tasks.slots: 0.24,
    tasks.journeys: 0.07,
    tasks.nothing_said: 0.08,
    tasks.last_mention: 0.07,
    tasks.corrected_once: 0.06,
    tasks.chains: 0.16,
    tasks.tuples: 0.05,
    tasks.plans: 0.05,
    tasks.dialogue: 0.05,
    tasks.needle: 0.04,
    tasks.movements: 0.07,
    tasks.public_stories: 0.03,
    tasks.maps: 0.03,
    tasks.open_maps: 0.02,
}
# From nothing, binding a word to its sentence is what takes longest: more of the lessons that teach it.
SHARES_FROM_NOTHING = SHARES | {
    tasks.slots: 0.34,
    tasks.journeys: 0.09,
    tasks.chains: 0.20,
    tasks.tuples: 0.03,
    tasks.plans: 0.04,
    tasks.dialogue: 0.04,
    tasks.needle: 0.03,
    tasks.movements: 0.05,
    tasks.public_stories: 0.02,
    tasks.open_maps: 0.01,
}
# A pretrained model soon has the rest: what it still lacks is telling many facts apart that share their words.
SHARES_LATER = SHARES | {
    tasks.slots: 0.38,
    tasks.journeys: 0.10,
    tasks.nothing_said: 0.10,
    tasks.last_mention: 0.05,
    tasks.corrected_once: 0.05,
    tasks.chains: 0.10,
    tasks.tuples: 0.06,
    tasks.dialogue: 0.02,
    tasks.needle: 0.03,
    tasks.movements: 0.05,
    tasks.maps: 0.02,
}
# Synonyms above all: a model that has learnt to say "unknown" says it too often where every word is another.
SHARES_OTHER_WORDS = SHARES | {
    tasks.other_words: 0.35,
    tasks.slots: 0.15,
    tasks.journeys: 0.06,
    tasks.nothing_said: 0.04,
    tasks.last_mention: 0.05,
    tasks.corrected_once: 0.04,
    tasks.chains: 0.08,
    tasks.tuples: 0.04,
    tasks.dialogue: 0.02,
    tasks.maps: 0.02,
    tasks.open_maps: 0.01,
}
# At the end many more words, so that a synonym is known by its meaning, and "unknown" for what is asked in the facts' own words.
SHARES_LAST = SHARES | {
    tasks.wide_other_words: 0.26,
    tasks.wide_slots: 0.14,
    tasks.other_words: 0.08,
    tasks.slots: 0.10,
    tasks.journeys: 0.04,
    tasks.plainly_unsaid: 0.12,
    tasks.nothing_said: 0.0,
    tasks.last_mention: 0.04,
    tasks.corrected_once: 0.04,
    tasks.chains: 0.07,
    tasks.tuples: 0.02,
    tasks.plans: 0.03,
    tasks.dialogue: 0.01,
    tasks.needle: 0.02,
    tasks.movements: 0.02,
    tasks.public_stories: 0.01,
    tasks.maps: 0.01,
    tasks.open_maps: 0.0,
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
    shares: Mapping[tasks.Drill, float]
    turns: tuple[tuple[float, Mapping[tasks.Drill, float]], ...] = ()

    def draw(self, random: Random, progress: float) -> int:
        """The number of facts of the next lesson, when the share `progress` of the training is done."""
        limit = next((limit for until, limit in self.limits if progress < until), self.limits[-1][1])
        if limit == self.limits[-1][1] and random.random() < self.long_share:
            return random.randint(limit, self.long_limit)
        return random.randint(1, limit) if random.random() < 0.6 else random.randint(max(1, limit // 4), limit)

    def drill(self, random: Random, progress: float) -> tasks.Drill:
        """The drill of the next lesson."""
        shares = next((shares for begin, shares in reversed(self.turns) if progress >= begin), self.shares)
        return random.choices(list(shares), list(shares.values()))[0]


def draw_lesson(random: Random, curriculum: Curriculum, progress: float, split: Split = "train") -> Lesson:
    """One lesson of the mixture."""
    n_facts = curriculum.draw(random, progress)
    while True:
        drill = curriculum.drill(random, progress)
        lesson = drill(random, n_facts if drill is tasks.slots else min(n_facts, 20), split)
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
