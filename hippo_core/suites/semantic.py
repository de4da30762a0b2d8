"""semantic: answers that no single fact holds, among near misses and contradictions.

    taught   Omar bought a lamp at the Marlow shop. ... The Marlow shop is in Oslo. ... Rumor has it that the Marlow shop is in Lima.
    asked    In which city did Omar buy a lamp?      gold: Oslo (two hops; the register and plain statements stand over a rumor)

Firms stand in cities, people have to do with firms, and people have friends: two hops lead from a person to a city, three from the
friend of a person. Two things can contradict a firm's city: a rumor (never believed) and a later move (always believed). `hard` adds
near misses: relations that sound like the right one and are not.
"""

from dataclasses import dataclass
from random import Random
from typing import Annotated

from pydantic import Field

from hippo_core.suites import lexicon
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Fact, Item, Settings, Suite, World, WorldSpec


@dataclass(frozen=True, slots=True)
class Frame:
    """A schema: what links a person to a kind of firm, how it is told, how its city is asked for."""

    firm: str
    link: tuple[str, ...]  # ways to tell it; the first words after {who} are the relation
    relation: str
    questions: tuple[str, ...]  # usual form first
    held_out: tuple[str, str]
    near_misses: tuple[str, ...]
    of_friend: str  # the same question about a friend


FRAMES = {
    "buy": Frame("shop", ("{who} bought {thing} at the {name} shop.", "At the {name} shop, {who} bought {thing}."), "bought",
        ("In which city did {who} buy {thing}?", "In which city did {who} purchase {thing}?", "{Thing} was bought by {who} in which city?"),
        ("Tell me the city where {who} bought {thing}.", "Do you recall in which city {who} got {thing}?"),
        ("{who} looked at {thing} at the {name} shop.", "{who} refused to buy {thing} at the {name} shop."),
        "In which city did the friend of {friend} buy {thing}?"),
    "work": Frame("company", ("{who} works for the {name} company.", "The {name} company employs {who}."), "works for",
        ("In which city does {who} work?", "Which city does {who} work in?", "Which city is home to the employer of {who}?"),
        ("Tell me the city where {who} works.", "Do you recall in which city {who} has a job?"),
        ("{who} applied to the {name} company.", "{who} complained about the {name} company."),
        "In which city does the friend of {friend} work?"),
    "study": Frame("college", ("{who} studies at the {name} college.", "The {name} college has {who} as a student."), "studies at",
        ("In which city does {who} study?", "Which city does {who} study in?", "Which city is home to the college of {who}?"),
        ("Tell me the city where {who} studies.", "Do you recall in which city {who} is a student?"),
        ("{who} visited the {name} college.", "{who} wrote a letter to the {name} college."),
        "In which city does the friend of {friend} study?"),
}  # fmt: skip
SITES = (
    "The {name} {firm} is in {city}.",
    "The {name} {firm} stands in {city}.",
    "The city register says that the {name} {firm} is in {city}.",
)
RUMORS = (
    "Rumor has it that the {name} {firm} is in {city}.",
    "Someone heard that the {name} {firm} is in {city}, but nobody confirmed it.",
)
MOVES = ("Later the {name} {firm} moved to {city}.", "Since then the {name} {firm} has moved to {city}.")
SITE_NEAR_MISSES = ("The {name} {firm} sends letters to {city}.", "The {name} {firm} was once praised in {city}.")
FRIENDS = ("{friend} is a friend of {who}.", "{who} has {friend} as a friend.")


class SemanticSettings(Settings):
    """A world of chains. All of it stands before each question."""

    n_facts: Annotated[int, Field(ge=12)] = 20
    hops: tuple[int, ...] = (2, 2, 3)  # of the questions in turn
    contradictions: Annotated[int, Field(ge=0)] = 2  # firms whose city is contradicted
    near_misses: Annotated[int, Field(ge=0)] = 1  # facts that do not fit any schema
    new_names: Annotated[float, Field(ge=0, le=1)] = 0.25


@dataclass
class Draft:
    """A world under construction: facts as (text, slots, schema_fit, provenance, order group)."""

    rows: list[tuple[str, dict[str, str], bool, str, int]]

    def add(self, text: str, slots: dict[str, str], *, fit: bool = True, by: str = "told", late: int = 0) -> int:
        self.rows.append((text[0].upper() + text[1:], slots, fit, by, late))
        return len(self.rows) - 1


@dataclass(frozen=True, slots=True)
class Firm:
    name: str
    kind: str
    city: str  # the true one
    fact: int  # the fact that settles it
    contradicted: str  # "", "rumor" or "move"


def make_firms(random: Random, draft: Draft, settings: SemanticSettings, spec: WorldSpec, n_firms: int) -> list[Firm]:
    """Firms and the facts of where they stand; some contradicted by a rumor, some by a later move."""
    cities = random.sample(lexicon.CITIES, n_firms)
    kinds = [frame.firm for frame in FRAMES.values()] * n_firms
    firms = []
    for number, name in enumerate(random.sample(lexicon.SURNAMES, n_firms)):
        kind = kinds[number + spec.index % len(FRAMES)]
        own = [city for city in cities if belongs(f"{name}|{kind}|{city}", spec.split)]
        own = own if len(own) > 1 else [city for city in lexicon.CITIES if belongs(f"{name}|{kind}|{city}", spec.split)]
        city, other = random.sample(own, 2)
        contradicted = random.choice(("rumor", "move")) if number < settings.contradictions else ""
        fact = draft.add(random.choice(SITES).format(name=name, firm=kind, city=city), {"firm": name, "relation": "is in", "city": city})
        if contradicted == "rumor":
            text = random.choice(RUMORS).format(name=name, firm=kind, city=other)
            draft.add(text, {"firm": name, "relation": "is in", "city": other}, by="rumor")
        elif contradicted == "move":
            text = random.choice(MOVES).format(name=name, firm=kind, city=other)
            city, fact = other, draft.add(text, {"firm": name, "relation": "moved to", "city": other}, late=1)
        firms.append(Firm(name, kind, city, fact, contradicted))
    return firms


@dataclass(frozen=True, slots=True)
class Chain:
    """A person's link to a firm, and perhaps a friend of that person."""

    who: str
    frame: str
    thing: str
    firm: Firm
    link: int
    friend: str
    friendship: int


def make_friends(random: Random, draft: Draft, people: list[str], spec: WorldSpec) -> dict[str, tuple[str, int]]:
    """Two pairs of friends, nobody in both: who -> (friend, the fact that says so)."""
    pairs = [(a, b) for a in people for b in people if a != b and belongs(f"{min(a, b)}|friend|{max(a, b)}", spec.split)]
    friends: dict[str, tuple[str, int]] = {}
    taken: set[str] = set()
    for who, friend in random.sample(pairs, len(pairs)):
        if len(friends) < 2 and not taken & {who, friend}:
            text = random.choice(FRIENDS).format(friend=friend, who=who)
            friends[who] = (friend, draft.add(text, {"who": who, "relation": "friend", "friend": friend}))
            taken |= {who, friend}
    return friends


def make_chains(random: Random, draft: Draft, firms: list[Firm], people: list[str], n_links: int, spec: WorldSpec) -> list[Chain]:
    """Links between people and firms, every (person, frame, thing) once, the friends' first."""
    friends = make_friends(random, draft, people, spec)
    things = [lexicon.article(group[0]) for group in random.sample(lexicon.THINGS, 3)]
    options = [(who, frame, thing) for who in people for frame in FRAMES for thing in (things if frame == "buy" else ("",))]
    random.shuffle(options)
    chains = []
    for who, name, thing in sorted(options, key=lambda option: option[0] not in friends):
        frame = FRAMES[name]
        fitting = [f for f in firms if f.kind == frame.firm and belongs(f"{who}|{name}|{thing}|{f.name}", spec.split)]
        if fitting and len(chains) < n_links:
            firm = random.choice(fitting)
            text = random.choice(frame.link).format(who=who, thing=thing, name=firm.name)
            slots = {"who": who, "relation": frame.relation, "firm": firm.name} | ({"what": thing.split(" ", 1)[1]} if thing else {})
            chains.append(Chain(who, name, thing, firm, draft.add(text, slots), *friends.get(who, ("", -1))))
    return chains


def add_near_misses(
    random: Random, draft: Draft, settings: SemanticSettings, firms: list[Firm], people: list[str], spec: WorldSpec
) -> None:
    """Facts that sound like a link or a site and are neither."""
    for number in range(settings.near_misses):
        for _ in attempts(settings, "near miss"):
            firm = random.choice(firms)
            frame = next(frame for frame in FRAMES.values() if frame.firm == firm.kind)
            slots = {"city": random.choice(lexicon.CITIES)} if number % 2 else {"who": random.choice(people)}
            thing = lexicon.article(random.choice(lexicon.THINGS)[0])
            form = random.choice(SITE_NEAR_MISSES if number % 2 else frame.near_misses)
            text = form.format(**slots, thing=thing, name=firm.name, firm=firm.kind)
            if belongs(text, spec.split):
                break
        draft.add(text, {"firm": firm.name, **slots}, fit=False)


def make_world(random: Random, settings: SemanticSettings, spec: WorldSpec) -> World:
    """One world; drawn again until it carries its questions."""
    for _ in attempts(settings, "world of chains"):
        draft = Draft([])
        new = spec.split != "train" and random.random() < settings.new_names
        n_firms = max(4, settings.n_facts // 4)
        people = random.sample(lexicon.names(held_out=new), settings.n_facts // 3)
        firms = make_firms(random, draft, settings, spec, n_firms)
        n_links = settings.n_facts - len(draft.rows) - settings.near_misses - 2
        chains = make_chains(random, draft, firms, people, n_links, spec)
        add_near_misses(random, draft, settings, firms, people, spec)
        plan = choose_questions(random, draft, chains, settings, spec)
        if plan and len(draft.rows) == settings.n_facts:
            break
    order = sorted(range(len(draft.rows)), key=lambda row: (draft.rows[row][4], random.random()))
    gold_rows = {row for _, gold, *_ in plan for row in gold}
    number_of = {row: number for number, row in enumerate(order)}
    facts = tuple(
        Fact(f"{spec.id}.f{number}", spec.id, text, slots, number, schema_fit=fit, context_key=by, provenance=by, asked=row in gold_rows)
        for number, row in enumerate(order)
        for text, slots, fit, by, _ in (draft.rows[row],)
    )
    ids = tuple(fact.id for fact in facts)
    items = tuple(
        Item(
            id=f"{spec.id}.q{number}",
            world=spec.id,
            question=question,
            answers=(chain.firm.city,),
            gold_facts=tuple(facts[number_of[row]].id for row in gold),
            kind={"rumor": "contradiction", "move": "contradiction"}.get(chain.firm.contradicted, f"hops_{len(gold)}"),
            rung="paraphrase" if paraphrase else "exact",
            hops=len(gold),
            distance=len(facts) - 1 - max(number_of[row] for row in gold),
            chance=1 / len({firm.city for firm in firms}),
            cue=cue,
            window=ids,
            taught=ids,
            slices=(*slices, "new_name") if new else slices,
        )
        for number, (chain, gold, question, cue, paraphrase, slices) in enumerate(plan)
    )
    return World(spec.id, facts, items)


def choose_questions(random: Random, draft: Draft, chains: list[Chain], settings: SemanticSettings, spec: WorldSpec) -> list:
    """`n_items` questions over different chains: (chain, gold rows, question, cue, paraphrase, slices); empty where it cannot be."""
    pool = random.sample(chains, len(chains))
    plan = []
    for number in range(settings.n_items):
        turn = spec.index * settings.n_items + number
        hops = settings.hops[turn % len(settings.hops)]
        chain = next((chain for chain in pool if (chain.friend or hops == 2) and answerable(chain, chains, hops)), None)
        if chain is None:
            return []
        pool.remove(chain)
        cue = {"who": chain.who} if hops == 2 else {"friend": chain.friend}
        cue["relation"] = FRAMES[chain.frame].relation
        if chain.thing:
            cue["what"] = chain.thing.split(" ", 1)[1]
        gold = [chain.firm.fact, chain.link] if hops == 2 else [chain.firm.fact, chain.link, chain.friendship]
        others = [slots for row, (_, slots, *_) in enumerate(draft.rows) if row not in gold]
        if sum(any(slots.get(slot) == value for slot, value in cue.items()) for slots in others) < settings.n_competitors:
            return []
        question, paraphrase, slices = ask(random, chain, hops, turn % 2 == 1, training=spec.split == "train")
        plan.append((chain, gold[::-1], question, cue, paraphrase, slices))
    return plan


def answerable(chain: Chain, chains: list[Chain], hops: int) -> bool:
    """Whether the question about a chain has one answer: for three hops, the friend's friend must do this once only."""
    if hops == 2:
        return True
    same = [c for c in chains if c.friend == chain.friend and c.frame == chain.frame and c.thing == chain.thing]
    return len(same) == 1


def ask(random: Random, chain: Chain, hops: int, paraphrase: bool, *, training: bool) -> tuple[str, bool, tuple[str, ...]]:
    """The question, whether it is a paraphrase, and its slices. Three hops have one form."""
    frame = FRAMES[chain.frame]
    if hops == 3:
        return frame.of_friend.format(friend=chain.friend, thing=chain.thing), False, ()
    forms = frame.questions[:1]
    if paraphrase:
        forms = frame.questions[1:] if training else frame.questions[1:] + frame.held_out
    form = random.choice(forms)
    text = form.format(who=chain.who, thing=chain.thing, Thing=chain.thing[:1].upper() + chain.thing[1:])
    return text, paraphrase, ("new_template",) if form in frame.held_out else ()


SEMANTIC = Suite("semantic", "chains of two and three facts, contradictions, near misses", SemanticSettings, make_world, primary="em_raw")
