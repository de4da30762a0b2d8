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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product, starmap
from math import floor
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hippo_core.suites import lexicon
from hippo_core.suites.reworded import Wording, files_of
from hippo_core.suites.semantic.altering import with_counterfactual_answers
from hippo_core.suites.semantic.conflict import disagree, disagree_with_confidence, last_words, most_confident
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


class RelationRow(NamedTuple):
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
    repeats: int | None = None
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

    def add(self, form: str, words: dict[str, str], slots: dict[str, str], **about) -> int:
        self.rows.append(RelationRow(form, words, slots, **about))
        return len(self.rows) - 1


@dataclass(frozen=True, slots=True)
class Firm:
    name: str
    kind: str
    city: str  # the true one
    fact: int  # the one that decides
    contradicted: str  # "", "rumor", "move" or "plain"
    refuted: tuple[str, ...] = ()  # stated cities that are wrong
    statements: tuple[int, ...] = ()  # all statements, where people disagree
    same: tuple[int, ...] = ()  # those of them that agree with the one that decides


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
    """A firm on whose city people disagree, and their statements."""
    random = draft.random
    testimonies = (
        disagree_with_confidence(random, tellers, city, other, tuple(HEDGED))
        if draft.settings.hedges
        else disagree(random, tellers, city, other)
    )
    positions = sorted(random.random() for _ in testimonies)
    rows: list[int] = []
    used: set[tuple[str, str, str]] = set()
    for testimony, position in zip(testimonies, positions, strict=True):
        forms = FORMS["statement"] if testimony.confidence is None else HEDGED[testimony.confidence]
        form = random.choice([candidate for candidate in forms if (candidate, testimony.city, testimony.teller) not in used] or forms)
        used.add((form, testimony.city, testimony.teller))
        words = {"name": name, "firm": kind, "city": testimony.city, "teller": testimony.teller}
        slots = {"firm": name, "relation": "is in", "city": testimony.city, "teller": testimony.teller}
        rows.append(draft.add(form, words, slots, teller=testimony.teller, position=position, confidence=testimony.confidence))
    true, confident, last = (
        {row: testimony for row, testimony in zip(rows, testimonies, strict=True) if testimony.city == city},
        most_confident(testimonies),
        last_words(testimonies),
    )
    deciding = max(true, key=lambda row: (true[row] in confident, true[row] in last, row))
    return Firm(name, kind, city, deciding, "plain", (other,), tuple(rows), tuple(row for row in true if row != deciding))


@dataclass(frozen=True, slots=True)
class Chain:
    """A person's link to a firm, and perhaps a friend of that person."""

    who: str
    frame: str
    obj: str
    firm: Firm
    link: int
    friend: str
    friendship: int
    when: str = ""


def make_friends(draft: SemanticDraft, people: list[str]) -> dict[str, tuple[str, int]]:
    """Two pairs of friends, nobody in both: who -> (friend, the fact that says so)."""
    pairs = [(a, b) for a in people for b in people if a != b and belongs(f"{min(a, b)}|friend|{max(a, b)}", draft.spec.split)]
    friends: dict[str, tuple[str, int]] = {}
    used: set[str] = set()
    for who, friend in draft.random.sample(pairs, len(pairs)):
        if len(friends) < 2 and not used & {who, friend}:
            form, slots = draft.random.choice(FORMS["friend"]), {"who": who, "relation": "friend", "friend": friend}
            friends[who] = (friend, draft.add(form, slots, slots, again=others(form, FORMS["friend"], AGAIN["friend"])))
            used |= {who, friend}
    return friends


def make_chains(draft: SemanticDraft, firms: list[Firm], people: list[str], n_links: int) -> list[Chain]:
    """Links between people and firms, every (person, frame, thing) once, the friends' first; those of `timed` twice, at two firms."""
    random, friends = draft.random, make_friends(draft, people)
    objects = [lexicon.article(group[0]) for group in random.sample(lexicon.OBJECTS, 3)]
    options = [(who, frame, obj) for who in people for frame in FRAMES for obj in (objects if frame == "buy" else ("",))]
    random.shuffle(options)
    chains: list[Chain] = []
    twice = 0
    for who, name, obj in sorted(options, key=lambda option: option[0] not in friends):
        if len(chains) >= n_links:
            break
        fitting = [f for f in firms if f.kind == FRAMES[name].firm and belongs(f"{who}|{name}|{obj}|{f.name}", draft.spec.split)]
        friend = friends.get(who, ("", -1))
        if twice < draft.settings.timed and obj and len({f.city for f in fitting}) > 1 and len(chains) + 2 <= n_links:
            twice += 1
            chains += add_timed(draft, who, name, obj, fitting, friend)
        elif fitting:
            if draft.settings.contested is not None:  # a contradicted one as often as questions are about these
                wanted = random.random() < draft.settings.contested
                fitting = [firm for firm in fitting if bool(firm.contradicted) == wanted] or fitting
            chains.append(add_link(draft, who, name, obj, random.choice(fitting), friend))
    return chains


def add_timed(draft: SemanticDraft, who: str, name: str, obj: str, fitting: list[Firm], friend: tuple[str, int]) -> Iterator[Chain]:
    """The same link to two firms in different cities, at two times."""
    first = draft.random.choice(fitting)
    second = draft.random.choice([firm for firm in fitting if firm.city != first.city])
    times = draft.random.sample([" ".join(time) for time in lexicon.TIMES if time[0] == "in"], 2)
    for firm, when in zip((first, second), times, strict=True):
        yield add_link(draft, who, name, obj, firm, friend, when)


def add_link(draft: SemanticDraft, who: str, name: str, obj: str, firm: Firm, friend: tuple[str, int], when: str = "") -> Chain:
    """A link as a fact."""
    frame = FRAMES[name]
    form = draft.random.choice(frame.link)
    words = {"who": who, "thing": obj, "Thing": obj[:1].upper() + obj[1:], "name": firm.name, "when": when}
    slots = {"who": who, "relation": frame.relation, "firm": firm.name} | ({"what": obj.split(" ", 1)[1]} if obj else {})
    slots |= {"when": when.split(" ", 1)[1]} if when else {}
    row = draft.add(form, words, slots, again=() if when else others(form, frame.link, frame.again))
    return Chain(who, name, obj, firm, row, *friend, when)


def others(form: str, usual: tuple[str, ...], again: tuple[str, ...]) -> tuple[str, ...]:
    """The other forms with the same meaning."""
    return tuple(other for other in (*usual, *again) if other != form)


def add_retellings(draft: SemanticDraft, count: int) -> bool:
    """Repeat so many facts, once or twice, each time in other words; whether there were enough."""
    random = draft.random
    tellable = [row for row, candidate in enumerate(draft.rows) if candidate.again]
    wordings = [(row, wording) for row in tellable for wording in random.sample(draft.rows[row].again, 2)]
    firsts = random.sample(wordings[::2], len(wordings) // 2)
    again = dict(wordings[1::2])
    for row, wording in firsts:
        for form in (wording, again[row])[: random.choice((1, 1, 2))]:
            if count:
                draft.add(form, draft.rows[row].words, draft.rows[row].slots, repeats=row)
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
        plan = choose_questions(draft, chains)
        if plan and len(draft.rows) == settings.n_facts:
            break
    positions = [random.random() if row.position is None else row.position for row in draft.rows]
    order = sorted(range(len(draft.rows)), key=lambda row: (draft.rows[row].late, positions[row]))
    asked = {row for chain, gold, *_ in plan for row in (*gold, *chain.firm.statements)}
    number_of = {row: number for number, row in enumerate(order)}
    texts = [row.text for row in draft.rows]
    if settings.wording == "reworded":
        texts = list(starmap(Rewording(spec), ((row.form, row.words) for row in draft.rows)))
    facts = []
    for number, row in enumerate(order):
        draft_row = draft.rows[row]
        about: dict[str, Any] = {
            "schema_fit": draft_row.fit,
            "asked": row in asked,
            "confidence": draft_row.confidence,
            "teller": draft_row.teller,
        }
        facts.append(Fact(f"{spec.id}.f{number}", spec.id, texts[row], draft_row.slots, number, provenance="told", **about))
    repeats = {row: draft_row.repeats for row, draft_row in enumerate(draft.rows) if draft_row.repeats is not None}
    repeats |= {row: firm.fact for firm in firms for row in firm.same}
    retold = {facts[number_of[row]].id: facts[number_of[first]].id for row, first in repeats.items()}
    items = tuple(
        Item(
            id=f"{spec.id}.q{number}",
            world=spec.id,
            question=question,
            answers=(chain.firm.city,),
            kind="contradiction" if chain.firm.contradicted else f"hops_{hops}",
            rung="paraphrase" if paraphrase else "exact",
            hops=hops,
            chance=1 / len({firm.city for firm in firms}),
            cue=cue,
            **after_all(facts, [number_of[row] for row in gold]),
            slices=(*slices, "new_name") if new else slices,
            refuted=chain.firm.refuted,
            retold={again: first for again, first in retold.items() if first in {facts[number_of[row]].id for row in gold}},
        )
        for number, (chain, gold, hops, question, cue, paraphrase, slices) in enumerate(plan)
    )
    return World(spec.id, tuple(facts), items)


def choose_questions(draft: SemanticDraft, chains: list[Chain]) -> list:
    """`n_items` questions over different chains: (chain, gold rows, hops, question, cue, paraphrase, slices); empty where it cannot be."""
    random, settings, spec = draft.random, draft.settings, draft.spec
    pool = random.sample(chains, len(chains))
    plan = []
    for number in range(settings.n_items):
        turn = spec.index * settings.n_items + number
        hops = settings.hops[turn % len(settings.hops)]
        about = None if settings.contested is None else floor((turn + 1) * settings.contested) > floor(turn * settings.contested)
        fitting = (candidate for candidate in pool if about is None or bool(candidate.firm.contradicted) == about)
        chain = next((chain for chain in fitting if (chain.friend or hops == 2) and answerable(chain, chains, hops)), None)
        if chain is None:
            return []
        pool.remove(chain)
        cue = {"who": chain.who} if hops == 2 else {"friend": chain.friend}
        cue["relation"] = FRAMES[chain.frame].relation
        if chain.obj:
            cue["what"] = chain.obj.split(" ", 1)[1]
        if chain.when:
            cue["when"] = chain.when.split(" ", 1)[1]
        gold = [chain.firm.fact, chain.link] if hops == 2 else [chain.firm.fact, chain.link, chain.friendship]
        others = [row.slots for number, row in enumerate(draft.rows) if number not in gold and row.repeats not in gold]
        if sum(any(slots.get(slot) == value for slot, value in cue.items()) for slots in others) < settings.n_competitors:
            return []
        question, paraphrase, slices = ask(random, chain, hops, turn % 2 == 1, training=spec.split == "train")
        plan.append((chain, gold[::-1], hops, question, cue, paraphrase, slices))
    return plan


def answerable(chain: Chain, chains: list[Chain], hops: int) -> bool:
    """Whether the question about a chain has one answer: for three hops, the friend must have one such link."""
    if hops == 2:
        return True
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
