"""The words of the suites (lexicon.yaml), and which of them no training ever sees.

`training_words` leaves out what is held out, a quarter of all synonyms; questions that use these are a slice of their own. Names are split
the same way, by hash, and so are invented ones, which nobody bears.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple, TypeVar
from zlib import crc32

from faker.providers.person import en_GB, en_IE, en_NZ, en_US

from hippo_core.files import tables

Group = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verb:
    """An action in the past tense (which is also its participle) and in the base form."""

    past: str
    base: str


def verb_group(*words: str) -> tuple[Verb, ...]:
    """Verbs of one meaning, each "past/base"."""
    return tuple(Verb(*word.split("/")) for word in words)


TABLES = tables(__file__)
ACTIONS, MOTIONS = (tuple(verb_group(*group) for group in TABLES[kind]) for kind in ("actions", "motions"))
OBJECTS: tuple[Group, ...] = TABLES["things"]
PLACES: tuple[Group, ...] = TABLES["places"]
TIMES: tuple[tuple[str, str], ...] = tuple((before, time) for before, *times in TABLES["times"] for time in times)
CITIES: tuple[str, ...] = TABLES["cities"]
SURNAMES: tuple[str, ...] = TABLES["surnames"]
BABI_PEOPLE = frozenset({"Mary", "John", "Sandra", "Daniel"})


HELD_OUT = frozenset(  # all synonyms that no training sees
    {form for group in ACTIONS + MOTIONS for form in (group[-1].past, group[-1].base)}
    | {group[1] for groups in (OBJECTS, PLACES) for group in groups[::2]}
)


class Pools(NamedTuple):
    """The groups of words that events are drawn from."""

    actions: tuple[tuple[Verb, ...], ...]
    motions: tuple[tuple[Verb, ...], ...]
    objects: tuple[Group, ...]
    places: tuple[Group, ...]


POOLS = Pools(ACTIONS, MOTIONS, OBJECTS, PLACES)


def training_words(group: Sequence[T]) -> tuple[T, ...]:
    """The words or the verbs of a group that training may use."""
    return tuple(word for word in group if getattr(word, "past", word) not in HELD_OUT)


@cache
def names(held_out: bool) -> tuple[str, ...]:
    """Faker's given names of three to eight letters, of four countries: a sixth is held out from lessons (less the bAbI people)."""
    lists = (country.Provider.first_names for country in (en_GB, en_IE, en_NZ, en_US))
    listed = {name for some in lists for name in some if 3 <= len(name) <= 8 and name.isascii() and name.isalpha() and name.istitle()}
    chosen = sorted(name for name in listed.difference(TABLES["no_names"]) if is_held_out(name) == held_out)
    return tuple(name for name in chosen if not (held_out and name in BABI_PEOPLE))


def is_held_out(name: str) -> bool:
    """Whether lessons never use this name, given or invented."""
    return crc32(name.encode()) % 6 == 0


def is_invented(name: str) -> bool:
    """Whether nobody bears this name."""
    return name not in given_names()


@cache
def given_names() -> frozenset[str]:
    """All given names, whether lessons use them or not."""
    return frozenset(names(held_out=True)) | frozenset(names(held_out=False)) | BABI_PEOPLE


def invented_name(random: Random, held_out: bool) -> str:
    """A name that nobody bears: Larepux, Kunanert."""
    while True:
        syllables = (random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(3))
        name = "".join(syllables).capitalize() + random.choice(("k", "x", "n", "rt", "sh"))
        if is_invented(name) and is_held_out(name) == held_out:
            return name


def article(words: str) -> str:
    """The words with the indefinite article that fits: "a lamp", "an umbrella"."""
    return f"{'an' if words[0] in 'aeio' or words.startswith('um') else 'a'} {words}"
