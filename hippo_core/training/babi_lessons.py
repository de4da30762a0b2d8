"""Stories of rooms in the manner of bAbI's tasks 1 and 2 (Weston et al. 2015): who goes where, who carries what."""

from random import Random

from hippo_core.suites import lexicon
from hippo_core.suites.types import Split
from hippo_core.training.lessons import Branch, Lesson

ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
ITEMS = ("football", "apple", "milk", "book", "lamp", "cup", "hat", "key")
BABI_NAMES = ("Mary", "John", "Sandra", "Daniel")
MOVES = ("moved to", "went to", "journeyed to", "travelled to", "went back to")
TAKES = ("got the {thing} there", "took the {thing} there", "picked up the {thing} there", "grabbed the {thing} there", "took the {thing}")
DROPS = ("dropped the {thing}", "left the {thing}", "discarded the {thing}", "put down the {thing}", "dropped the {thing} there")


def lesson(random: Random, n_facts: int, split: Split) -> Lesson:
    """A story of so many statements and all questions about where someone or something is at its end. The gold facts of a thing are the
    statement that took it (or put it down) and the one that brought it where it is."""
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
