"""Drills: lessons of every kind that a model practises. Each drill draws one lesson of about so many facts from a split's worlds."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from hippo_core.files import read_yaml, root
from hippo_core.suites import babi, episodic, lexicon, multi, semantic, settings_for, spatial, wording
from hippo_core.suites.splits import belongs
from hippo_core.suites.types import RUNGS, Split, WorldSpec
from hippo_core.training import related
from hippo_core.training.lessons import UNKNOWN, Branch, Lesson, forget, keep, trim, world_lesson
from hippo_core.training.stories import STORIES, held_out_stories, training_stories

N_QUESTIONS, N_RESTATEMENTS = 8, 4
Drill = Callable[[Random, int, Split], Lesson]

# More ways to ask, for lessons only: who meets few forms learns the forms and not how to read a question.
MORE_FORMS = (
    "Say {kind} {plain}{rest}.",
    "Can you say {kind} {plain}{rest}?",
    "I want to know {kind} {plain}{rest}.",
    "{kind} {plain}{rest}, please?",
    "Please name {kind} {plain}{rest}.",
)
YES_NO_FORMS = ("{inverted}{rest}?", "Is it true that {plain}{rest}?", "{plain}{rest}, yes or no?", "Is it so that {plain}{rest}?")
HELD_OUT_YES_NO_FORM = "Can one say that {plain}{rest}?"
NOTES = ("", "", "", "", " Please remember this.", " It was a great success.")


@cache
def wide() -> lexicon.Pools:
    """Many more words than the suites have, none of which is a word of the suites."""
    words = {name: tuple(map(tuple, groups)) for name, groups in read_yaml(root() / "data/lessons/words.yaml").items()}
    actions, motions = (tuple(lexicon.verb_group(*group) for group in words[name]) for name in ("actions", "motions"))
    return lexicon.Pools(actions, motions, words["things"], words["places"])


def slots(random: Random, n_facts: int, split: Split) -> Lesson:
    """Who did what, where and when: asked on all four rungs, with yes and no, and with restatements."""
    return _events(random, n_facts, split, motion=False)


def journeys(random: Random, n_facts: int, split: Split) -> Lesson:
    """The same of motions: who went where, how and when."""
    return _events(random, n_facts, split, motion=True)


def wide_slots(random: Random, n_facts: int, split: Split) -> Lesson:
    """Events and now and then motions in far more words than the suites have."""
    return _events(random, n_facts, split, motion=random.random() < 0.15, pools=wide())


def _events(random: Random, n_facts: int, split: Split, motion: bool, pools: lexicon.Pools = lexicon.POOLS) -> Lesson:
    training = split == "train"
    settings = episodic.EpisodicSettings(n_facts=max(4, n_facts), n_competitors=0, swaps=random.choice((0.0, 0.0, 0.5)))
    events = episodic.make_events(random, settings, WorldSpec(split, 0, 0), motion, pools)[:n_facts]
    words = [wording.choose_words(random, event) for event in events]
    facts = tuple((wording.render_fact(random, w) + random.choice(NOTES), tuple(w.slots().values())) for w in words)
    branches = []
    for number in range(N_QUESTIONS):
        gold = random.randrange(len(events))
        if number >= 6:
            branches.append(yes_or_no(random, events, words, gold, training))
            continue
        drawn = episodic.make_question_about(random, events, words, gold, RUNGS[number % 4], settings, training)
        if drawn:
            question = drawn.question
            if training and drawn.rung == "paraphrase" and random.random() < 0.4:
                question = rephrased(random, events[gold], words[gold], drawn)
            branches.append(Branch(question, words[gold].slots()[drawn.kind], (gold,), True, drawn.rung))
    for _ in range(N_RESTATEMENTS):
        gold = random.randrange(len(events))
        branches.append(Branch("", wording.render_fact(random, words[gold]), (gold,)))
    return Lesson(facts, tuple(branches))


def other_words(random: Random, n_facts: int, split: Split) -> Lesson:
    """Events asked for in other words only: synonyms and other forms, so that few words of a question stand in its fact."""
    return _in_other_words(random, n_facts, split, lexicon.POOLS)


def wide_other_words(random: Random, n_facts: int, split: Split) -> Lesson:
    """The same in far more words than the suites have."""
    return _in_other_words(random, n_facts, split, wide())


def _in_other_words(random: Random, n_facts: int, split: Split, pools: lexicon.Pools) -> Lesson:
    training = split == "train"
    settings = episodic.EpisodicSettings(n_facts=max(4, n_facts), n_competitors=0)
    events = episodic.make_events(random, settings, WorldSpec(split, 0, 0), random.random() < 0.2, pools)[:n_facts]
    words = [wording.choose_words(random, event) for event in events]
    branches = []
    for _ in range(N_QUESTIONS):
        gold = random.randrange(len(events))
        drawn = episodic.make_question_about(random, events, words, gold, "paraphrase", settings, training)
        if drawn:
            question = rephrased(random, events[gold], words[gold], drawn) if training and random.random() < 0.4 else drawn.question
            branches.append(Branch(question, words[gold].slots()[drawn.kind], (gold,), True, "paraphrase"))
    facts = tuple((wording.render_fact(random, w) + random.choice(NOTES), tuple(w.slots().values())) for w in words)
    return Lesson(facts, tuple(branches))


def rephrased(random: Random, event: wording.Event, words: wording.Words, drawn: episodic.Drawn) -> str:
    """The question in one of the forms that only lessons have; all other slots are named, by synonyms."""
    other = wording.synonyms(random, event, words, training=True)
    cue = {slot: value for slot, value in other.slots().items() if slot != drawn.kind and slot != "action"}
    form = random.choice(MORE_FORMS).replace("{kind}", drawn.kind)
    return wording.ask(form, drawn.kind, cue, other)


def yes_or_no(random: Random, events: list[wording.Event], words: list[wording.Words], gold: int, training: bool) -> Branch:
    """Whether an event took place; for "no", one slot is another event's, and together they are nobody's."""
    claim, truth = words[gold], random.random() < 0.5
    named = [slot for slot in ("what", "where", "when") if getattr(claim, slot) is not None]
    cue = {"who", *random.sample(named, random.randint(1, len(named)))}
    cue |= {"what"} if claim.what else {"where"}
    event = events[gold]
    if not truth:
        changes = [(slot, other) for slot in sorted(cue) for other in range(len(events))]
        random.shuffle(changes)
        for slot, other in changes:
            changed = replace(event, **{slot: getattr(events[other], slot)})
            if not any(_fits(changed, another, cue) for another in events):
                claim = replace(claim, **{slot: getattr(words[other], slot)})
                claim = replace(claim, preposition=words[other].preposition) if slot == "when" else claim
                break
        else:
            truth = True
    forms = YES_NO_FORMS if training else (*YES_NO_FORMS, HELD_OUT_YES_NO_FORM)
    values = {slot: value for slot, value in claim.slots().items() if slot in cue}
    question = wording.ask(random.choice(forms), "whether", values, claim)
    return Branch(question, "yes" if truth else "no", (gold,), True, "yes or no")


def _fits(wanted: wording.Event, event: wording.Event, cue: set[str]) -> bool:
    return wanted.action == event.action and all(getattr(wanted, slot) == getattr(event, slot) for slot in cue)


def nothing_said(random: Random, n_facts: int, split: Split) -> Lesson:
    """Facts of which one or two are taken away: who asks for these learns "unknown"."""
    lesson = slots(random, n_facts + 2, split) if random.random() < 0.8 else journeys(random, n_facts + 2, split)
    open_questions = tuple(branch for branch in lesson.branches if branch.skill != "yes or no")
    return forget(replace(lesson, branches=open_questions), set(random.sample(range(len(lesson.facts)), min(2, len(lesson.facts)))))


def plainly_unsaid(random: Random, n_facts: int, split: Split) -> Lesson:
    """The same where only questions in the facts' own words are left without an answer, half of these. A model that has also seen other
    questions left unanswered says "unknown" to any synonym that it does not know."""
    lesson = random.choice((slots, wide_slots, wide_slots, journeys))(random, n_facts + 2, split)
    plain = sorted({branch.gold[0] for branch in lesson.branches if branch.skill in ("exact", "partial")})
    removed = set(random.sample(plain, (len(plain) + 1) // 2))
    branches = (branch for branch in lesson.branches if branch.skill in ("exact", "partial") or not set(branch.gold) & removed)
    return forget(replace(lesson, branches=tuple(branches)), removed)


def last_mention(random: Random, n_facts: int, split: Split) -> Lesson:
    """Statements and corrections: the last mention wins; sometimes all that was said of one thing is taken away."""
    settings = multi.MultiSettings(n_facts=random.randint(14, 24), n_competitors=0, n_items=6, corrections=random.choice((0.35, 0.5)))
    world = multi.make_world(random, settings, WorldSpec(split, 0, random.randrange(6)))
    lesson = trim(random, world_lesson(random, world, ordered=True), n_facts + 2)
    if random.random() < 0.85:
        return lesson
    about = random.choice(world.items).cue
    removed = {index for index, (_, words) in enumerate(lesson.facts) if words[:2] == (about["who"], about["relation"])}
    return forget(lesson, removed)


def corrected_once(random: Random, n_facts: int, split: Split) -> Lesson:
    """Statements of which none is corrected more than once, so that a fact itself says whether it stands: order does not matter."""
    lesson = last_mention(random, n_facts, split)
    last: dict[tuple[str, ...], int] = {}
    first: dict[tuple[str, ...], int] = {}
    for index, (_, words) in enumerate(lesson.facts):
        last[words[:2]] = index
        first.setdefault(words[:2], index)
    needed = {index for branch in lesson.branches for index in branch.gold}
    return replace(keep(lesson, {*last.values(), *first.values(), *needed}), ordered=False)


def chains(random: Random, n_facts: int, split: Split) -> Lesson:
    """Two and three hops among rumors, moves and near misses; sometimes a link is missing."""
    settings = semantic.SemanticSettings(
        n_facts=random.randint(20, 26), n_competitors=0, contradictions=random.randint(0, 3), near_misses=random.randint(0, 3)
    )
    world = semantic.make_world(random, settings, WorldSpec(split, 0, random.randrange(30)))
    lesson = world_lesson(random, world, ordered=False)
    missing = random.random() < 0.15
    if n_facts < 14 or missing:
        lesson = trim(random, lesson, n_facts + 3)
    links = [branch.gold[-2] for branch in lesson.branches if len(branch.gold) == 2]
    return forget(lesson, {random.choice(links)}) if missing and links else lesson


def bank_of_relations(random: Random, n_facts: int, split: Split) -> Lesson:
    """Chains, testimony, updates and denials in the words of the bank of relations."""
    return related.lesson(random, n_facts, split)


def tuples(random: Random, n_facts: int, split: Split) -> Lesson:
    """Facts as (head, relation, tail): questions about one, and which of several says what a sentence says."""
    n_facts = max(6, min(n_facts, 14))
    settings = multi.MultiSettings(n_facts=n_facts + 4, n_competitors=0, n_items=4, corrections=0.0)
    world = multi.make_world(random, settings, WorldSpec(split, 0, random.randrange(6)))
    facts = random.sample(world.facts, n_facts)
    triples = [tuple(fact.slots.values()) for fact in facts]
    items = [item for item in world.items if item.gold_facts[0] in {fact.id for fact in facts}]
    number = {fact.id: index for index, fact in enumerate(facts)}
    texts = [f"({', '.join(triple)})" for triple in triples]
    branches = [Branch(item.question, item.answers[0], (number[item.gold_facts[0]],), True, "tuples") for item in items]
    letters = random.random() < 0.5
    if letters:
        chosen = random.sample(range(n_facts), min(n_facts, 4))
        signs = "ABCD"[: len(chosen)]
        texts = [f"{sign}: {texts[index]}" for sign, index in zip(signs, chosen, strict=True)]
        sentences = [(sign, facts[index].text) for sign, index in zip(signs, chosen, strict=True)]
        branches = [
            Branch(f"Which tuple says this: {text}", sign, (position,), True, "choosing a tuple")
            for position, (sign, text) in enumerate(sentences)
        ]
        triples = [(sign, *triples[index]) for sign, index in zip(signs, chosen, strict=True)]
    return Lesson(tuple(zip(texts, triples, strict=True)), tuple(branches))


ACTS = ("open", "close", "clean", "lift", "turn", "carry", "check", "move", "fill", "empty")


def plans(random: Random, n_facts: int, split: Split) -> Lesson:
    """Plans of several steps, each told in a sentence, to be copied whole."""
    w = spatial.words
    n_facts = min(n_facts, 8)
    pool = [(name, origin) for name in w.PROCEDURES for origin in random.sample(w.PLACES, 8) if belongs(f"{name}|{origin}", split)]
    facts, branches = [], []
    forms = [*w.QUESTIONS["procedure"], *([] if split == "train" else [w.HELD_OUT_QUESTIONS["procedure"]])]
    for index, (name, origin) in enumerate(random.sample(pool, n_facts)):
        count, draw = random.randint(3, 6), random.random()
        if draw < 0.5:
            steps = random.choices(("north", "east", "south", "west"), k=count)
        elif draw < 0.75:
            steps = random.sample(w.PLACES, count)
        else:
            steps = [f"{random.choice(ACTS)} the {item}" for item in random.sample(w.OBJECTS, min(count, 4))]
        joined = ", ".join(steps)
        facts.append((random.choice(w.FORMS["procedure"]).format(name=name, origin=origin, steps=joined), (name, origin, joined)))
        question = random.choice(forms).format(name=name, origin=origin)
        branches.append(Branch(question, joined, (index,), True, "plans"))
    return Lesson(tuple(facts), tuple(branches))


FIRST_PERSON = {
    "home": "I live in", "color": "I like the color", "pet": "I have a", "job": "I work as a", "drink": "I prefer to drink",
    "music": "I play the", "food": "I eat",
}  # fmt: skip
SMALL_TALK = (
    "That is good to hear.", "Oh, really?", "I did not know that.", "How nice!", "Tell me more.", "And how are you today?", "I see.",
    "It rained all day here.", "We should meet again soon.", "Thank you for telling me.", "That sounds like fun.",
)  # fmt: skip


def dialogue(random: Random, n_facts: int, split: Split) -> Lesson:
    """Two speakers, by name or as user and assistant, say things of themselves between small talk; later turns stand over earlier ones."""
    people = random.sample(lexicon.names(held_out=split != "train"), 2) if random.random() < 0.7 else ["User", "Assistant"]
    facts: list[tuple[str, tuple[str, ...]]] = []
    latest: dict[tuple[str, str], tuple[int, str]] = {}
    for _ in range(max(2, n_facts)):
        who, relation = random.choice(people), random.choice(list(FIRST_PERSON))
        fits = [value for value in multi.RELATIONS[relation].values if belongs(f"{who}|{relation}|{value}", split)]
        value = random.choice(fits or multi.RELATIONS[relation].values)
        again = "Actually, " if (who, relation) in latest else ""
        latest[who, relation] = len(facts), value
        facts.append((f"{who}: {again}{FIRST_PERSON[relation]} {value}{multi.RELATIONS[relation].tail}.", (who, value)))
        if random.random() < 0.5:
            facts.append((f"{people[who == people[0]]}: {random.choice(SMALL_TALK)}", ()))
    branches = []
    for (who, relation), (index, value) in random.sample(list(latest.items()), min(6, len(latest))):
        wordings = multi.RELATIONS[relation]
        forms = (wordings.question, *wordings.paraphrases, *(wordings.held_out if split != "train" else ()))
        name = who if people[0] != "User" else f"the {who.lower()}"
        branches.append(Branch(random.choice(forms).format(who=name), value, (index,), True, "dialogue"))
    missing = [(who, relation) for who in people for relation in FIRST_PERSON if (who, relation) not in latest]
    for who, relation in random.sample(missing, min(1, len(missing))):
        name = who if people[0] != "User" else f"the {who.lower()}"
        branches.append(Branch(multi.RELATIONS[relation].question.format(who=name), UNKNOWN, (), False, UNKNOWN))
    return Lesson(tuple(facts), tuple(branches), ordered=True)


def needle(random: Random, n_facts: int, split: Split) -> Lesson:
    """One to three facts, events or secret numbers, between the sentences of a story."""
    story = random.choice(training_stories() if split == "train" else held_out_stories())
    lines = [line.strip() for line in story.replace("\n", " ").split(". ") if line.strip()]
    start = random.randrange(max(1, len(lines) - n_facts))
    lines = [line if line.endswith((".", "!", "?", '"')) else f"{line}." for line in lines[start : start + max(2, n_facts)]]
    hidden = slots(random, random.randint(1, 3), split)
    facts: list[tuple[str, tuple[str, ...]]] = [(line, ()) for line in lines]
    questions = [branch for branch in hidden.branches if branch.question]
    hidden_facts = list(hidden.facts)
    for group in random.sample(lexicon.PLACES, 2):
        location, number = group[0], str(random.randint(100, 9999))
        questions.append(Branch(f"What is the secret number of the {location}?", number, (len(hidden_facts),), True))
        hidden_facts.append((f"The secret number of the {location} is {number}.", (location, number)))
    at = sorted(random.choices(range(len(facts) + 1), k=len(hidden_facts)), reverse=True)
    order = random.sample(range(len(hidden_facts)), len(hidden_facts))
    for position, index in zip(at, order, strict=True):
        facts.insert(position, hidden_facts[index])
    where = {index: facts.index(hidden_facts[index]) for index in range(len(hidden_facts))}
    branches = (replace(branch, gold=(where[branch.gold[0]],), skill="needle") for branch in questions)
    return Lesson(tuple(facts), tuple(branches))


ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
ITEMS = ("football", "apple", "milk", "book", "lamp", "cup", "hat", "key")
BABI_NAMES = ("Mary", "John", "Sandra", "Daniel")
MOVES = ("moved to", "went to", "journeyed to", "travelled to", "went back to")
TAKES = ("got the {thing} there", "took the {thing} there", "picked up the {thing} there", "grabbed the {thing} there", "took the {thing}")
DROPS = ("dropped the {thing}", "left the {thing}", "discarded the {thing}", "put down the {thing}", "dropped the {thing} there")


def movements(random: Random, n_facts: int, split: Split) -> Lesson:
    """Who and what is in which room: a story in the manner of bAbI's tasks 1 and 2 (Weston et al. 2015), asked at its end. The gold facts
    of a thing are the statement that took it (or put it down) and the one that brought it where it is."""
    n_facts = random.randint(2, 12) if n_facts < 6 else random.randint(4, 2 * n_facts + 8)
    people = list(BABI_NAMES) if random.random() < 0.6 else random.sample(lexicon.names(held_out=split != "train"), 4)
    rooms = ROOMS if random.random() < 0.7 else tuple(group[0] for group in random.sample(lexicon.PLACES, 6))
    items = random.sample(ITEMS, 3)
    facts: list[tuple[str, tuple[str, ...]]] = []
    location: dict[str, tuple[str, int]] = {}  # of a person: the room, the statement that says so
    holder: dict[str, str] = {}
    taken_at: dict[str, int] = {}  # of a carried item: the statement that it was taken
    lying: dict[str, tuple[str, tuple[int, ...]]] = {}  # of a thing put down: the room, the statements that say so
    fetching = random.choice((0.0, 0.4, 0.6))
    while len(facts) < n_facts:
        who = random.choice(people)
        carried = [item for item, owner in holder.items() if owner == who]
        free = [item for item in items if item not in holder and (item not in lying or lying[item][0] == location.get(who, ("",))[0])]
        if who in location and random.random() < fetching and (carried or free):
            if free and (not carried or random.random() < 0.6):
                item = random.choice(free)
                holder[item], taken_at[item] = who, len(facts)
                lying.pop(item, None)
                facts.append((f"{who} {random.choice(TAKES).format(thing=item)}.", (who, item)))
            else:
                item = random.choice(carried)
                lying[item] = location[who][0], (location[who][1], len(facts))
                del holder[item]
                facts.append((f"{who} {random.choice(DROPS).format(thing=item)}.", (who, item)))
            continue
        room = random.choice([room for room in rooms if room != location.get(who, ("",))[0]])
        location[who] = room, len(facts)
        facts.append((f"{who} {random.choice(MOVES)} the {room}.", (who, room)))
    branches = [Branch(f"Where is {who}?", room, (index,), True, "one statement") for who, (room, index) in location.items()]
    for item in items:
        if item in holder:
            room, index = location[holder[item]]
            branches.append(Branch(f"Where is the {item}?", room, (taken_at[item], index), True, "two statements"))
        elif item in lying:
            room, (index, dropped) = lying[item]
            branches.append(Branch(f"Where is the {item}?", room, (dropped, index), True, "two statements"))
    return Lesson(tuple(facts), tuple(branches), ordered=True)


BABI: Any = settings_for("babi", "public", {"tasks": (1, 2)})
MAPS: tuple[Any, ...] = (settings_for("spatial", "base", {}), settings_for("spatial", "default", {}))
OPEN: Any = settings_for("spatial", "base", {"obstacles": 0.0, "graph_share": 0.0, "path_share": 3.0, "n_items": 8, "n_competitors": 0})


def public_stories(random: Random, n_facts: int, split: Split) -> Lesson:
    """A public bAbI story of tasks 1 and 2."""
    return world_lesson(random, babi.make_world(random, BABI, WorldSpec(split, 0, random.randrange(400))), ordered=True)


def maps(random: Random, n_facts: int, split: Split) -> Lesson:
    """Ways, procedures, things and walks on a map."""
    world = spatial.make_world(random, random.choice(MAPS), WorldSpec(split, 0, random.randrange(10_000)))
    return world_lesson(random, world, ordered=True)


def open_maps(random: Random, n_facts: int, split: Split) -> Lesson:
    """Mostly shortest routes, on small grids without obstacles."""
    return world_lesson(random, spatial.make_world(random, OPEN, WorldSpec(split, 0, random.randrange(10_000))), ordered=True)


ALL = (  # what hippo-tiny's tokenizer is learnt from; the others are for a reader that knows the language
    *(slots, journeys, other_words, nothing_said, last_mention, corrected_once, chains, tuples, plans, dialogue, needle),
    *(movements, public_stories, maps, open_maps),
)
DRILLS: dict[str, Drill] = {drill.__name__: drill for drill in (*ALL, bank_of_relations)}
FILES = {"needle": (STORIES,), "public_stories": tuple(babi.public.files(BABI.tasks))}  # what a drill reads, by name in params/data.yaml
