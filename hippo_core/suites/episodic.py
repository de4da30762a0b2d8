"""The episodic suites: who did what, where and when, asked for by a partial, paraphrased or misspelt cue.

    taught   On Friday, Carla sold a guitar at the market.
    asked    Which person traded away a guitar at the bazaar?      gold: Carla

The words of a fact do not say that it matters: `reward` and `pin` are fields, which only a write gate reads. With `invented_names` some
facts are about people whom no model can predict; `invented_correlation` makes questions ask for these. `episodic` shows a window of facts
before the question, `episodic_cross` has journeys in earlier sessions, and the window of `episodic_capacity` exceeds the context.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from math import floor, sqrt
from random import Random
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from hippo_core.suites import lexicon, wording
from hippo_core.suites.lexicon import Group
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import RUNGS, Fact, Settings, Suite, World, WorldSpec
from hippo_core.suites.unanswerable import has_matching_fact, hide_named
from hippo_core.suites.wording import Event, Words


class EpisodicSettings(Settings):
    """A world of the episodic suites."""

    n_facts: Annotated[int, Field(ge=4)] = 32
    window: Annotated[int, Field(ge=1)] = 8  # facts that stand before a question, the gold one among them
    swaps: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of facts that repeat an earlier one with two slots changed
    new_names: Annotated[float, Field(ge=0, le=1)] = 0.25  # share of worlds whose names no training saw
    rungs: tuple[str, ...] = RUNGS
    entity_pool: Annotated[int, Field(ge=2)] | None = None  # people of a world, and its places; None: a third as many as facts
    sessions: Annotated[int, Field(ge=1)] = 1  # occasions on which the facts are told
    flag_correlation: Annotated[float, Field(ge=0, le=1)] = 0.7  # phi between "asked later" and "rewarded or pinned"
    held_out: bool = True  # whether questions of val and test worlds may use words and forms that no training saw
    invented_names: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of a world's facts that are about people of invented names
    invented_correlation: Annotated[float, Field(ge=0, le=1)] = 0.0  # phi between "asked later" and "about an invented name"

    @field_validator("invented_correlation")
    @classmethod
    def _can_be_reached(cls, phi: float, info: ValidationInfo) -> float:
        values = info.data
        if phi and {"n_facts", "n_items", "invented_names"} <= values.keys():
            n_asked, invented = min(values["n_items"], values["n_facts"]), round(values["invented_names"] * values["n_facts"])
            if not 0 < invented < values["n_facts"] or expected_overlap(values["n_facts"], n_asked, invented, phi) > min(n_asked, invented):
                raise ValueError(
                    f"{n_asked} questions and {invented} invented names in {values['n_facts']} facts cannot go together so far"
                )
        return phi


class CapacitySettings(EpisodicSettings):
    """A world that is longer than the context: `n_facts` follows from the limit."""

    context_limit: Annotated[int, Field(ge=64)] = 512  # tokens; every word is at least one


def make_events(
    random: Random, settings: EpisodicSettings, spec: WorldSpec, motion: bool, pools: lexicon.Pools = lexicon.POOLS
) -> list[Event]:
    """Distinct events of the split. Every slot draws from a few words of its pool, so that most values occur several times."""
    size, n_invented = max(3, round(settings.n_facts / 3)), round(settings.invented_names * settings.n_facts)
    new = spec.split != "train" and random.random() < settings.new_names
    people = lexicon.names(held_out=new)

    def few(values, most=size):
        return random.sample(values, min(most, len(values)))

    entities = settings.entity_pool or size
    who, where, when = few(people, entities), few(pools.places, entities), few(lexicon.TIMES)
    what: list[Group] | list[None] = [None] if motion else few(pools.objects)
    actions = pools.motions if motion else random.sample(pools.actions, min(4, size))
    strangers: list[str] = []
    about_strangers: set[int] = set()
    if n_invented:  # they occur as often as the others
        strangers = invented_people(random, max(1, round(size * settings.invented_names)), held_out=spec.split != "train")
        about_strangers = set(random.sample(range(settings.n_facts), n_invented))
    events: dict[str, Event] = {}
    for _ in attempts(settings, "set of distinct events", settings.n_facts):
        if len(events) == settings.n_facts:
            break
        known = strangers if len(events) in about_strangers else who
        if events and random.random() < settings.swaps:
            old = random.choice(list(events.values()))
            event = Event(random.choice(known), old.action, old.what, old.where, random.choice(when))
        else:
            event = Event(random.choice(known), random.choice(actions), random.choice(what), random.choice(where), random.choice(when))
        if belongs(event.key, spec.split):
            events.setdefault(event.key, event)
    return list(events.values())


def invented_people(random: Random, size: int, held_out: bool) -> list[str]:
    """Different names that nobody bears."""
    people: list[str] = []
    while len(people) < size:
        if (name := lexicon.invented_name(random, held_out)) not in people:
            people.append(name)
    return people


def expected_overlap(n_facts: int, n_asked: int, invented: int, phi: float) -> float:
    """How many facts are both, on average, where the two correlate by phi."""
    a, b = n_asked / n_facts, invented / n_facts
    return n_facts * (a * b + phi * sqrt(a * (1 - a) * b * (1 - b)))


def draw_targets(random: Random, invented: Sequence[bool], n_items: int, phi: float) -> list[int] | None:
    """The numbers of the facts that are asked for, in order of asking; None where so few facts cannot correlate by phi."""
    n_asked = min(n_items, len(invented))
    rare, usual = ([number for number, is_about_invented in enumerate(invented) if is_about_invented == which] for which in (True, False))
    if not rare:
        return random.sample(usual, n_asked)
    both = expected_overlap(len(invented), n_asked, len(rare), phi)
    n_rare = floor(both) + (random.random() < both % 1)
    if n_rare > min(n_asked, len(rare)) or n_asked - n_rare > len(usual):
        return None
    chosen = random.sample(rare, n_rare) + random.sample(usual, n_asked - n_rare)
    return random.sample(chosen, n_asked)


def cues(random: Random, slots: list[str], rung: str) -> list[tuple[str, ...]]:
    """The cues that a question may have, of these slots besides the action; `partial` begins with the fewest."""
    if rung != "partial":
        return [tuple(slots)]
    single, pairs = ([*combinations(slots, size)] for size in (1, 2))
    random.shuffle(single)
    random.shuffle(pairs)
    return [*single, *pairs, tuple(slots)]


def can_be_asked(event: Event, kind: str, cue: tuple[str, ...]) -> bool:
    """A question needs something to hang on: neither "Who was on Friday?" nor "Where was drove in May?" is English."""
    if event.what is None:
        return kind == "who" or "who" in cue
    return kind != "who" or "what" in cue or "where" in cue


def named_slots(event: Event, kind: str, cue: tuple[str, ...]) -> tuple[str, ...]:
    """The cue with the action, where the question names it."""
    return (*cue, "action") if event.what is None or "what" in cue or kind == "what" else cue


def fits(events: list[Event], words: list[Words], gold: int, kind: str, cue: tuple[str, ...], n_competitors: int) -> bool:
    """Whether the cue fits the gold event alone, and enough other facts share a word for one of the named slots with its fact."""
    named = named_slots(events[gold], kind, cue)
    if sum(all(getattr(event, slot) == getattr(events[gold], slot) for slot in named) for event in events) > 1:
        return False
    near = sum(any(getattr(other, slot) == getattr(words[gold], slot) for slot in named) for other in words)
    return near - 1 >= n_competitors


def make_question(
    random: Random, event: Event, words: Words, kind: str, cue: tuple[str, ...], rung: str, *, training: bool
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The question's text, the slots of the cue that are still legible in it, and the slices that it belongs to."""
    slices: list[str] = []
    form = wording.QUESTION_FORMS[kind][0]
    if rung == "paraphrase":
        words = wording.synonyms(random, event, words, training=training)
        forms = wording.QUESTION_FORMS[kind][1:]
        held_out = () if training else wording.HELD_OUT_FORMS[kind]
        form = random.choice(forms + held_out)
        slices += ["new_template"] if form in held_out else []
        named = {slot: value for slot, value in words.slots().items() if slot in cue or slot == "action"}
        used = wording.ask(form, kind, named, words)
        new = any(value in lexicon.HELD_OUT and value in used for value in (*named.values(), words.action.base))
        slices += ["new_synonym"] if new else []
    cue_words = {slot: value for slot, value in words.slots().items() if slot in cue}
    text = wording.ask(form, kind, cue_words, words)
    if rung != "noisy":
        return text, cue, tuple(slices)
    clean = text
    while text == clean:
        text, removed = wording.add_noise(random, clean, list(cue_words.values()))
    return text, tuple(slot for slot in cue if cue_words[slot] not in removed), tuple(slices)


class Drawn(NamedTuple):
    """A question about the event number `gold`, before it is in a world."""

    gold: int
    rung: str
    kind: str
    question: str
    cue: dict[str, str]
    slices: tuple[str, ...]


def make_question_about(
    random: Random, events: list[Event], words: list[Words], gold: int, rung: str, settings: EpisodicSettings, training: bool
) -> Drawn | None:
    """A question about the gold event, or None where no kind can be asked on this rung."""
    kinds = [slot for slot in wording.SLOTS if getattr(events[gold], slot) is not None]
    for kind in random.sample(kinds, len(kinds)):
        candidates = [cue for cue in cues(random, [slot for slot in kinds if slot != kind], rung) if can_be_asked(events[gold], kind, cue)]
        cue = next((cue for cue in candidates if fits(events, words, gold, kind, cue, settings.n_competitors)), None)
        if cue is None:
            continue
        for _ in range(8):
            question, legible, slices = make_question(random, events[gold], words[gold], kind, cue, rung, training=training)
            if rung != "noisy" or fits(events, words, gold, kind, legible, settings.n_competitors):
                named = {slot: words[gold].slots()[slot] for slot in named_slots(events[gold], kind, legible)}
                return Drawn(gold, rung, kind, question, named, slices)
    return None


def make_world(random: Random, settings: EpisodicSettings, spec: WorldSpec, motion: bool = False, full_window: bool = False) -> World:
    """One world, drawn again until it carries its questions."""
    events, words, drawn = [], [], []
    rungs = [settings.rungs[(spec.index * settings.n_items + number) % len(settings.rungs)] for number in range(settings.n_items)]
    early = max(settings.n_items, settings.n_facts // 4) if full_window else settings.n_facts
    for _ in attempts(settings, "world of events"):
        events = make_events(random, settings, spec, motion)
        words = [wording.choose_words(random, event) for event in events]
        invented = [lexicon.is_invented(event.who) for event in events[:early]]
        order = draw_targets(random, invented, settings.n_items, settings.invented_correlation)
        if order is None:
            continue
        tried = [
            make_question_about(random, events, words, gold, rung, settings, spec.split == "train" or not settings.held_out)
            for gold, rung in zip(order, rungs, strict=False)
        ]
        drawn = [question for question in tried if question]
        if len(drawn) == len(tried):
            break
    facts = make_facts(random, settings, spec, words, {question.gold for question in drawn})
    windows = [facts if full_window else draw_window(random, facts, question.gold, settings.window) for question in drawn]
    items = []
    for number, (question, window) in enumerate(zip(drawn, windows, strict=True)):
        gold, kind = question.gold, question.kind
        item = spec.item(
            number,
            question.question,
            words[gold].slots()[kind],
            kind,
            gold_facts=(facts[gold].id,),
            rung=question.rung,
            distance=window[-1].time - gold,
            chance=1 / len({getattr(event, kind) for event in events}),
            cue=question.cue,
            window=() if settings.sessions > 1 else tuple(fact.id for fact in window),
            taught=tuple(fact.id for fact in facts),
            slices=(*question.slices, "new_name") if lexicon.is_held_out(words[gold].who) else question.slices,
        )
        items.append(item)
    return World(spec.id, facts, tuple(items))


def draw_window(random: Random, facts: tuple[Fact, ...], gold: int, size: int) -> tuple[Fact, ...]:
    """`size` facts in a row, the gold one somewhere among them."""
    first = random.randint(max(0, gold - size + 1), min(gold, max(0, len(facts) - size)))
    return facts[first : first + size]


def make_facts(random: Random, settings: EpisodicSettings, spec: WorldSpec, words: list[Words], asked: set[int]) -> tuple[Fact, ...]:
    """The facts in order, in sessions, some flagged as important."""
    flags = draw_flags(random, [number in asked for number in range(len(words))], settings.flag_correlation)
    facts = []
    for number, (chosen, (reward, pin)) in enumerate(zip(words, flags, strict=True)):
        text, session = wording.render_fact(random, chosen), f"session {1 + number * settings.sessions // len(words)}"
        about = {"reward": reward, "pin": pin, "context_key": session, "asked": number in asked}
        facts.append(spec.fact(number, text, chosen.slots(), **about))
    return tuple(facts)


def draw_flags(random: Random, asked: Sequence[bool], phi: float) -> list[tuple[bool, bool]]:
    """Reward or pin, half each, for as many facts as are asked for, correlated by phi. No other draw depends on phi."""
    share = sum(asked) / len(asked)
    flags = []
    for is_asked in asked:
        flagged, pinned = random.random() < (share + phi * (1 - share) if is_asked else share * (1 - phi)), random.random() < 0.5
        flags.append((flagged and not pinned, flagged and pinned))
    return flags


def make_capacity_world(random: Random, settings: CapacitySettings, spec: WorldSpec) -> World:
    """Questions about the first quarter of a story whose other facts, of seven words each at least, are longer than the context."""
    n_facts = -(-settings.context_limit * 4 // (3 * 7)) + 1
    return make_world(random, settings.model_copy(update={"n_facts": n_facts}), spec, full_window=True)


DECISIVE = {"hide": hide_named, "is_answerable": has_matching_fact}
EPISODIC = Suite("episodic", "who did what, where and when", EpisodicSettings, make_world, **DECISIVE, order=1, asks="one fact")
EPISODIC_CROSS = Suite(
    "episodic_cross",
    "journeys told in earlier sessions",
    EpisodicSettings,
    partial(make_world, motion=True),
    has_window=False,
    **DECISIVE,
    order=3,
    asks="journeys of earlier days",
)
EPISODIC_CAPACITY = Suite(
    "episodic_capacity",
    "a story longer than the context",
    CapacitySettings,
    make_capacity_world,
    uses_context_limit=True,
    **DECISIVE,
    order=4,
    asks="a story too long to read",
)
