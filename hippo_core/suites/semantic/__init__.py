"""semantic: answers that take several facts, among near misses and contradictions.

    taught   Omar bought a lamp at the Marlow shop in May. ... Lea says that the Marlow shop is in Lima. ... According to Tom, the Marlow
             shop stands in Oslo. ... The Marlow shop is in Oslo, Lea says.
    asked    In which city did Omar buy a lamp in May?      gold: Oslo, refuted: Lima

Firms are in cities, people have to do with firms, and people have friends: two hops lead from a person to a city, three from a person's
friend. A rumor (never true), a later move (always true) or plain statements that disagree can contradict a firm's city. Of plain
statements the number and the order decide, or the stated confidence (conflict.py). `refuted` are the stated cities that are wrong. There
is one gold fact a hop: of several people who are right the last that decides; the others' statements are `retold`. Some facts are repeated
in other words (`retellings`), some occur at two times (`timed`), and near misses have relations that sound like the right one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import floor
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hippo_core.suites import lexicon
from hippo_core.suites.altering import exchanged
from hippo_core.suites.reworded import Wording, files_of
from hippo_core.suites.semantic.conflict import deciding, disagree, disagree_with_confidence
from hippo_core.suites.semantic.words import AGAIN, FORMS, FRAMES, HEDGED, SITE_NEAR_MISSES, Rewording
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Fact, Hide, Item, Settings, Suite, World, WorldSpec, after_all

TELLERS = 6  # people who state where firms are
PER_CONFLICT = 12  # facts of a world for each firm that people disagree about


class SemanticSettings(Settings):
    """A world of chains. All of it stands before each question."""

    n_facts: Annotated[int, Field(ge=12, le=2000)] = 20
    hops: tuple[Literal[2, 3], ...] = (2, 2, 3)  # of the questions in turn
    contradictions: Annotated[int, Field(ge=0)] = 2  # firms whose city is contradicted, at most
    conflicts: Annotated[tuple[Literal["rumor", "move", "plain"], ...], Field(min_length=1)] = ("rumor", "move")  # by what, drawn
    contested: Annotated[float, Field(ge=0, le=1)] | None = None  # share of questions about these firms; as it comes unless given
    hedges: bool = False  # whether those who disagree state their confidence
    retellings: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share of facts that repeat another one in other words
    timed: Annotated[int, Field(ge=0)] = 0  # people who bought the same at two firms, at two times
    near_misses: Annotated[int, Field(ge=0)] = 1  # facts that do not fit any schema
    new_names: Annotated[float, Field(ge=0, le=1)] = 0.25
    wording: Wording = "own"  # of the facts; questions are in the lab's own words


@dataclass(eq=False)
class RelationRow:
    """A fact under construction: a form and its words, which are joined when a world is kept. `late`: it comes after all that are not;
    `position`: its rank among its like, drawn where None; `repeats`: the row that it repeats; `again`: other forms."""

    form: str
    words: dict[str, str]
    slots: dict[str, str]
    fit: bool = True
    teller: str = ""
    late: int = 0
    position: float | None = None
    confidence: float | None = None
    repeats: "RelationRow | None" = None
    again: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        text = self.form.format(**self.words)
        if when := self.words.get("when"):
            text = f"{text.removesuffix('.')} {when}."
        return text[0].upper() + text[1:]


@dataclass
class SemanticDraft:
    """A world under construction."""

    random: Random
    settings: SemanticSettings
    spec: WorldSpec
    rows: list[RelationRow] = field(default_factory=list)

    def add(self, form: str, words: dict[str, str], slots: dict[str, str], **about) -> RelationRow:
        self.rows.append(RelationRow(form, words, slots, **about))
        return self.rows[-1]


@dataclass(frozen=True, slots=True)
class Firm:
    name: str
    kind: str
    city: str  # the true one
    fact: RelationRow  # the one that decides
    contradicted: str = ""  # "rumor", "move" or "plain"
    refuted: tuple[str, ...] = ()  # stated cities that are wrong
    statements: tuple[RelationRow, ...] = ()  # all statements, where people disagree


@dataclass(frozen=True, slots=True)
class Chain:
    """A person's link to a firm, and perhaps a friend of that person."""

    who: str
    frame: str
    obj: str
    firm: Firm
    link: RelationRow
    friend: str
    friendship: RelationRow | None
    when: str = ""


def firm_names(random: Random, count: int) -> list[str]:
    """Different names of firms: surnames, or pairs of them where there are too few."""
    if count <= len(lexicon.SURNAMES):
        return random.sample(lexicon.SURNAMES, count)
    pairs = [f"{a} & {b}" for a, b in product(lexicon.SURNAMES, repeat=2) if a != b]
    return [*lexicon.SURNAMES, *random.sample(pairs, count - len(lexicon.SURNAMES))]


def make_firms(draft: SemanticDraft, n_firms: int, tellers: list[str]) -> list[Firm]:
    """Firms and the facts of their cities; some contradicted."""
    random, settings, spec = draft.random, draft.settings, draft.spec
    cities = random.sample(lexicon.CITIES, min(n_firms, len(lexicon.CITIES)))
    kinds = [frame.firm for frame in FRAMES.values()] * n_firms
    most = settings.contradictions
    if "plain" in settings.conflicts:  # their statements leave few other facts
        most = min(most, settings.n_facts // PER_CONFLICT)
    firms = []
    for number, name in enumerate(firm_names(random, n_firms)):
        kind = kinds[number + spec.index % len(FRAMES)]
        own = [city for city in cities if belongs(f"{name}|{kind}|{city}", spec.split)]
        own = own if len(own) > 1 else [city for city in lexicon.CITIES if belongs(f"{name}|{kind}|{city}", spec.split)]
        city, other = random.sample(own, 2)
        contradicted = random.choice(settings.conflicts) if number < most else ""
        if contradicted == "plain":
            firms.append(add_statements(draft, name, kind, city, other, tellers))
            continue
        form = random.choice(FORMS["site"])
        words, slots = {"name": name, "firm": kind, "city": city}, {"firm": name, "relation": "is in", "city": city}
        fact = draft.add(form, words, slots, again=() if contradicted else others(form, FORMS["site"], AGAIN["site"]))
        if contradicted == "rumor":
            draft.add(random.choice(FORMS["rumor"]), words | {"city": other}, slots | {"city": other})
        elif contradicted == "move":
            city, other = other, city
            slots = {"firm": name, "relation": "moved to", "city": city}
            fact = draft.add(random.choice(FORMS["move"]), words | {"city": city}, slots, late=1)
        firms.append(Firm(name, kind, city, fact, contradicted, (other,) if contradicted else ()))
    return firms


def add_statements(draft: SemanticDraft, name: str, kind: str, city: str, other: str, tellers: list[str]) -> Firm:
    """A firm on whose city people disagree, and their statements; no two of one teller are in the same words while there are any."""
    random = draft.random
    if draft.settings.hedges:
        testimonies = disagree_with_confidence(random, tellers, city, other, tuple(HEDGED))
    else:
        testimonies = disagree(random, tellers, city, other)
    positions = sorted(random.random() for _ in testimonies)
    rows: list[RelationRow] = []
    for (teller, stated, confidence), position in zip(testimonies, positions, strict=True):
        used = {row.form for row in rows if (row.slots["city"], row.teller) == (stated, teller)}
        forms = FORMS["statement"] if confidence is None else HEDGED[confidence]
        form = random.choice([candidate for candidate in forms if candidate not in used] or forms)
        words = {"name": name, "firm": kind, "city": stated, "teller": teller}
        slots = {"firm": name, "relation": "is in", "city": stated, "teller": teller}
        rows.append(draft.add(form, words, slots, teller=teller, position=position, confidence=confidence))
    return Firm(name, kind, city, rows[deciding(testimonies, city)], "plain", (other,), tuple(rows))


def make_friends(draft: SemanticDraft, people: list[str]) -> dict[str, tuple[str, RelationRow]]:
    """Two pairs of friends, nobody in both: who -> (friend, the fact that says so)."""
    pairs = [(a, b) for a in people for b in people if a != b and belongs(f"{min(a, b)}|friend|{max(a, b)}", draft.spec.split)]
    friends: dict[str, tuple[str, RelationRow]] = {}
    used: set[str] = set()
    for who, friend in draft.random.sample(pairs, len(pairs)):
        if len(friends) < 2 and not used & {who, friend}:
            form, slots = draft.random.choice(FORMS["friend"]), {"who": who, "relation": "friend", "friend": friend}
            friends[who] = (friend, draft.add(form, slots, slots, again=others(form, FORMS["friend"], AGAIN["friend"])))
            used |= {who, friend}
    return friends


def make_chains(draft: SemanticDraft, firms: list[Firm], people: list[str], n_links: int) -> list[Chain]:
    """Links between people and firms, every (person, frame, thing) once, the friends' first; those of `timed` twice: at two firms in
    different cities, at two times."""
    random, settings, friends = draft.random, draft.settings, make_friends(draft, people)
    objects = [lexicon.article(group[0]) for group in random.sample(lexicon.OBJECTS, 3)]
    options = [(who, frame, obj) for who in people for frame in FRAMES for obj in (objects if frame == "buy" else ("",))]
    random.shuffle(options)
    chains: list[Chain] = []
    for who, frame, obj in sorted(options, key=lambda option: option[0] not in friends):
        if len(chains) >= n_links:
            break
        fitting = [f for f in firms if f.kind == FRAMES[frame].firm and belongs(f"{who}|{frame}|{obj}|{f.name}", draft.spec.split)]
        friend = friends.get(who, ("", None))
        twice = sum(bool(chain.when) for chain in chains) < 2 * settings.timed
        if twice and obj and len({f.city for f in fitting}) > 1 and len(chains) + 2 <= n_links:
            first = random.choice(fitting)
            second = random.choice([firm for firm in fitting if firm.city != first.city])
            times = random.sample([" ".join(time) for time in lexicon.TIMES if time[0] == "in"], 2)
            chains += [add_link(draft, who, frame, obj, firm, friend, when) for firm, when in zip((first, second), times, strict=True)]
        elif fitting:
            if settings.contested is not None:  # a contradicted one as often as questions are about these
                wanted = random.random() < settings.contested
                fitting = [firm for firm in fitting if bool(firm.contradicted) == wanted] or fitting
            chains.append(add_link(draft, who, frame, obj, random.choice(fitting), friend))
    return chains


def add_link(
    draft: SemanticDraft, who: str, name: str, obj: str, firm: Firm, friend: tuple[str, RelationRow | None], when: str = ""
) -> Chain:
    """A link as a fact."""
    frame = FRAMES[name]
    form = draft.random.choice(frame.link)
    words = {"who": who, "thing": obj, "Thing": obj[:1].upper() + obj[1:], "name": firm.name, "when": when}
    slots = {"who": who, "relation": frame.relation, "firm": firm.name, **noun_slots(obj, when)}
    row = draft.add(form, words, slots, again=() if when else others(form, frame.link, frame.again))
    return Chain(who, name, obj, firm, row, *friend, when)


def noun_slots(obj: str, when: str) -> dict[str, str]:
    """The slots of a thing and a time, without the article and the preposition."""
    return {slot: words.split(" ", 1)[1] for slot, words in (("what", obj), ("when", when)) if words}


def others(form: str, usual: tuple[str, ...], again: tuple[str, ...]) -> tuple[str, ...]:
    """The other forms with the same meaning."""
    return tuple(other for other in (*usual, *again) if other != form)


def add_retellings(draft: SemanticDraft, count: int) -> bool:
    """Repeat so many facts, once or twice, each time in other words; whether there were enough."""
    random = draft.random
    forms_of = [(row, random.sample(row.again, 2)) for row in draft.rows if row.again]
    for row, forms in random.sample(forms_of, len(forms_of)):
        for form in forms[: random.choice((1, 1, 2))]:
            if count:
                draft.add(form, row.words, row.slots, repeats=row)
                count -= 1
    return count == 0


def add_near_misses(draft: SemanticDraft, firms: list[Firm], people: list[str]) -> None:
    """Facts that sound like a link or a firm's city and are neither."""
    random = draft.random
    for number in range(draft.settings.near_misses):
        for _ in attempts(draft.settings, "near miss"):
            firm = random.choice(firms)
            frame = next(frame for frame in FRAMES.values() if frame.firm == firm.kind)
            slots = {"city": random.choice(lexicon.CITIES)} if number % 2 else {"who": random.choice(people)}
            obj = lexicon.article(random.choice(lexicon.OBJECTS)[0])
            form = random.choice([*(SITE_NEAR_MISSES if number % 2 else frame.near_misses).values()])
            words = {**slots, "thing": obj, "name": firm.name, "firm": firm.kind}
            if belongs(form.format(**words), draft.spec.split):
                break
        draft.add(form, words, {"firm": firm.name, **slots}, fit=False)


class SemanticQuestion(NamedTuple):
    """A question about a chain, before its facts have ids."""

    chain: Chain
    gold: list[RelationRow]
    about: dict[str, Any]  # the other fields of the item


def make_world(random: Random, settings: SemanticSettings, spec: WorldSpec) -> World:
    """One world; drawn again until it carries its questions."""
    for _ in attempts(settings, "world of chains"):
        draft = SemanticDraft(random, settings, spec)
        new = spec.split != "train" and random.random() < settings.new_names
        names, n_people = lexicon.names(held_out=new), settings.n_facts // 3
        plain = "plain" in settings.conflicts and settings.contradictions > 0
        drawn = random.sample(names, min(len(names), n_people + (TELLERS if plain else 0)))
        people, tellers = (drawn[:-TELLERS], drawn[-TELLERS:]) if plain else (drawn, [])
        firms = make_firms(draft, max(4, settings.n_facts // 4), tellers)
        n_retellings = round(settings.retellings * settings.n_facts)
        n_links = settings.n_facts - len(draft.rows) - settings.near_misses - 2 - n_retellings
        chains = make_chains(draft, firms, people, n_links)
        add_near_misses(draft, firms, people)
        if not add_retellings(draft, n_retellings):
            continue
        questions = choose_questions(draft, chains)
        if questions and len(draft.rows) == settings.n_facts:
            break
    texts = {row: row.text for row in draft.rows}
    if settings.wording == "reworded":
        rewording = Rewording(spec)
        texts = {row: rewording(row.form, row.words) for row in draft.rows}
    positions = {row: random.random() if row.position is None else row.position for row in draft.rows}
    order = sorted(draft.rows, key=lambda row: (row.late, positions[row]))
    asked = {row for question in questions for row in (*question.gold, *question.chain.firm.statements)}
    facts = []
    for number, row in enumerate(order):
        about: dict[str, Any] = {"schema_fit": row.fit, "asked": row in asked, "confidence": row.confidence, "teller": row.teller}
        facts.append(spec.fact(number, texts[row], row.slots, **about))
    fact_of = dict(zip(order, facts, strict=True))
    repeats = {row: row.repeats for row in draft.rows if row.repeats}
    for firm in firms:
        repeats |= {row: firm.fact for row in firm.statements if row is not firm.fact and row.slots["city"] == firm.city}
    items = []
    for number, (chain, gold, about) in enumerate(questions):
        item = spec.item(
            number,
            answer=chain.firm.city,
            chance=1 / len({firm.city for firm in firms}),
            refuted=chain.firm.refuted,
            retold={fact_of[row].id: fact_of[first].id for row, first in repeats.items() if first in gold},
            **after_all(facts, [order.index(row) for row in gold]),
            **about,
        )
        items.append(replace(item, slices=(*item.slices, "new_name")) if new else item)
    return World(spec.id, tuple(facts), tuple(items))


def choose_questions(draft: SemanticDraft, chains: list[Chain]) -> list[SemanticQuestion]:
    """`n_items` questions over different chains; empty where it cannot be."""
    random, settings, spec = draft.random, draft.settings, draft.spec
    pool = random.sample(chains, len(chains))
    questions = []
    for number in range(settings.n_items):
        turn = spec.index * settings.n_items + number
        hops = settings.hops[turn % len(settings.hops)]
        contested = None if settings.contested is None else floor((turn + 1) * settings.contested) > floor(turn * settings.contested)
        fitting = (candidate for candidate in pool if contested is None or bool(candidate.firm.contradicted) == contested)
        chain = next((chain for chain in fitting if hops == 2 or (chain.friend and is_unique(chain, chains))), None)
        if chain is None:
            return []
        pool.remove(chain)
        cue = {"who": chain.who} if hops == 2 else {"friend": chain.friend}
        cue |= {"relation": FRAMES[chain.frame].relation, **noun_slots(chain.obj, chain.when)}
        gold = [chain.link, chain.firm.fact]
        if hops == 3 and chain.friendship:
            gold.insert(0, chain.friendship)
        others = [row.slots for row in draft.rows if row not in gold and row.repeats not in gold]
        if sum(any(slots.get(slot) == value for slot, value in cue.items()) for slots in others) < settings.n_competitors:
            return []
        text, paraphrase, slices = ask(random, chain, hops, turn % 2 == 1, training=spec.split == "train")
        kind, rung = "contradiction" if chain.firm.contradicted else f"hops_{hops}", "paraphrase" if paraphrase else "exact"
        about = {"question": text, "kind": kind, "rung": rung, "hops": hops, "cue": cue, "slices": slices}
        questions.append(SemanticQuestion(chain, gold, about))
    return questions


def is_unique(chain: Chain, chains: list[Chain]) -> bool:
    """Whether the friend of a chain has one such link, so that a question of three hops has one answer."""
    same = [c for c in chains if (c.friend, c.frame, c.obj, c.when) == (chain.friend, chain.frame, chain.obj, chain.when)]
    return len(same) == 1


def ask(random: Random, chain: Chain, hops: int, paraphrase: bool, *, training: bool) -> tuple[str, bool, tuple[str, ...]]:
    """The question, whether it is a paraphrase, and its slices. Three hops have one form."""
    frame = FRAMES[chain.frame]
    if hops == 3:
        return timed(frame.of_friend.format(friend=chain.friend, thing=chain.obj), chain.when), False, ()
    forms = frame.questions[:1]
    if paraphrase:
        forms = frame.questions[1:] if training else frame.questions[1:] + frame.held_out
    form = random.choice(forms)
    text = form.format(who=chain.who, thing=chain.obj, Thing=chain.obj[:1].upper() + chain.obj[1:])
    return timed(text, chain.when), paraphrase, ("new_template",) if form in frame.held_out else ()


def timed(question: str, when: str) -> str:
    """The question with its time: at its end, or where it ends in "in which city", in front of that."""
    if not when:
        return question
    end = " in which city?"
    return f"{question.removesuffix(end)} {when}{end}" if question.endswith(end) else f"{question[:-1]} {when}{question[-1]}"


def hide(world: World, item: Item, number: int) -> Hide:
    """Leave out one step of the chain, which the number draws: all cities of the firm, or a link in any words."""
    left_out = item.gold_facts[number % len(item.gold_facts)]
    [slots] = (fact.slots for fact in world.facts if fact.id == left_out)
    if "city" not in slots:
        return lambda fact: None if fact.slots == slots else fact
    return lambda fact: None if _is_site(fact, slots["firm"]) else fact


def _is_site(fact: Fact, firm: str) -> bool:
    return {"relation", "city"} <= fact.slots.keys() and fact.slots["firm"] == firm


def is_answerable(facts: Sequence[Fact], item: Item) -> bool:
    """Whether facts lead from the person, or the friend, whom a question names to a city."""
    cue, links = item.cue, [fact for fact in facts if "relation" in fact.slots]
    friends = {fact.slots["who"] for fact in links if "friend" in cue and fact.slots.get("friend") == cue["friend"]}
    people = {cue["who"]} if "who" in cue else friends
    named = {slot: cue[slot] for slot in ("relation", "what", "when") if slot in cue}
    firms = {fact.slots.get("firm") for fact in links if fact.slots.get("who") in people and named.items() <= fact.slots.items()}
    return any(_is_site(fact, firm) for fact in links for firm in firms if firm)


def with_counterfactual_answers(world: World, others: Sequence[World]) -> World:
    """The world with each city replaced, by one unknown here while there are enough, and the items about cities."""
    old = sorted({fact.slots["city"] for fact in world.facts if "city" in fact.slots})
    items = [item for item in world.items if item.answers[0] in old]
    apart = {(city, item.answers[0]) for item in items for city in (*item.answers, *item.refuted)}
    cities = _exchange(Random(f"altered/{world.id}"), old, apart)
    other = [
        replace(item, answers=(cities[item.answers[0]],), refuted=tuple(cities.get(city, city) for city in item.refuted)) for item in items
    ]
    return replace(world, facts=tuple(exchanged(fact, cities) for fact in world.facts) if cities else world.facts, items=tuple(other))


def _exchange(random: Random, old: Sequence[str], apart: set[tuple[str, str]]) -> Mapping[str, str]:
    """For each city another one, none twice. `apart`: pairs (city, true one) of which the first may not become the second."""
    new = [city for city in lexicon.CITIES if city not in old]
    for _ in count():
        drawn = random.sample(new if len(new) >= len(old) else lexicon.CITIES, len(old))
        pairs = set(zip(old, drawn, strict=True))
        if all(was != now for was, now in pairs) and not pairs & apart:
            return dict(zip(old, drawn, strict=True))
    raise AssertionError("unreachable")


SEMANTIC = Suite(
    "semantic",
    "chains of two and three facts, contradictions, near misses",
    SemanticSettings,
    make_world,
    primary="em_raw",
    hide=hide,
    is_answerable=is_answerable,
    reads=files_of("semantic"),
    altered=with_counterfactual_answers,
    order=5,
    asks="joined facts",
)
