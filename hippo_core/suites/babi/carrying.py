"""Tasks about people who walk from room to room and carry things: the state of the house is kept, and answers are read from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

from hippo_core.suites.babi.telling import ROOMS, THINGS, StoryBuilder

MOVES = tuple(f"{{who}} {verb} to the {{where}}." for verb in ("went", "moved", "walked", "travelled", "went back"))
TAKES = tuple(f"{{who}} {verb} the {{what}}." for verb in ("took", "grabbed", "got", "picked up"))
PUTS = tuple(f"{{who}} {verb} the {{what}}." for verb in ("dropped", "discarded", "left", "put down"))
GIFTS = tuple(f"{{who}} {verb} the {{what}} to {{whom}}." for verb in ("gave", "handed", "passed"))
TOGETHER = tuple(f"{{who}} and {{whom}} {verb} to the {{where}}." for verb in ("went", "moved", "walked", "hurried"))
LATER = ("Then", "Afterwards", "Later", "Next", "Thereafter")
ONWARD = ("went", "moved", "walked", "hurried", "ran", "travelled")
ALONE = tuple(f"{later} that person {verb} to the {{where}}." for later in LATER for verb in ONWARD)
BOTH = tuple(f"{later} both of them {verb} to the {{where}}." for later in LATER for verb in ONWARD)
COUNTS = ("none", "one", "two", "three")
HOURS = ("Yesterday", "This morning", "This afternoon", "This evening")


@dataclass
class House:
    """Who is where, who holds what, what lies where, and the statement that says so."""

    telling: StoryBuilder
    people: list[str]
    rooms: list[str]
    things: list[str]
    at: dict[str, tuple[str, int]] = field(default_factory=dict)  # of a person: room, statement
    held: dict[str, tuple[str, int]] = field(default_factory=dict)  # of a thing: who holds it, statement
    lying: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)  # of a thing put down: room, statements
    trips: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)  # of a thing: rooms in turn, statements
    handled: dict[str, list[int]] = field(default_factory=dict)  # of a person: statements of taking
    freed: dict[str, int] = field(default_factory=dict)  # of a person: the last statement of putting down

    def load(self, who: str) -> dict[str, int]:
        """What a person holds, each thing with the statement of its taking, in that order."""
        return {thing: line for thing, (holder, line) in self.held.items() if holder == who}

    def named_rooms(self) -> set[str]:
        """Rooms that a statement has named."""
        return {slots["where"] for slots in self.telling.slots if "where" in slots}

    def named_things(self) -> set[str]:
        """Things that a statement has named."""
        return {slots["what"] for slots in self.telling.slots if "what" in slots}

    def other_room(self, who: str) -> str:
        """A room where this person is not."""
        return self.telling.random.choice([room for room in self.rooms if who not in self.at or room != self.at[who][0]])

    def move(self, who: str) -> None:
        """Somebody goes to another room, with all that is carried."""
        before, room = self.at.get(who), self.other_room(who)
        self.at[who] = room, self.telling.say(MOVES, who=who, where=room)
        for thing, taken in self.load(who).items():
            came_from = (before[1],) if before else ()
            self.trips[thing].append((room, (*came_from, taken, self.at[who][1])))

    def take(self, who: str, thing: str) -> None:
        """Somebody takes a thing up."""
        line = self.telling.say(TAKES, who=who, what=thing)
        self.lying.pop(thing, None)
        self.held[thing] = who, line
        self.handled.setdefault(who, []).append(line)
        self.trips.setdefault(thing, [(self.at.get(who, ("",))[0], ())])

    def put(self, who: str, thing: str) -> None:
        """Somebody puts a thing down."""
        line = self.telling.say(PUTS, who=who, what=thing)
        del self.held[thing]
        room, moved = self.at[who]
        self.lying[thing] = room, (moved, line)
        self.freed[who] = line

    def act(self, carrying: float) -> None:
        """One statement: with probability `carrying` somebody takes or puts down a thing where that can be, else somebody moves."""
        who = self.telling.random.choice(self.people)
        if who in self.at and self.telling.random.random() < carrying:
            loaded = list(self.load(who))
            free = [one for one in self.things if one not in self.held and (one not in self.lying or self.lying[one][0] == self.at[who][0])]
            if free and (not loaded or self.telling.random.random() < 0.6):
                return self.take(who, self.telling.random.choice(free))
            if loaded:
                return self.put(who, self.telling.random.choice(loaded))
        return self.move(who)


def house(telling: StoryBuilder, people: int = 4, rooms: int = 6, things: int = 3) -> House:
    """An empty house with its people, rooms and things."""
    random = telling.random
    return House(telling, telling.people(people), random.sample(ROOMS, rooms), random.sample(THINGS, things))


def one_supporting_fact(telling: StoryBuilder) -> None:
    """Task 1. Where is a person?"""
    state = house(telling)
    for _ in range(telling.random.randint(4, 12)):
        state.act(0.0)
        who = telling.random.choice(list(state.at))
        room, line = state.at[who]
        telling.ask("Where is {who}?", room, [line], state.named_rooms(), who=who)


def two_supporting_facts(telling: StoryBuilder) -> None:
    """Task 2. Where is a thing? Where its holder is, or was when it was put down."""
    state = house(telling)
    for _ in range(telling.random.randint(6, 20)):
        state.act(0.5)
        locations = {thing: (state.at[who][0], (line, state.at[who][1])) for thing, (who, line) in state.held.items()} | state.lying
        if locations:
            what = telling.random.choice(list(locations))
            room, lines = locations[what]
            telling.ask("Where is the {what}?", room, lines, state.named_rooms(), what=what)


def three_supporting_facts(telling: StoryBuilder) -> None:
    """Task 3. Where was a thing before it came to a room? Only rooms that it came to once."""
    state = house(telling)
    for _ in range(telling.random.randint(10, 32)):
        state.act(0.4)
        legs = [
            (thing, here, before, lines)
            for thing, trip in state.trips.items()
            for (before, _), (here, lines) in pairwise(trip)
            if [room for room, _ in trip].count(here) == 1
        ]
        if legs:
            what, where, room, lines = telling.random.choice(legs)
            telling.ask("Where was the {what} before the {where}?", room, lines, state.named_rooms() - {where}, what=what, where=where)


def three_argument_relations(telling: StoryBuilder) -> None:
    """Task 5. Who gave what to whom? Only where one statement answers."""
    state, gifts = house(telling, people=3, things=4), []
    forms = {
        "what": "What did {who} give to {whom}?",
        "who": "Who gave the {what} to {whom}?",
        "whom": "To whom did {who} give the {what}?",
    }
    for _ in range(telling.random.randint(6, 14)):
        free = [thing for thing in state.things if thing not in state.held]
        if not state.held or (free and telling.random.random() < 0.3):
            state.take(telling.random.choice(state.people), telling.random.choice(free))
            continue
        what = telling.random.choice(list(state.held))
        who = state.held[what][0]
        whom = telling.random.choice([one for one in state.people if one != who])
        line = telling.say(GIFTS, who=who, what=what, whom=whom)
        state.held[what] = whom, line
        gifts.append(({"who": who, "what": what, "whom": whom}, line))
        gift, line = telling.random.choice(gifts)
        role = telling.random.choice(list(forms))
        cue = {name: value for name, value in gift.items() if name != role}
        if sum(all(other[name] == value for name, value in cue.items()) for other, _ in gifts) == 1:
            choices = state.named_things() if role == "what" else {who for other, _ in gifts for who in (other["who"], other["whom"])}
            telling.ask(forms[role], gift[role], [line], choices - set(cue.values()), **cue)


def yes_no(telling: StoryBuilder) -> None:
    """Task 6. Is a person at a place?"""
    state = house(telling)
    for _ in range(telling.random.randint(4, 12)):
        state.act(0.0)
        who = telling.random.choice(list(state.at))
        ask_whether_at(telling, state, who, {state.at[who][0]: "yes"}, "no", state.at[who][1], 2)


def ask_whether_at(telling: StoryBuilder, state: House, who: str, known: dict[str, str], elsewhere: str, line: int, choices: int) -> None:
    """Ask whether a person is at a place: half of the time one of those `known`, with their answers; else another that was told."""
    others = sorted(state.named_rooms() - set(known))
    if elsewhere and others and telling.random.random() < 0.5:
        where, answer = telling.random.choice(others), elsewhere
    else:
        where, answer = telling.random.choice(list(known.items()))
    telling.ask("Is {who} at the {where}?", answer, [line], choices, who=who, where=where)


def ask_for_load(telling: StoryBuilder, question: str) -> None:
    """Tasks 7 and 8. How many things, or which, does a person carry? Of those who carry none only who took one thing and put it down."""
    state, counted = house(telling, people=2), question.startswith("How many")
    for _ in range(telling.random.randint(6, 16)):
        state.act(0.7)
        fit = [who for who, taken in state.handled.items() if state.load(who) or (len(taken) == 1 and who in state.freed)]
        if not fit:
            continue
        who = telling.random.choice(fit)
        load = state.load(who)
        n_things = len(state.named_things())
        support = list(load.values()) or [state.freed[who]]
        if counted:
            telling.ask(question, COUNTS[len(load)], support, n_things + 1, who=who)
        else:
            orders = [", ".join(order) for order in permutations(load)] if load else ["nothing"]
            telling.ask(question, orders[0], support, 2**n_things, orders[1:], who=who)


def negation(telling: StoryBuilder) -> None:
    """Task 9. Is a person at a place, where some statements say who is no longer at one?"""
    state = house(telling)
    gone: set[str] = set()
    for _ in range(telling.random.randint(4, 12)):
        who = telling.random.choice(state.people)
        if who in state.at and who not in gone and telling.random.random() < 0.5:
            room = state.at[who][0]
            state.at[who] = room, telling.say(("{who} is no longer at the {where}.", "{who} is not at the {where}."), who=who, where=room)
            gone.add(who)
        else:
            room = state.other_room(who)
            state.at[who] = room, telling.say(("{who} is at the {where}.", *MOVES), who=who, where=room)
            gone.discard(who)
        who = telling.random.choice(list(state.at))
        room, line = state.at[who]
        ask_whether_at(telling, state, who, {room: "no" if who in gone else "yes"}, "" if who in gone else "no", line, 2)


def indefinite_knowledge(telling: StoryBuilder) -> None:
    """Task 10. Is a person at a place, where some are at one of two? yes, no or maybe."""
    state = house(telling)
    either: dict[str, tuple[str, ...]] = {}
    for _ in range(telling.random.randint(4, 12)):
        who = telling.random.choice(state.people)
        if telling.random.random() < 0.5:
            where, other = telling.random.sample(state.rooms, 2)
            state.at[who] = where, telling.say(("{who} is either at the {where} or at the {other}.",), who=who, where=where, other=other)
            either[who] = where, other
        else:
            state.move(who)
            either[who] = (state.at[who][0],)
        who = telling.random.choice(list(either))
        known = dict.fromkeys(either[who], "yes" if len(either[who]) == 1 else "maybe")
        ask_whether_at(telling, state, who, known, "no", state.at[who][1], 3)


def follow(telling: StoryBuilder, named: Sequence[str], unnamed: Sequence[str], together: int) -> None:
    """Tasks 11 and 13. Where is a person, or one of two, who was named one statement before?"""
    state = house(telling)
    lines: dict[str, tuple[int, int]] = {}
    for _ in range(telling.random.randint(2, 6)):
        group = telling.random.sample(state.people, together)
        first, second = telling.random.sample(state.rooms, 2)
        begin = telling.say(named, **dict(zip(("who", "whom"), group, strict=False)), where=first)
        end = telling.say(unnamed, where=second)
        for who in group:
            state.at[who], lines[who] = (second, end), (begin, end)
        who = telling.random.choice(list(lines))
        telling.ask("Where is {who}?", state.at[who][0], lines[who], state.named_rooms(), who=who)


def conjunction(telling: StoryBuilder) -> None:
    """Task 12. Where is one of two people who go together?"""
    state = house(telling)
    for _ in range(telling.random.randint(3, 10)):
        group = telling.random.sample(state.people, 2)
        where = telling.random.choice([room for room in state.rooms if all(room != state.at.get(who, ("", 0))[0] for who in group)])
        line = telling.say(TOGETHER, who=group[0], whom=group[1], where=where)
        state.at.update(dict.fromkeys(group, (where, line)))
        who = telling.random.choice(list(state.at))
        telling.ask("Where is {who}?", state.at[who][0], [state.at[who][1]], state.named_rooms(), who=who)


def time(telling: StoryBuilder) -> None:
    """Task 14. Where was a person before a place? Statements say when, and are not told in that order."""
    random, state = telling.random, house(telling, people=3)
    days = {who: dict(zip(sorted(random.sample(range(len(HOURS)), 3)), random.sample(state.rooms, 3), strict=True)) for who in state.people}
    visits = [(who, hour, where) for who, day in days.items() for hour, where in day.items()]
    lines = {}
    for who, hour, where in random.sample(visits, len(visits)):
        lines[who, hour] = telling.say(tuple(f"{HOURS[hour]} {form}" for form in MOVES), who=who, where=where)
    for who, day in days.items():
        for before, after in pairwise(day):
            choices = state.named_rooms() - {day[after]}
            support = lines[who, before], lines[who, after]
            telling.ask("Where was {who} before the {where}?", day[before], support, choices, who=who, where=day[after])


def motivations(telling: StoryBuilder) -> None:
    """Task 20. Where will somebody go, and why did somebody go there? Which need leads where is told."""
    random, people = telling.random, telling.people(4)
    needs = dict(zip(random.sample(("hungry", "thirsty", "tired", "bored", "cold", "curious"), 3), random.sample(ROOMS, 3), strict=True))
    forms = ("Whoever is {need} goes to the {where}.", "Those who are {need} go to the {where}.", "All {need} people go to the {where}.")
    rules = {need: telling.say((*forms, "Everybody who is {need} goes to the {where}."), need=need, where=where)
             for need, where in needs.items()}  # fmt: skip
    for who in people:
        need = random.choice(list(needs))
        felt = telling.say(("{who} is {need}.", "{who} feels {need}."), who=who, need=need)
        if random.random() < 0.5:
            telling.ask("Where will {who} go?", needs[need], (rules[need], felt), set(needs.values()), who=who)
        else:
            telling.say(MOVES, who=who, where=needs[need])
            telling.ask("Why did {who} go to the {where}?", need, (rules[need], felt), set(needs), who=who, where=needs[need])
