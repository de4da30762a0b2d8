"""A reader of the babi suite's sentences, written without its code: what a question's answer is by these sentences, or None."""

import re
from itertools import pairwise, product

MOVE = r"(?:went back|went|moved|walked|travelled|hurried|ran) to"
STEPS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0), "above": (0, 1), "below": (0, -1)}
POSITIONS = STEPS | {"right of": (1, 0), "left of": (-1, 0)}
OPPOSITE = {"north": "south", "east": "west", "above": "below", "right of": "left of"}
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}
HOURS = ["Yesterday", "This morning", "This afternoon", "This evening"]
PLURALS = {"mice": "mouse", "wolves": "wolf", "sheep": "sheep", "foxes": "fox"}
NUMBERS = ["none", "one", "two", "three"]


class House:
    """Where everybody can be, who carries what, and where each object has been, sentence by sentence."""

    def __init__(self, sentences):
        self.rooms, self.gone, self.holder, self.lies, self.trail, self.handlers, self.gifts = {}, {}, {}, {}, {}, set(), []
        group = ()
        for text in sentences:
            if match := re.fullmatch(rf"(\w+) and (\w+) {MOVE} the (\w+)\.", text):
                group = match[1], match[2]
                self.walk(group, match[3])
            elif match := re.fullmatch(rf"\w+ (?:that person|both of them) {MOVE} the (\w+)\.", text):
                self.walk(group, match[1])
                group = ()
            elif match := re.fullmatch(rf"(\w+) (?:{MOVE}|is at) the (\w+)\.", text):
                group = (match[1],)
                self.walk(group, match[2])
            elif match := re.fullmatch(r"(\w+) is (?:no longer|not) at the (\w+)\.", text):
                self.rooms.pop(match[1], None)
                self.gone[match[1]] = match[2]
            elif match := re.fullmatch(r"(\w+) is either at the (\w+) or at the (\w+)\.", text):
                self.rooms[match[1]] = {match[2], match[3]}
            elif match := re.fullmatch(r"(\w+) (?:took|grabbed|got|picked up) the (\w+)\.", text):
                who, what = match.groups()
                self.handlers.add(who)
                self.lies.pop(what, None)
                self.holder.pop(what, None)
                self.holder[what] = who
                self.reach(what, self.room(who))
            elif match := re.fullmatch(r"(\w+) (?:dropped|discarded|left|put down) the (\w+)\.", text):
                who, what = match.groups()
                self.handlers.add(who)
                self.holder.pop(what, None)
                self.lies[what] = self.room(who)
                self.reach(what, self.room(who))
            elif match := re.fullmatch(r"(\w+) (?:gave|handed|passed) the (\w+) to (\w+)\.", text):
                self.gifts.append(match.groups())
            else:
                raise AssertionError(f"no such sentence: {text}")

    def walk(self, people, room):
        for who in people:
            self.rooms[who] = {room}
            self.gone.pop(who, None)
            for what in [what for what, holder in self.holder.items() if holder == who]:
                self.reach(what, room)

    def reach(self, what, room):
        trail = self.trail.setdefault(what, [])
        if room and trail[-1:] != [room]:
            trail.append(room)

    def room(self, who):
        rooms = self.rooms.get(who, set())
        return next(iter(rooms)) if len(rooms) == 1 else None

    def whether(self, who, room):
        if self.gone.get(who) == room:
            return "no"
        if who not in self.rooms:
            return None
        return "no" if room not in self.rooms[who] else "yes" if len(self.rooms[who]) == 1 else "maybe"


def only(values):
    """The value if there is just one, else None."""
    values = list(values)
    return values[0] if len(values) == 1 else None


def read_house(sentences, question):
    house = House(sentences)
    if match := re.fullmatch(r"Where is the (\w+)\?", question):
        holder = house.holder.get(match[1])
        return house.room(holder) if holder else house.lies.get(match[1])
    if match := re.fullmatch(r"Where is (\w+)\?", question):
        return house.room(match[1])
    if match := re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question):
        trail = house.trail.get(match[1], [])
        return only(before for before, after in pairwise(trail) if after == match[2])
    if match := re.fullmatch(r"Is (\w+) at the (\w+)\?", question):
        return house.whether(*match.groups())
    if match := re.fullmatch(r"(How many things|What) is (\w+) carrying\?", question):
        load = [what for what, holder in house.holder.items() if holder == match[2]]
        if match[2] not in house.handlers:
            return None
        return NUMBERS[len(load)] if match[1] != "What" else ", ".join(load) or "nothing"
    if match := re.fullmatch(r"What did (\w+) give to (\w+)\?", question):
        return only(what for who, what, whom in house.gifts if (who, whom) == match.groups())
    if match := re.fullmatch(r"Who gave the (\w+) to (\w+)\?", question):
        return only(who for who, what, whom in house.gifts if (what, whom) == match.groups())
    if match := re.fullmatch(r"To whom did (\w+) give the (\w+)\?", question):
        return only(whom for who, what, whom in house.gifts if (who, what) == match.groups())
    raise AssertionError(f"no such question: {question}")


def read_day(sentences, question):
    who, where = re.fullmatch(r"Where was (\w+) before the (\w+)\?", question).groups()
    visits = [re.fullmatch(rf"(.*?) (\w+) {MOVE} the (\w+)\.", text).groups() for text in sentences]
    day = [room for hour, visitor, room in sorted(visits, key=lambda visit: HOURS.index(visit[0])) if visitor == who]
    return day[day.index(where) - 1] if where in day[1:] else None


def read_plane(sentences):
    """All stated (first, direction, second), and each the other way round."""
    edges = set()
    for text in sentences:
        match = re.fullmatch(r"the (.+) (?:is|lies|stands) directly (.+?)(?: of)? the (.+)\.", text[0].lower() + text[1:])
        if match:
            first, direction, second = match.groups()
        else:
            direction, second, first = re.fullmatch(r"directly (.+?)(?: of)? the (.+) (?:is|lies|stands) the (.+)\.", text.lower()).groups()
        direction = f"{direction} of" if direction in ("left", "right") else direction
        edges |= {(first, direction, second), (second, OPPOSITE[direction], first)}
    return edges


def read_relation(sentences, question):
    edges = read_plane(sentences)
    if match := re.fullmatch(r"What is directly (\w+) of the (\w+)\?", question):
        return only(first for first, direction, second in edges if (direction, second) == match.groups())
    first, direction = re.fullmatch(r"What is the (\w+) directly (\w+) of\?", question).groups()
    return only(other for name, towards, other in edges if (name, towards) == (first, direction))


def read_position(sentences, question):
    edges = read_plane(sentences)
    first, direction, second = re.fullmatch(r"Is the (\w+ \w+) (above|below|right of|left of) the (\w+ \w+)\?", question).groups()
    points, grown = {second: (0, 0)}, True
    while grown:
        more = {
            a: tuple(p + s for p, s in zip(points[b], POSITIONS[towards], strict=True))
            for a, towards, b in edges
            if b in points and a not in points
        }
        points, grown = points | more, bool(more)
    if first not in points:
        return None
    return "yes" if sum(p * s for p, s in zip(points[first], POSITIONS[direction], strict=True)) > 0 else "no"


def read_path(sentences, question):
    edges = read_plane(sentences)
    start, goal = re.fullmatch(r"Which two steps lead from the (\w+) to the (\w+)\?", question).groups()
    paths = [(step, next_step) for (b, step, a), (d, next_step, c) in product(edges, edges) if (a, b, d) == (start, c, goal)]
    return ", ".join(paths[0]) if len(paths) == 1 else None


def read_sizes(sentences, question):
    smaller = set()
    for text in sentences:
        match = re.fullmatch(r"The (\w+) (fits inside|is smaller than|is larger than|has room for) the (\w+)\.", text)
        smaller.add((match[1], match[3]) if match[2] in ("fits inside", "is smaller than") else (match[3], match[1]))
    while more := {(a, d) for (a, b), (c, d) in product(smaller, smaller) if b == c} - smaller:
        smaller |= more
    pair = re.fullmatch(r"Does the (\w+) fit inside the (\w+)\?", question).groups()
    return "yes" if pair in smaller else "no" if pair[::-1] in smaller else None


def singular(kind):
    return PLURALS.get(kind, kind.removesuffix("s"))


def read_fear(sentences, question):
    kinds, fears = {}, {}
    for text in sentences:
        if match := re.fullmatch(r"(\w+) is an? (\w+)\.", text):
            kinds[match[1]] = match[2]
        else:
            kind, other = re.fullmatch(r"(?:all |any |every )?(\w+) (?:are afraid of|is afraid of|fears?) (\w+)\.", text.lower()).groups()
            fears[singular(kind)] = other
    return fears.get(kinds.get(re.fullmatch(r"What is (\w+) afraid of\?", question)[1]))


def read_color(sentences, question):
    kinds, colors = {}, {}
    for text in sentences:
        if match := re.fullmatch(r"(\w+) is an? (\w+)\.", text):
            kinds[match[1]] = match[2]
        else:
            who, color = re.fullmatch(r"(\w+) (?:is|has the color) (\w+)\.", text).groups()
            colors[who] = color
    kind = kinds.get(re.fullmatch(r"What color is (\w+), if animals of one kind share it\?", question)[1])
    return only({color for who, color in colors.items() if kind and kinds.get(who) == kind})


def read_needs(sentences, question):
    goals, feels = {}, {}
    for text in sentences:
        if match := re.fullmatch(r"(?:Whoever is|Everybody who is|Those who are|All) (\w+)(?: people)? goe?s? to the (\w+)\.", text):
            goals[match[1]] = match[2]
        elif match := re.fullmatch(r"(\w+) (?:is|feels) (\w+)\.", text):
            feels[match[1]] = match[2]
    if match := re.fullmatch(r"Where will (\w+) go\?", question):
        return goals.get(feels.get(match[1]))
    who, where = re.fullmatch(r"Why did (\w+) go to the (\w+)\?", question).groups()
    return feels.get(who) if where == goals.get(feels.get(who)) else None


READERS = {4: read_relation, 14: read_day, 15: read_fear, 16: read_color, 17: read_position, 18: read_sizes, 19: read_path, 20: read_needs}


def read(task, sentences, question):
    """The answer to a question of a task by these sentences alone; None if they lack it."""
    return READERS.get(task, read_house)(list(sentences), question)
