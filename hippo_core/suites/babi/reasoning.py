"""Tasks without change: places and shapes on a plane, sizes, kinds of animals. All statements come before the first question."""

from itertools import pairwise, product
from random import Random

from hippo_core.files import tables
from hippo_core.suites import lexicon
from hippo_core.suites.babi.story import OBJECTS, ROOMS, DrawFailed, StoryBuilder

STEPS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
POSITIONS = {"above": (0, 1), "right of": (1, 0), "below": (0, -1), "left of": (-1, 0)}
FORMS = tables(__file__)
COLORS, SHAPES, ANIMALS = FORMS["colors"], FORMS["shapes"], FORMS["animals"]
Point = tuple[int, int]
Edge = tuple[str, str, str]  # the first lies in that direction of the second


def draw_plane(random: Random, names: list[str], directions: dict[str, Point]) -> tuple[dict[str, Point], list[Edge]]:
    """Place each name beside an earlier one, no two at one point: their points, and who lies in which direction of whom."""
    points: dict[str, Point] = {names[0]: (0, 0)}
    edges = []
    for name in names[1:]:
        beside = random.choice(list(points))
        direction = random.choice(list(directions))
        point = tuple(a + b for a, b in zip(points[beside], directions[direction], strict=True))
        if point in points.values():
            raise DrawFailed
        points[name] = point[0], point[1]
        edges.append((name, direction, beside))
    return points, edges


def state_plane(story: StoryBuilder, edges: list[Edge], directions: dict[str, Point], forms: tuple[str, ...]) -> dict[frozenset[str], int]:
    """State each edge from either end, in any order; returns the statement of each pair."""
    opposite = {name: next(other for other, (x, y) in directions.items() if (-x, -y) == step) for name, step in directions.items()}
    lines = {}
    for first, direction, second in story.random.sample(edges, len(edges)):
        edge = (first, direction, second) if story.random.random() < 0.5 else (second, opposite[direction], first)
        lines[frozenset((first, second))] = story.add_statement(forms, first=edge[0], side=edge[1], second=edge[2])
    return lines


def two_argument_relations(story: StoryBuilder) -> None:
    """Task 4. Which place lies in a direction of another?"""
    names = story.random.sample(ROOMS, story.random.randint(3, 5))
    _, edges = draw_plane(story.random, names, STEPS)
    lines = state_plane(story, edges, STEPS, FORMS["lies"])
    for number, (_, slots) in enumerate(story.statements[: len(lines)]):
        first, direction, second = slots["first"], slots["side"], slots["second"]
        story.ask("What is directly {side} of the {second}?", first, [number], set(names) - {second}, side=direction, second=second)
        story.ask("What is the {first} directly {side} of?", second, [number], set(names) - {first}, side=direction, first=first)


def path_finding(story: StoryBuilder) -> None:
    """Task 19. Which two steps lead from one place to another, along stated edges?"""
    names = story.random.sample(ROOMS, story.random.randint(4, 6))
    points, edges = draw_plane(story.random, names, STEPS)
    lines = state_plane(story, edges, STEPS, FORMS["lies"])
    for start, middle, goal in two_steps(lines, names):
        moves = [tuple(b - a for a, b in zip(points[here], points[there], strict=True)) for here, there in pairwise((start, middle, goal))]
        steps = [next(name for name, step in STEPS.items() if step == move) for move in moves]
        support = lines[frozenset((start, middle))], lines[frozenset((middle, goal))]
        n_paths = 4 * 3  # never straight back
        text = "Which two steps lead from the {start} to the {goal}?"
        story.ask(text, ", ".join(steps), support, n_paths, [" then ".join(steps), " and ".join(steps)], start=start, goal=goal)


def two_steps(lines: dict[frozenset[str], int], names: list[str]) -> list[tuple[str, str, str]]:
    """All (start, middle, goal) whose pairs were both stated, with start and goal different."""
    walks = product(names, names, names)
    return [(a, b, c) for a, b, c in walks if a != c and {frozenset((a, b)), frozenset((b, c))} <= lines.keys()]


def positional_reasoning(story: StoryBuilder) -> None:
    """Task 17. Is a shape in a direction of another, both beside a third?"""
    random = story.random
    names = [f"{random.choice(COLORS)} {shape}" for shape in random.sample(SHAPES, random.randint(3, 5))]
    points, edges = draw_plane(random, names, POSITIONS)
    lines = state_plane(story, edges, POSITIONS, FORMS["stands"])
    for first, middle, second in two_steps(lines, names):
        direction = random.choice(list(POSITIONS))
        beyond = sum((a - b) * step for a, b, step in zip(points[first], points[second], POSITIONS[direction], strict=True)) > 0
        support = lines[frozenset((first, middle))], lines[frozenset((middle, second))]
        cue = {"first": first, "side": direction, "second": second}
        story.ask("Is the {first} {side} the {second}?", "yes" if beyond else "no", support, 2, **cue)


def size_reasoning(story: StoryBuilder) -> None:
    """Task 18. Does an object fit into another? Statements compare neighbours in size."""
    random = story.random
    names = random.sample(OBJECTS, random.randint(4, 6))  # from the smallest
    lines = {}
    for rank in random.sample(range(len(names) - 1), len(names) - 1):
        lines[rank] = story.add_statement(FORMS["sizes"], small=names[rank], large=names[rank + 1])
    for rank in range(len(names) - 2):
        pair = names[rank], names[rank + 2]
        fits = random.random() < 0.5
        first, second = pair if fits else pair[::-1]
        support = lines[rank], lines[rank + 1]
        story.ask("Does the {first} fit inside the {second}?", "yes" if fits else "no", support, 2, first=first, second=second)


def basic_deduction(story: StoryBuilder) -> None:
    """Task 15. What is an animal afraid of? A rule says it of the animal's kind."""
    random = story.random
    kinds = random.sample(list(ANIMALS), 4)
    feared = dict(zip(kinds, kinds[1:] + kinds[:1], strict=True))
    statements = [("rule", kind) for kind in kinds] + [("member", kind) for kind in kinds]
    names = dict(zip(kinds, story.people(4), strict=True))
    lines = {}
    for what, kind in random.sample(statements, len(statements)):
        if what == "rule":
            lines[what, kind] = story.add_statement(FORMS["fears"], kind=kind, kinds=ANIMALS[kind], others=ANIMALS[feared[kind]])
        else:
            lines[what, kind] = story.add_statement(FORMS["kinds"], who=names[kind], a_kind=lexicon.article(kind))
    for kind in kinds:
        other = feared[kind]
        choices = {ANIMALS[other_kind] for other_kind in kinds if other_kind != kind}
        support = lines["rule", kind], lines["member", kind]
        story.ask("What is {who} afraid of?", ANIMALS[other], support, choices, [other, lexicon.article(other)], who=names[kind])


def basic_induction(story: StoryBuilder) -> None:
    """Task 16. What color is an animal, by the only one of its kind with a stated color?"""
    random = story.random
    kinds, colors = random.sample(list(ANIMALS), 3), random.sample(COLORS, 3)
    people = story.people(6)
    known, queried = dict(zip(kinds, people[:3], strict=True)), dict(zip(kinds, people[3:], strict=True))
    statements = [("kind", kind, who) for group in (known, queried) for kind, who in group.items()]
    statements += [("color", kind, who) for kind, who in known.items()]
    lines = {}
    for what, kind, who in random.sample(statements, len(statements)):
        if what == "kind":
            lines[what, who] = story.add_statement(FORMS["kinds"], who=who, a_kind=lexicon.article(kind))
        else:
            lines[what, who] = story.add_statement(FORMS["colored"], who=who, color=colors[kinds.index(kind)])
    for kind, color in zip(kinds, colors, strict=True):
        support = lines["kind", queried[kind]], lines["kind", known[kind]], lines["color", known[kind]]
        story.ask("What color is {who}, if animals of one kind share it?", color, support, set(colors), who=queried[kind])
