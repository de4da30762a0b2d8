"""Tasks about people who walk from room to room and carry objects: answers are read from the state of the house."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

from hippo_core.files import tables
from hippo_core.suites.babi.story import OBJECTS, ROOMS, StoryBuilder

FORMS = tables(__file__)
MOVES, JOINT_MOVES = FORMS["moves"], FORMS["joint_moves"]
ALONE, BOTH = (
    tuple(f"{later} {who} {verb} to the {{where}}." for later in FORMS["later"] for verb in FORMS["onward"])
    for who in ("that person", "both of them")
)
COUNTS = ("none", "one", "two", "three")


@dataclass
class House:
    """Who is where, who carries what, what lies where, and the statements that say so."""

    story: StoryBuilder
    people: list[str]
    rooms: list[str]
    objects: list[str]
    at: dict[str, tuple[str, int]] = field(default_factory=dict)  # of a person: room, statement
    holders: dict[str, tuple[str, int]] = field(default_factory=dict)  # of an object: who carries it, statement
    lying: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)  # of an object put down: room, statements
    trips: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)  # of an object: rooms in turn, statements
    handled: dict[str, list[int]] = field(default_factory=dict)  # of a person: statements of taking
    freed: dict[str, int] = field(default_factory=dict)  # of a person: the last statement of putting down

    def load(self, who: str) -> dict[str, int]:
        """What a person carries, each object with the statement of its taking, in order."""
        return {obj: line for obj, (holder, line) in self.holders.items() if holder == who}

    def named(self, slot: str) -> set[str]:
        """The rooms (`where`) or objects (`what`) that a statement has named."""
        return {slots[slot] for _, slots in self.story.statements if slot in slots}

    def other_room(self, who: str) -> str:
        """A room where this person is not."""
        return self.story.random.choice([room for room in self.rooms if who not in self.at or room != self.at[who][0]])

    def move(self, who: str) -> None:
        """Somebody goes to another room with their load."""
        before, room = self.at.get(who), self.other_room(who)
        self.at[who] = room, self.story.add_statement(MOVES, who=who, where=room)
        for obj, taking in self.load(who).items():
            came_from = (before[1],) if before else ()
            self.trips[obj].append((room, (*came_from, taking, self.at[who][1])))

    def take(self, who: str, obj: str) -> None:
        """Somebody takes an object."""
        line = self.story.add_statement(FORMS["takes"], who=who, what=obj)
        self.lying.pop(obj, None)
        self.holders[obj] = who, line
        self.handled.setdefault(who, []).append(line)
        self.trips.setdefault(obj, [(self.at.get(who, ("",))[0], ())])

    def put_down(self, who: str, obj: str) -> None:
        """Somebody puts an object down."""
        line = self.story.add_statement(FORMS["puts"], who=who, what=obj)
        del self.holders[obj]
        room, moved = self.at[who]
        self.lying[obj] = room, (moved, line)
        self.freed[who] = line

    def act(self, carrying: float) -> None:
        """One statement: with probability `carrying` somebody takes or puts down an object if possible, else somebody moves."""
        random = self.story.random
        who = random.choice(self.people)
        if who in self.at and random.random() < carrying:
            loaded, here = list(self.load(who)), self.at[who][0]
            free = [obj for obj in self.objects if obj not in self.holders and self.lying.get(obj, (here,))[0] == here]
            if free and (not loaded or random.random() < 0.6):
                return self.take(who, random.choice(free))
            if loaded:
                return self.put_down(who, random.choice(loaded))
        return self.move(who)

    def ask_where(self, who: str, support: Collection[int]) -> None:
        """Ask where a person is."""
        self.story.ask("Where is {who}?", self.at[who][0], support, self.named("where"), who=who)

    def ask_whether_at(self, who: str, known: dict[str, str], elsewhere: str, choices: int) -> None:
        """Ask whether a person is at a place: half of the time a `known` one, with its answer; else another that was named."""
        random, others = self.story.random, sorted(self.named("where") - set(known))
        if elsewhere and others and random.random() < 0.5:
            where, answer = random.choice(others), elsewhere
        else:
            where, answer = random.choice(list(known.items()))
        self.story.ask("Is {who} at the {where}?", answer, [self.at[who][1]], choices, who=who, where=where)


def house(story: StoryBuilder, people: int = 4, rooms: int = 6, objects: int = 3) -> House:
    """An empty house with its people, rooms and objects."""
    random = story.random
    return House(story, story.people(people), random.sample(ROOMS, rooms), random.sample(OBJECTS, objects))


def acting(story: StoryBuilder, least: int, most: int, carrying: float, people: int = 4) -> Iterator[House]:
    """A house after each of `least` to `most` statements."""
    state = house(story, people)
    for _ in range(story.random.randint(least, most)):
        state.act(carrying)
        yield state


def one_supporting_fact(story: StoryBuilder) -> None:
    """Task 1. Where is a person?"""
    for state in acting(story, 4, 12, 0.0):
        who = story.random.choice(list(state.at))
        state.ask_where(who, [state.at[who][1]])


def two_supporting_facts(story: StoryBuilder) -> None:
    """Task 2. Where is an object? Where its holder is, or put it down."""
    for state in acting(story, 6, 20, 0.5):
        locations = {obj: (state.at[who][0], (line, state.at[who][1])) for obj, (who, line) in state.holders.items()} | state.lying
        if locations:
            what = story.random.choice(list(locations))
            room, lines = locations[what]
            story.ask("Where is the {what}?", room, lines, state.named("where"), what=what)


def three_supporting_facts(story: StoryBuilder) -> None:
    """Task 3. Where was an object before a room? Only rooms that it came to once."""
    for state in acting(story, 10, 32, 0.4):
        legs = [
            (obj, here, before, lines)
            for obj, trip in state.trips.items()
            for (before, _), (here, lines) in pairwise(trip)
            if [room for room, _ in trip].count(here) == 1
        ]
        if legs:
            what, where, room, lines = story.random.choice(legs)
            story.ask("Where was the {what} before the {where}?", room, lines, state.named("where") - {where}, what=what, where=where)


def three_argument_relations(story: StoryBuilder) -> None:
    """Task 5. Who gave what to whom? Only where one statement answers."""
    random, state, gifts = story.random, house(story, people=3, objects=4), []
    for _ in range(random.randint(6, 14)):
        free = [obj for obj in state.objects if obj not in state.holders]
        if not state.holders or (free and random.random() < 0.3):
            state.take(random.choice(state.people), random.choice(free))
            continue
        what = random.choice(list(state.holders))
        who = state.holders[what][0]
        whom = random.choice([other for other in state.people if other != who])
        line = story.add_statement(FORMS["gifts"], who=who, what=what, whom=whom)
        state.holders[what] = whom, line
        gifts.append(({"who": who, "what": what, "whom": whom}, line))
        gift, line = random.choice(gifts)
        role = random.choice(list(FORMS["gift_questions"]))
        cue = {name: value for name, value in gift.items() if name != role}
        if sum(cue.items() <= other.items() for other, _ in gifts) == 1:
            choices = state.named("what") if role == "what" else {who for other, _ in gifts for who in (other["who"], other["whom"])}
            story.ask(FORMS["gift_questions"][role], gift[role], [line], choices - set(cue.values()), **cue)


def yes_no(story: StoryBuilder) -> None:
    """Task 6. Is a person at a place?"""
    for state in acting(story, 4, 12, 0.0):
        who = story.random.choice(list(state.at))
        state.ask_whether_at(who, {state.at[who][0]: "yes"}, "no", 2)


def ask_for_load(story: StoryBuilder, question: str) -> None:
    """Tasks 7 and 8. How many objects, or which, does a person carry? Who carries none has taken one object and put it down."""
    for state in acting(story, 6, 16, 0.7, people=2):
        fit = [who for who, lines in state.handled.items() if state.load(who) or (len(lines) == 1 and who in state.freed)]
        if not fit:
            continue
        who = story.random.choice(fit)
        load, n_objects = state.load(who), len(state.named("what"))
        support = list(load.values()) or [state.freed[who]]
        if question.startswith("How many"):
            story.ask(question, COUNTS[len(load)], support, n_objects + 1, who=who)
        else:
            orders = [", ".join(order) for order in permutations(load)] if load else ["nothing"]
            story.ask(question, orders[0], support, 2**n_objects, orders[1:], who=who)


def negation(story: StoryBuilder) -> None:
    """Task 9. Is a person at a place, where some statements say who is no longer at one?"""
    random, state = story.random, house(story)
    departed: set[str] = set()
    for _ in range(random.randint(4, 12)):
        who = random.choice(state.people)
        if who in state.at and who not in departed and random.random() < 0.5:
            room, forms = state.at[who][0], FORMS["not_at"]
            departed.add(who)
        else:
            room, forms = state.other_room(who), (*FORMS["at"], *MOVES)
            departed.discard(who)
        state.at[who] = room, story.add_statement(forms, who=who, where=room)
        who = random.choice(list(state.at))
        known = {state.at[who][0]: "no" if who in departed else "yes"}
        state.ask_whether_at(who, known, "" if who in departed else "no", 2)


def indefinite_knowledge(story: StoryBuilder) -> None:
    """Task 10. Is a person at a place, where some are at one of two? yes, no or maybe."""
    random, state = story.random, house(story)
    either: dict[str, tuple[str, ...]] = {}
    for _ in range(random.randint(4, 12)):
        who = random.choice(state.people)
        if random.random() < 0.5:
            where, other = random.sample(state.rooms, 2)
            state.at[who] = where, story.add_statement(FORMS["either_at"], who=who, where=where, other=other)
            either[who] = where, other
        else:
            state.move(who)
            either[who] = (state.at[who][0],)
        who = random.choice(list(either))
        state.ask_whether_at(who, dict.fromkeys(either[who], "yes" if len(either[who]) == 1 else "maybe"), "no", 3)


def follow(story: StoryBuilder, named: Sequence[str], unnamed: Sequence[str], group_size: int) -> None:
    """Tasks 11 and 13. Where is a person, or one of two, who was named one statement before?"""
    random, state = story.random, house(story)
    lines: dict[str, tuple[int, int]] = {}
    for _ in range(random.randint(2, 6)):
        group = random.sample(state.people, group_size)
        first, second = random.sample(state.rooms, 2)
        begin = story.add_statement(named, **dict(zip(("who", "whom"), group, strict=False)), where=first)
        end = story.add_statement(unnamed, where=second)
        for who in group:
            state.at[who], lines[who] = (second, end), (begin, end)
        who = random.choice(list(lines))
        state.ask_where(who, lines[who])


def conjunction(story: StoryBuilder) -> None:
    """Task 12. Where is one of two people who go together?"""
    random, state = story.random, house(story)
    for _ in range(random.randint(3, 10)):
        group = random.sample(state.people, 2)
        left = [state.at[who][0] for who in group if who in state.at]
        where = random.choice([room for room in state.rooms if room not in left])
        line = story.add_statement(JOINT_MOVES, who=group[0], whom=group[1], where=where)
        state.at.update(dict.fromkeys(group, (where, line)))
        who = random.choice(list(state.at))
        state.ask_where(who, [state.at[who][1]])


def time(story: StoryBuilder) -> None:
    """Task 14. Where was a person before a place? Statements say when, but come in any order."""
    random, state, hours = story.random, house(story, people=3), FORMS["hours"]
    days = {who: dict(zip(sorted(random.sample(range(len(hours)), 3)), random.sample(state.rooms, 3), strict=True)) for who in state.people}
    visits = [(who, hour, where) for who, day in days.items() for hour, where in day.items()]
    lines = {}
    for who, hour, where in random.sample(visits, len(visits)):
        lines[who, hour] = story.add_statement(tuple(f"{hours[hour]} {form}" for form in MOVES), who=who, where=where)
    for who, day in days.items():
        for before, after in pairwise(day):
            choices = state.named("where") - {day[after]}
            support = lines[who, before], lines[who, after]
            story.ask("Where was {who} before the {where}?", day[before], support, choices, who=who, where=day[after])


def motivations(story: StoryBuilder) -> None:
    """Task 20. Where will somebody go, and why did somebody go there? Rules say which need leads where."""
    random, people = story.random, story.people(4)
    needs = dict(zip(random.sample(FORMS["needs"], 3), random.sample(ROOMS, 3), strict=True))
    rules = {need: story.add_statement(FORMS["rules"], need=need, where=where) for need, where in needs.items()}
    for who in people:
        need = random.choice(list(needs))
        support = rules[need], story.add_statement(FORMS["feelings"], who=who, need=need)
        if random.random() < 0.5:
            story.ask("Where will {who} go?", needs[need], support, set(needs.values()), who=who)
        else:
            story.add_statement(MOVES, who=who, where=needs[need])
            story.ask("Why did {who} go to the {where}?", need, support, set(needs), who=who, where=needs[need])
