"""Tasks about people who walk from room to room and carry objects: answers are read from the state of the house."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

from hippo_core.suites.babi.story import OBJECTS, ROOMS, StoryBuilder

MOVES = tuple(f"{{who}} {verb} to the {{where}}." for verb in ("went", "moved", "walked", "travelled", "went back"))
TAKES = tuple(f"{{who}} {verb} the {{what}}." for verb in ("took", "grabbed", "got", "picked up"))
PUTS = tuple(f"{{who}} {verb} the {{what}}." for verb in ("dropped", "discarded", "left", "put down"))
GIFTS = tuple(f"{{who}} {verb} the {{what}} to {{whom}}." for verb in ("gave", "handed", "passed"))
JOINT_MOVES = tuple(f"{{who}} and {{whom}} {verb} to the {{where}}." for verb in ("went", "moved", "walked", "hurried"))
LATER = ("Then", "Afterwards", "Later", "Next", "Thereafter")
ONWARD = ("went", "moved", "walked", "hurried", "ran", "travelled")
ALONE = tuple(f"{later} that person {verb} to the {{where}}." for later in LATER for verb in ONWARD)
BOTH = tuple(f"{later} both of them {verb} to the {{where}}." for later in LATER for verb in ONWARD)
COUNTS = ("none", "one", "two", "three")
HOURS = ("Yesterday", "This morning", "This afternoon", "This evening")


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

    def named_rooms(self) -> set[str]:
        """Rooms that a statement has named."""
        return {slots["where"] for slots in self.story.slots if "where" in slots}

    def named_objects(self) -> set[str]:
        """Objects that a statement has named."""
        return {slots["what"] for slots in self.story.slots if "what" in slots}

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
        line = self.story.add_statement(TAKES, who=who, what=obj)
        self.lying.pop(obj, None)
        self.holders[obj] = who, line
        self.handled.setdefault(who, []).append(line)
        self.trips.setdefault(obj, [(self.at.get(who, ("",))[0], ())])

    def put_down(self, who: str, obj: str) -> None:
        """Somebody puts an object down."""
        line = self.story.add_statement(PUTS, who=who, what=obj)
        del self.holders[obj]
        room, moved = self.at[who]
        self.lying[obj] = room, (moved, line)
        self.freed[who] = line

    def act(self, carrying: float) -> None:
        """One statement: with probability `carrying` somebody takes or puts down an object if possible, else somebody moves."""
        who = self.story.random.choice(self.people)
        if who in self.at and self.story.random.random() < carrying:
            loaded = list(self.load(who))
            free = [
                obj for obj in self.objects if obj not in self.holders and (obj not in self.lying or self.lying[obj][0] == self.at[who][0])
            ]
            if free and (not loaded or self.story.random.random() < 0.6):
                return self.take(who, self.story.random.choice(free))
            if loaded:
                return self.put_down(who, self.story.random.choice(loaded))
        return self.move(who)


def house(story: StoryBuilder, people: int = 4, rooms: int = 6, objects: int = 3) -> House:
    """An empty house with its people, rooms and objects."""
    random = story.random
    return House(story, story.people(people), random.sample(ROOMS, rooms), random.sample(OBJECTS, objects))


def one_supporting_fact(story: StoryBuilder) -> None:
    """Task 1. Where is a person?"""
    state = house(story)
    for _ in range(story.random.randint(4, 12)):
        state.act(0.0)
        who = story.random.choice(list(state.at))
        room, line = state.at[who]
        story.ask("Where is {who}?", room, [line], state.named_rooms(), who=who)


def two_supporting_facts(story: StoryBuilder) -> None:
    """Task 2. Where is an object? Where its holder is, or put it down."""
    state = house(story)
    for _ in range(story.random.randint(6, 20)):
        state.act(0.5)
        locations = {obj: (state.at[who][0], (line, state.at[who][1])) for obj, (who, line) in state.holders.items()} | state.lying
        if locations:
            what = story.random.choice(list(locations))
            room, lines = locations[what]
            story.ask("Where is the {what}?", room, lines, state.named_rooms(), what=what)


def three_supporting_facts(story: StoryBuilder) -> None:
    """Task 3. Where was an object before a room? Only rooms that it came to once."""
    state = house(story)
    for _ in range(story.random.randint(10, 32)):
        state.act(0.4)
        legs = [
            (obj, here, before, lines)
            for obj, trip in state.trips.items()
            for (before, _), (here, lines) in pairwise(trip)
            if [room for room, _ in trip].count(here) == 1
        ]
        if legs:
            what, where, room, lines = story.random.choice(legs)
            story.ask("Where was the {what} before the {where}?", room, lines, state.named_rooms() - {where}, what=what, where=where)


def three_argument_relations(story: StoryBuilder) -> None:
    """Task 5. Who gave what to whom? Only where one statement answers."""
    state, gifts = house(story, people=3, objects=4), []
    forms = {
        "what": "What did {who} give to {whom}?",
        "who": "Who gave the {what} to {whom}?",
        "whom": "To whom did {who} give the {what}?",
    }
    for _ in range(story.random.randint(6, 14)):
        free = [obj for obj in state.objects if obj not in state.holders]
        if not state.holders or (free and story.random.random() < 0.3):
            state.take(story.random.choice(state.people), story.random.choice(free))
            continue
        what = story.random.choice(list(state.holders))
        who = state.holders[what][0]
        whom = story.random.choice([other for other in state.people if other != who])
        line = story.add_statement(GIFTS, who=who, what=what, whom=whom)
        state.holders[what] = whom, line
        gifts.append(({"who": who, "what": what, "whom": whom}, line))
        gift, line = story.random.choice(gifts)
        role = story.random.choice(list(forms))
        cue = {name: value for name, value in gift.items() if name != role}
        if sum(all(other[name] == value for name, value in cue.items()) for other, _ in gifts) == 1:
            choices = state.named_objects() if role == "what" else {who for other, _ in gifts for who in (other["who"], other["whom"])}
            story.ask(forms[role], gift[role], [line], choices - set(cue.values()), **cue)


def yes_no(story: StoryBuilder) -> None:
    """Task 6. Is a person at a place?"""
    state = house(story)
    for _ in range(story.random.randint(4, 12)):
        state.act(0.0)
        who = story.random.choice(list(state.at))
        ask_whether_at(story, state, who, {state.at[who][0]: "yes"}, "no", state.at[who][1], 2)


def ask_whether_at(story: StoryBuilder, state: House, who: str, known: dict[str, str], elsewhere: str, line: int, choices: int) -> None:
    """Ask whether a person is at a place: half of the time a `known` one, with its answer; else another that was named."""
    others = sorted(state.named_rooms() - set(known))
    if elsewhere and others and story.random.random() < 0.5:
        where, answer = story.random.choice(others), elsewhere
    else:
        where, answer = story.random.choice(list(known.items()))
    story.ask("Is {who} at the {where}?", answer, [line], choices, who=who, where=where)


def ask_for_load(story: StoryBuilder, question: str) -> None:
    """Tasks 7 and 8. How many objects, or which, does a person carry? Who carries none has taken one object and put it down."""
    state, counted = house(story, people=2), question.startswith("How many")
    for _ in range(story.random.randint(6, 16)):
        state.act(0.7)
        fit = [who for who, lines in state.handled.items() if state.load(who) or (len(lines) == 1 and who in state.freed)]
        if not fit:
            continue
        who = story.random.choice(fit)
        load = state.load(who)
        n_objects = len(state.named_objects())
        support = list(load.values()) or [state.freed[who]]
        if counted:
            story.ask(question, COUNTS[len(load)], support, n_objects + 1, who=who)
        else:
            orders = [", ".join(order) for order in permutations(load)] if load else ["nothing"]
            story.ask(question, orders[0], support, 2**n_objects, orders[1:], who=who)


def negation(story: StoryBuilder) -> None:
    """Task 9. Is a person at a place, where some statements say who is no longer at one?"""
    state = house(story)
    departed: set[str] = set()
    for _ in range(story.random.randint(4, 12)):
        who = story.random.choice(state.people)
        if who in state.at and who not in departed and story.random.random() < 0.5:
            room = state.at[who][0]
            state.at[who] = (
                room,
                story.add_statement(("{who} is no longer at the {where}.", "{who} is not at the {where}."), who=who, where=room),
            )
            departed.add(who)
        else:
            room = state.other_room(who)
            state.at[who] = room, story.add_statement(("{who} is at the {where}.", *MOVES), who=who, where=room)
            departed.discard(who)
        who = story.random.choice(list(state.at))
        room, line = state.at[who]
        ask_whether_at(story, state, who, {room: "no" if who in departed else "yes"}, "" if who in departed else "no", line, 2)


def indefinite_knowledge(story: StoryBuilder) -> None:
    """Task 10. Is a person at a place, where some are at one of two? yes, no or maybe."""
    state = house(story)
    either: dict[str, tuple[str, ...]] = {}
    for _ in range(story.random.randint(4, 12)):
        who = story.random.choice(state.people)
        if story.random.random() < 0.5:
            where, other = story.random.sample(state.rooms, 2)
            state.at[who] = (
                where,
                story.add_statement(("{who} is either at the {where} or at the {other}.",), who=who, where=where, other=other),
            )
            either[who] = where, other
        else:
            state.move(who)
            either[who] = (state.at[who][0],)
        who = story.random.choice(list(either))
        known = dict.fromkeys(either[who], "yes" if len(either[who]) == 1 else "maybe")
        ask_whether_at(story, state, who, known, "no", state.at[who][1], 3)


def follow(story: StoryBuilder, named: Sequence[str], unnamed: Sequence[str], group_size: int) -> None:
    """Tasks 11 and 13. Where is a person, or one of two, who was named one statement before?"""
    state = house(story)
    lines: dict[str, tuple[int, int]] = {}
    for _ in range(story.random.randint(2, 6)):
        group = story.random.sample(state.people, group_size)
        first, second = story.random.sample(state.rooms, 2)
        begin = story.add_statement(named, **dict(zip(("who", "whom"), group, strict=False)), where=first)
        end = story.add_statement(unnamed, where=second)
        for who in group:
            state.at[who], lines[who] = (second, end), (begin, end)
        who = story.random.choice(list(lines))
        story.ask("Where is {who}?", state.at[who][0], lines[who], state.named_rooms(), who=who)


def conjunction(story: StoryBuilder) -> None:
    """Task 12. Where is one of two people who go together?"""
    state = house(story)
    for _ in range(story.random.randint(3, 10)):
        group = story.random.sample(state.people, 2)
        where = story.random.choice([room for room in state.rooms if all(room != state.at.get(who, ("", 0))[0] for who in group)])
        line = story.add_statement(JOINT_MOVES, who=group[0], whom=group[1], where=where)
        state.at.update(dict.fromkeys(group, (where, line)))
        who = story.random.choice(list(state.at))
        story.ask("Where is {who}?", state.at[who][0], [state.at[who][1]], state.named_rooms(), who=who)


def time(story: StoryBuilder) -> None:
    """Task 14. Where was a person before a place? Statements say when, but come in any order."""
    random, state = story.random, house(story, people=3)
    days = {who: dict(zip(sorted(random.sample(range(len(HOURS)), 3)), random.sample(state.rooms, 3), strict=True)) for who in state.people}
    visits = [(who, hour, where) for who, day in days.items() for hour, where in day.items()]
    lines = {}
    for who, hour, where in random.sample(visits, len(visits)):
        lines[who, hour] = story.add_statement(tuple(f"{HOURS[hour]} {form}" for form in MOVES), who=who, where=where)
    for who, day in days.items():
        for before, after in pairwise(day):
            choices = state.named_rooms() - {day[after]}
            support = lines[who, before], lines[who, after]
            story.ask("Where was {who} before the {where}?", day[before], support, choices, who=who, where=day[after])


def motivations(story: StoryBuilder) -> None:
    """Task 20. Where will somebody go, and why did somebody go there? Rules say which need leads where."""
    random, people = story.random, story.people(4)
    needs = dict(zip(random.sample(("hungry", "thirsty", "tired", "bored", "cold", "curious"), 3), random.sample(ROOMS, 3), strict=True))
    forms = ("Whoever is {need} goes to the {where}.", "Those who are {need} go to the {where}.", "All {need} people go to the {where}.")
    rules = {need: story.add_statement((*forms, "Everybody who is {need} goes to the {where}."), need=need, where=where)
             for need, where in needs.items()}  # fmt: skip
    for who in people:
        need = random.choice(list(needs))
        felt = story.add_statement(("{who} is {need}.", "{who} feels {need}."), who=who, need=need)
        if random.random() < 0.5:
            story.ask("Where will {who} go?", needs[need], (rules[need], felt), set(needs.values()), who=who)
        else:
            story.add_statement(MOVES, who=who, where=needs[need])
            story.ask("Why did {who} go to the {where}?", need, (rules[need], felt), set(needs), who=who, where=needs[need])
