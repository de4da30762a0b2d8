"""What is practised how often, and how it grows: the share of every drill, the number of facts, how many lessons come as blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hippo_core.suites.types import Split
from hippo_core.training import tasks
from hippo_core.training.lessons import UNKNOWN, Lesson, gold_only

# How often each drill comes, in six mixtures:
#   the usual one, whose drills are examined as well;
#   for a model from nothing: binding a word to its sentence is what takes longest, so more of the lessons that teach it;
#   later, for a pretrained model, which soon has the rest: what it still lacks is telling many facts apart that share their words;
#   synonyms above all: a model that has learnt to say "unknown" says it too often where every word is another;
#   then many more words, so that a synonym is known by its meaning, and "unknown" for what is asked in the facts' own words;
#   at the end half of all in the words of the bank of relations, so that a relation is read that no lesson had.
TABLE: dict[tasks.Drill, tuple[float, ...]] = {
    tasks.slots: (0.24, 0.34, 0.38, 0.15, 0.10, 0.06),
    tasks.journeys: (0.07, 0.09, 0.10, 0.06, 0.04, 0.02),
    tasks.nothing_said: (0.08, 0.08, 0.10, 0.04, 0.00, 0.02),
    tasks.last_mention: (0.07, 0.07, 0.05, 0.05, 0.04, 0.04),
    tasks.corrected_once: (0.06, 0.06, 0.05, 0.04, 0.04, 0.03),
    tasks.chains: (0.16, 0.20, 0.10, 0.08, 0.07, 0.08),
    tasks.tuples: (0.05, 0.03, 0.06, 0.04, 0.02, 0.01),
    tasks.plans: (0.05, 0.04, 0.05, 0.05, 0.03, 0.02),
    tasks.dialogue: (0.05, 0.04, 0.02, 0.02, 0.01, 0.02),
    tasks.needle: (0.04, 0.03, 0.03, 0.04, 0.02, 0.02),
    tasks.movements: (0.07, 0.05, 0.05, 0.07, 0.02, 0.02),
    tasks.public_stories: (0.03, 0.02, 0.03, 0.03, 0.01, 0.01),
    tasks.maps: (0.03, 0.03, 0.02, 0.02, 0.01, 0.01),
    tasks.open_maps: (0.02, 0.01, 0.02, 0.01, 0.00, 0.00),
    tasks.wide_other_words: (0.00, 0.00, 0.00, 0.00, 0.26, 0.06),
    tasks.wide_slots: (0.00, 0.00, 0.00, 0.00, 0.14, 0.03),
    tasks.other_words: (0.00, 0.00, 0.00, 0.35, 0.08, 0.03),
    tasks.bank_of_relations: (0.00, 0.00, 0.00, 0.00, 0.00, 0.50),
    tasks.plainly_unsaid: (0.00, 0.00, 0.00, 0.00, 0.12, 0.02),
}
SHARES, SHARES_FROM_NOTHING, SHARES_LATER, SHARES_OTHER_WORDS, SHARES_WIDE, SHARES_RELATIONS = (
    {drill: shares[mixture] for drill, shares in TABLE.items() if shares[mixture]} for mixture in range(6)
)
EXAMINED = (*SHARES, tasks.bank_of_relations)  # on validation lessons, while a model learns
BLOCKS = 0.68  # of the lessons in which the order of telling does not matter: half of all
PLAIN, GOLD_ONLY, EMPTY = 0.08, 0.06, 0.01


@dataclass(frozen=True)
class Curriculum:
    """How many facts a lesson has, and which drill it is."""

    limits: tuple[tuple[float, int], ...]  # facts at most, until that share of the training is done
    long_share: float  # of long lessons at the end
    long_limit: int
    shares: Mapping[tasks.Drill, float]  # how often each drill comes
    turns: tuple[tuple[float, Mapping[tasks.Drill, float]], ...] = ()  # other shares from where that share of the training is done

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
