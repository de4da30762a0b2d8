"""The words of the spatial suite: labels of places, things, obstacles, procedures, and how facts and questions are put.

Every label is a single plain noun, so that any tokenizer spells it briefly. No word stands in two lists.
"""

from collections.abc import Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PLACES = _words("""
    abbey arch attic bakery bank barn bay beach bench bridge cabin camp castle cave cellar chapel church cliff cottage court
    dairy dam den dock dune farm fen field ford forge fort fountain gallery garage garden gate glen grove hall harbor hill
    hotel house hut inn island jail kitchen kiosk lake library lodge lookout market marsh meadow mill mine moor museum
    office orchard palace park pasture pier pond port quarry ranch ruin school shed shop shrine spring stable station store
    studio temple tent terrace tower tunnel vault village vineyard well wharf windmill workshop yard
""")
OBJECTS = _words("""
    anchor apple axe barrel basket bell blanket bottle bowl box broom brush bucket candle cart chair chest clock coin crate
    cup drum feather flag flute hammer harp hat helmet hook horn jar kettle key kite ladder lamp lantern map mask medal
    mirror needle net oar pan pearl pipe plate plow pot ribbon ring rope saddle scarf shield shovel sickle spear spoon
    statue stool sword table telescope torch trumpet vase violin wagon wheel whistle
""")
OBSTACLES = ("hedge", "wall", "fence", "ditch", "thicket", "boulder", "swamp", "crevice", "landslide", "river", "gorge", "bog")
PROCEDURES = tuple(
    f"{first} {second}"
    for first in ("milk", "bread", "mail", "egg", "coal", "night", "morning", "market", "goose", "harvest", "water", "evening")
    for second in ("round", "run", "walk", "tour")
)
VERBS = (
    "walks", "goes", "heads", "strolls", "runs", "moves", "wanders", "marches", "hikes", "jogs", "steps", "trots", "hurries", "travels",
    "rushes", "ambles",
)  # fmt: skip
# What a link may lead over, along or through, with the words that say so: "over the footbridge".
WAYS = {
    "alley": "through", "arcade": "through", "avenue": "along", "boardwalk": "along", "causeway": "across", "corridor": "through",
    "ferry": "by", "footbridge": "over", "passage": "through", "promenade": "along", "ramp": "by", "stairs": "by", "towpath": "along",
    "trail": "along", "underpass": "through", "viaduct": "over",
}  # fmt: skip

GRID_FORMS = (
    "The {to} is {direction} of the {origin}.",
    "The {to} lies {direction} of the {origin}.",
    "Going {direction} from the {origin} leads to the {to}.",
    "A step {direction} of the {origin} is the {to}.",
)
GRAPH_FORMS = (
    "A path links the {a} and the {b}.",
    "A lane joins the {a} to the {b}.",
    "One can walk between the {a} and the {b}.",
    "The {a} and the {b} are neighbors.",
)
GRID_WAY_FORMS = (
    "The {to} is {direction} of the {origin}, {way}.",
    "Going {direction} {way} from the {origin} leads to the {to}.",
    "From the {origin} one gets {direction} {way} to the {to}.",
    "It is a step {direction} {way} from the {origin} to the {to}.",
)
GRAPH_WAY_FORMS = (
    "One gets {way} from the {a} to the {b} and back.",
    "Between the {a} and the {b} one goes {way}.",
    "The path between the {a} and the {b} leads {way}.",
)
OBSTACLE_FORMS = ("A {obstacle} blocks the way {direction} of the {origin}.", "A {obstacle} bars the way {direction} from the {origin}.")
START_FORMS = ("{who} starts at the {origin}.", "{who} sets out from the {origin}.", "{who} begins at the {origin}.")
STEP_FORM = "{who} {verb} {direction}."

# What an explorer says at each step: the move and where it led, which sides are open, what stands beyond some of them.
STEP_NUMBER = "Step {step}: "
FIRST_STEP_FORMS = (
    "{who} began at {place}.", "{who} started out at {place}.", "{who} set out from {place}.", "{who} stood at {place}.",
    "At first {who} was at {place}.", "The walk began at {place}.",
)  # fmt: skip
MOVE_FORMS = (
    "{who} went {move} and came to {place}.", "{who} walked {move} and reached {place}.", "{who} headed {move} and got to {place}.",
    "{who} moved {move} and arrived at {place}.", "One step {move} brought {whom} to {place}.", "Going {move}, {who} came to {place}.",
    "Walking {move}, {who} reached {place}.", "Then {who} went {move} and was at {place}.",
)  # fmt: skip
UNLABELED_PLACES = ("a place without a sign", "an unmarked place", "a place with no name")
SIDE_FORMS = (
    ("It was open to the {open}", ", and blocked to the {walls}"),
    ("The way was free to the {open}", ", and barred to the {walls}"),
    ("One could go on to the {open}", ", but not to the {walls}"),
    ("There was a way out to the {open}", ", and a wall to the {walls}"),
)
SIGHT_FORMS = (
    "To the {direction} {who} could see the {place}.", "The {place} was in sight to the {direction}.",
    "Looking {direction}, {who} saw the {place}.", "Beyond, to the {direction}, lay the {place}.",
)  # fmt: skip

# A question with the number of a fact's form repeats that fact's words (rung `exact`), one with another number does not (`paraphrase`).
RECALL_FORMS = (
    "There is {object} at the {place}.",
    "The {place} has {object}.",
    "The {place} holds {object}.",
    "Someone left {object} at the {place}.",
)
RECALL_QUESTIONS = (
    "What is there at the {place}?",
    "What does the {place} have?",
    "What does the {place} hold?",
    "What did someone leave at the {place}?",
)
PROCEDURE_FORMS = (
    "The {name} goes from the {origin}: {steps}.",
    "The {name} leads from the {origin}: {steps}.",
    "The {name} proceeds from the {origin}: {steps}.",
)
PROCEDURE_QUESTIONS = (
    "How does the {name} go from the {origin}?",
    "How does the {name} lead from the {origin}?",
    "How does the {name} proceed from the {origin}?",
    "Which steps make up the {name} from the {origin}, in order?",
    "What are the steps of the {name} from the {origin}?",
)
GRID_PATH_QUESTIONS = (
    "Which directions lead from the {origin} to the {goal}?",
    "In which directions does one walk from the {origin} to the {goal}?",
    "List the directions of the shortest way from the {origin} to the {goal}.",
)
GRAPH_PATH_QUESTIONS = (
    "Which places lead from the {origin} to the {goal}?",
    "Which places does one walk through from the {origin} up to the {goal}?",
    "List the places on the shortest way from the {origin} up to the {goal}.",
)
TRAJECTORY_QUESTIONS = (
    "Where is {who} now, having left the {origin}?",
    "At which place is {who} after the walk from the {origin}?",
    "Where does the walk of {who} from the {origin} end?",
)
WAY_QUESTIONS = (
    "By what does one get from the {origin} to the {goal}?",
    "What does one take to get from the {origin} to the {goal}?",
    "What leads straight from the {origin} to the {goal}?",
)
STEP_COUNT_QUESTIONS = (
    "How many steps is it from the {origin} to the {goal}?",
    "In how many steps does one get from the {origin} to the {goal}?",
    "How many steps does the shortest way from the {origin} to the {goal} take?",
)
NEIGHBOR_QUESTIONS = (
    "Which place is {direction} of the {origin}?",
    "Where does one get by a step {direction} from the {origin}?",
    "What does one come to just {direction} of the {origin}?",
)
EXIT_QUESTIONS = (
    "In which directions can one leave the {origin}?",
    "Which directions are open at the {origin}?",
    "On which sides does a way lead out of the {origin}?",
)
NEXT_TO = "{place} next to the {neighbor}"  # one of several places that share a label
# No training sees these; questions that use them are the slice `new_template`.
HELD_OUT_QUESTIONS = {
    "recall": "Which thing would one come upon at the {place}?",
    "procedure": "Tell me the {name} from the {origin}, one step after the other.",
    "grid_path": "By which turns does one get from the {origin} to the {goal}?",
    "graph_path": "By way of which places does one get from the {origin} to the {goal}?",
    "trajectory": "Having left the {origin}, where did {who} end up?",
    "edge_label": "What joins the {origin} with the {goal}?",
    "step_count": "Tell me the number of steps between the {origin} and the {goal}.",
    "neighbor": "Leaving the {origin} to the {direction}, where does one arrive?",
    "exits": "Name the directions in which the {origin} is open.",
}


def article(noun: str) -> str:
    """The noun with its indefinite article: "an anchor"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def way(noun: str) -> str:
    """How one gets somewhere by it: "over the footbridge"."""
    return f"{WAYS[noun]} the {noun}"


def listed(nouns: Sequence[str]) -> str:
    """The words as one says them in a row: "north, east and west"."""
    return " and ".join(filter(None, [", ".join(nouns[:-1]), *nouns[-1:]]))
