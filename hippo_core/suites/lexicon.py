"""The words that the suites speak with: names, actions, things, places, times, and which of them no training ever sees.

A group of words means one thing; its first word is the usual one, the others are synonyms. `training(group)` leaves out the words
that are held out (a quarter of all synonyms), `HELD_OUT` holds them, and the suites report the questions that use them as a slice of
their own. Names are split the same way, by hash, and so are invented ones, which nobody bears.
"""

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple
from zlib import crc32

from faker.providers.person import en_GB, en_IE, en_NZ, en_US

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """An action in the past tense (which is also its participle) and in the base form."""

    past: str
    base: str


def verb_group(*words: str) -> tuple[Verb, ...]:
    """Verbs of one meaning, each "past/base"."""
    return tuple(Verb(*word.split("/")) for word in words)


# What one does to a thing, somewhere: "sold a guitar at the market". The last word of each group is held out.
ACTIONS = (
    verb_group("bought/buy", "purchased/purchase", "got hold of/get hold of", "acquired/acquire"),
    verb_group("sold/sell", "sold off/sell off", "traded away/trade away", "auctioned/auction"),
    verb_group("found/find", "discovered/discover", "dug up/dig up", "spotted/spot"),
    verb_group("lost/lose", "misplaced/misplace", "left behind/leave behind", "mislaid/mislay"),
    verb_group("repaired/repair", "fixed/fix", "mended/mend", "restored/restore"),
    verb_group("cleaned/clean", "washed/wash", "scrubbed/scrub", "polished/polish"),
    verb_group("painted/paint", "colored/color", "put paint on/put paint on", "coated/coat"),
    verb_group("opened/open", "opened up/open up", "unlocked/unlock", "unsealed/unseal"),
    verb_group("carried/carry", "hauled/haul", "lugged/lug", "transported/transport"),
    verb_group("dropped/drop", "let fall/let fall", "let slip/let slip", "fumbled/fumble"),
    verb_group("examined/examine", "inspected/inspect", "looked over/look over", "scrutinized/scrutinize"),
    verb_group("wrapped/wrap", "packed/pack", "bundled up/bundle up", "packaged/package"),
    verb_group("built/build", "made/make", "put together/put together", "constructed/construct"),
    verb_group("displayed/display", "exhibited/exhibit", "put on show/put on show", "presented/present"),
)
# How one gets somewhere: "cycled to the harbor".
MOTIONS = (
    verb_group("walked/walk", "went on foot/go on foot", "strolled/stroll", "ambled/amble"),
    verb_group("cycled/cycle", "biked/bike", "went by bicycle/go by bicycle", "pedaled/pedal"),
    verb_group("ran/run", "jogged/jog", "hurried/hurry", "sprinted/sprint"),
    verb_group("drove/drive", "went by car/go by car", "took the car/take the car", "motored/motor"),
    verb_group("sailed/sail", "went by boat/go by boat", "took a boat/take a boat", "cruised/cruise"),
    verb_group("rode/ride", "went on horseback/go on horseback", "took a horse/take a horse", "trotted/trot"),
)
# The second word of every other group is held out: one synonym in two groups of two words, a quarter of all words.
THINGS: tuple[Group, ...] = (
    ("bicycle", "two-wheeler"), ("sofa", "couch"), ("cup", "mug"), ("jacket", "coat"), ("carpet", "rug"), ("picture", "photograph"),
    ("guitar", "string instrument"), ("lamp", "light"), ("suitcase", "travel case"), ("clock", "timepiece"), ("notebook", "writing pad"),
    ("ring", "band of gold"), ("umbrella", "parasol"), ("basket", "hamper"), ("hat", "cap"), ("kettle", "teapot"), ("blanket", "quilt"),
    ("mirror", "looking glass"), ("statue", "sculpture"), ("letter", "note"), ("pillow", "cushion"), ("camera", "photo device"),
    ("telescope", "spyglass"), ("drum", "percussion instrument"), ("ladder", "set of steps"), ("boat", "vessel"), ("wagon", "cart"),
    ("shovel", "spade"), ("necklace", "string of beads"), ("vase", "flower pot"), ("chess set", "board game"), ("radio", "receiver"),
)  # fmt: skip
PLACES: tuple[Group, ...] = (
    ("market", "bazaar"), ("cafe", "coffee shop"), ("harbor", "port"), ("school", "academy"), ("forest", "woods"), ("beach", "seaside"),
    ("hotel", "inn"), ("farm", "ranch"), ("hospital", "clinic"), ("theater", "playhouse"), ("airport", "airfield"), ("museum", "gallery"),
    ("church", "chapel"), ("castle", "fortress"), ("stadium", "arena"), ("gym", "fitness center"), ("library", "reading room"),
    ("bakery", "bread shop"), ("station", "railway stop"), ("park", "public garden"), ("zoo", "animal park"), ("bridge", "river crossing"),
    ("factory", "plant"), ("prison", "jail"), ("tavern", "pub"), ("cemetery", "graveyard"), ("lighthouse", "beacon"), ("barn", "stable"),
    ("pharmacy", "drugstore"), ("palace", "royal house"),
)  # fmt: skip
TIMES = (
    *(("on", day) for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")),
    *(("in", month) for month in ("January", "February", "March", "April", "June", "July", "August", "September", "October", "November")),
    *(("at", hour) for hour in ("dawn", "noon", "dusk", "midnight")),
    *(("in", season) for season in ("spring", "summer", "autumn", "winter")),
)  # fmt: skip
CITIES = (
    "Oslo", "Lima", "Rome", "Paris", "Cairo", "Madrid", "Lisbon", "Dublin", "Berlin", "Athens", "Boston", "Denver", "Vienna", "Geneva",
    "Prague", "Warsaw", "Tokyo", "Delhi", "Quebec", "Havana", "Nairobi", "Sydney", "Munich", "Naples", "Seville", "Bergen", "Porto",
    "Zurich", "Krakow", "Riga",
)  # fmt: skip
SURNAMES = (
    "Marlow", "Finch", "Tanner", "Harlow", "Bishop", "Calder", "Dunmore", "Ellery", "Fenwick", "Garrick", "Holloway", "Ingram", "Jarvis",
    "Kendrick", "Lockhart", "Merrick", "Norwood", "Oakley", "Prescott", "Quimby", "Radcliff", "Selwyn", "Thornton", "Upton", "Vance",
    "Whitby", "Yardley", "Ashford", "Blackwell", "Crowley", "Draper", "Easton", "Farrow", "Gresham", "Hadley", "Irving",
)  # fmt: skip
# Given names that are words of another kind as well.
NO_NAMES = {
    "Abbey", "Amber", "Angel", "April", "Archer", "Aria", "Aurora", "Autumn", "Bailey", "Bill", "Bob", "Bonnie", "Brook", "Brooke",
    "Carol", "Carter", "Chad", "Chase", "Che", "Chelsea", "Christie", "Clark", "Cole", "Cooper", "Cruz", "Crystal", "Daisy", "Dakota",
    "Dale", "Dawn", "Dean", "Destiny", "Devon", "Diamond", "Drew", "Earl", "Ebony", "Eden", "Faith", "Fletcher", "Florence", "Frank",
    "Gail", "Gene", "Georgia", "Glen", "Grace", "Grant", "Guy", "Harmony", "Harper", "Hazel", "Heather", "Holly", "Hope", "Hunter",
    "Iona", "India", "Israel", "Ivy", "Jack", "Jade", "Jan", "Jasmine", "Jasper", "Jay", "Jean", "Jesus", "Jordan", "Joy", "Jude",
    "June", "Kay", "Kent", "Kingston", "Kirk", "Lance", "Lee", "Lily", "Lincoln", "Logan", "Luna", "Mark", "Mason", "Max", "Melody",
    "Mercedes", "Misty", "Morgan", "Olive", "Paris", "Parker", "Patty", "Penny", "Perry", "Phoenix", "Pierce", "Piper", "Poppy",
    "Preston", "Randy", "Raven", "Ray", "Rex", "Rick", "Robin", "Roman", "Rose", "Rosemary", "Rowan", "Ruby", "Ryder", "Sandy",
    "Savannah", "Scot", "Shay", "Sherry", "Sierra", "Skye", "Spencer", "Stella", "Sue", "Summer", "Sydney", "Tanner", "Taylor", "Terry",
    "Trinity", "Troy", "Victor", "Violet", "Virginia", "Warren", "Warwick", "Willow", "Zion",
}  # fmt: skip


BABI_PEOPLE = frozenset({"Mary", "John", "Sandra", "Daniel"})


def held_out_words() -> frozenset[str]:
    """All synonyms that no training sees."""
    verbs = {form for group in ACTIONS + MOTIONS for form in (group[-1].past, group[-1].base)}
    return frozenset(verbs | {group[1] for groups in (THINGS, PLACES) for group in groups[::2]})


HELD_OUT = held_out_words()


class Pools(NamedTuple):
    """The groups of words that events are drawn from."""

    actions: tuple[tuple[Verb, ...], ...]
    motions: tuple[tuple[Verb, ...], ...]
    things: tuple[Group, ...]
    places: tuple[Group, ...]


POOLS = Pools(ACTIONS, MOTIONS, THINGS, PLACES)


def training_words(group: Group) -> Group:
    """The words of a group that training may use."""
    return tuple(word for word in group if word not in HELD_OUT)


def training_verbs(group: tuple[Verb, ...]) -> tuple[Verb, ...]:
    """The verbs of a group that training may use."""
    return tuple(verb for verb in group if verb.past not in HELD_OUT)


@cache
def names(held_out: bool) -> tuple[str, ...]:
    """Given names: those that lessons may use, or the sixth of all that none does (less the people of the public bAbI stories).

    They are those of three to eight letters that Faker lists for four English-speaking countries.
    """
    lists = (country.Provider.first_names for country in (en_GB, en_IE, en_NZ, en_US))
    listed = {name for some in lists for name in some if 3 <= len(name) <= 8 and name.isascii() and name.isalpha() and name.istitle()}
    chosen = sorted(name for name in listed - NO_NAMES if is_held_out(name) == held_out)
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
