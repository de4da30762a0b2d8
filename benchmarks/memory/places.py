"""How well the fitted reader reads statements of places that it was not fitted on, and maps that are told in them.

    python -m benchmarks.memory.places [--split test] [--worlds 24]

Statements of the bank of places: wordings that training lacks, in settings that it has; and all of the settings that it lacks. Then maps
of 10 to 20 places that are told in these wordings alone, with links that are closed and sentences that tell none, and ways asked for in
questions of the split. The reader alone, no model: whether the map's way is right, in places or in directions. One thread.
"""

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from random import Random

import torch

from benchmarks.memory.ways import build
from hippo_core.methods.spatial.answers import Atlas
from hippo_core.methods.spatial.encoder import SAYS
from hippo_core.methods.spatial.learned import PlaceReader, fitted_places
from hippo_core.suites.spatial import bank
from hippo_core.suites.types import Split
from hippo_core.training.place_encoder import marked, says_of, stands_of
from hippo_core.training.place_lessons import PEOPLE, SIDES, PlaceLessons

OPEN = ("link", "forward", "back", "opened")
NAMES = {
    "one word": "mill barn well attic tower smithy market pond chapel ford kennel pantry wharf orchard granary study dairy library inn",
    "two words": "long gallery, white house, salt barn, dove cote, brick kiln, wash house, fish pond, wine shop, bell tower, herb garden, "
    "ice house, sheep pen, boat yard, cider press, tea room, east pier, old mill, coal cellar, map room, rope walk",
    "proper": "Saint Olave's, Marsh End, Tanner's Row, Kiln Lane, Hope Square, Birch Hall, Ward 7, Hold 2, Kettle Yard, Harrow Green, "
    "Quince Hill, Dolphin Square, Rook Lane, Penny Wharf, Larkfield, Room 12, Vine Cottage, Oxley Gate, Cold Harbour, Gate 4",
}


def statements(reader: PlaceReader, split: Split, unseen: bool) -> dict[str, float]:
    """What is read right of every statement of a split, three times each with other places."""
    texts = PlaceLessons(split, 7, unseen).every(3)
    made, turns = marked(texts, reader.marker)
    hits = dict.fromkeys(("right", "open", "said open", "both", "none", "false", "ends", "ends right"), 0)
    with torch.inference_mode():
        for first in range(0, len(texts), 32):
            part = slice(first, first + 32)
            for text, one in zip(texts[part], reader.model(made[part], turns[part]), strict=True):
                for i, j, says in says_of(text):
                    said = SAYS[int(one.says[i, j].argmax())]
                    told, read = SAYS[says] in OPEN, said in OPEN
                    hits["right"] += said == SAYS[says]
                    hits["open"] += told
                    hits["said open"] += read
                    hits["both"] += told and read
                    hits["none"] += SAYS[says] == "none"
                    hits["false"] += SAYS[says] == "none" and read
                for i, j, begins in stands_of(text):
                    hits["ends"] += 1
                    hits["ends right"] += (float(one.stands[i, j]) > 0) == bool(begins)
    return {
        "statements": len(texts),
        "kind right": hits["right"] / len(texts),
        "F1 of links": 2 * hits["both"] / (hits["open"] + hits["said open"]),
        "false links": hits["false"] / max(1, hits["none"]),
        "direction right": hits["ends right"] / max(1, hits["ends"]),
    }


def frames_of(split: Split, unseen: bool, random: Random) -> dict[str, list[str]]:
    """The wordings of a split as `benchmarks.memory.ways` takes them."""
    chosen = bank.unseen(split) if unseen else bank.frames(split)
    found: dict[str, list[str]] = {"places": [], "directions": [], "distractors": [], "closed": []}
    for one in chosen:
        fills = {"means": random.choice(bank.means(one.setting)), "minutes": str(random.randrange(2, 30)), "side": random.choice(SIDES)}
        fills |= {"who": random.choice(PEOPLE)}
        text = one.text.replace("{direction}", "{d}")
        for slot, word in fills.items():
            text = text.replace(f"{{{slot}}}", word)
        if kind := {"none": "distractors", "closed": "closed", "link": "directions" if "{d}" in text else "places"}.get(one.says):
            found[kind].append(text)
    found["asked_places"] = found["asked_directions"] = [text for text, asks in bank.questions(split) if asks == "way"]
    return found


def ways(reader: PlaceReader, words: Mapping[str, Sequence[str]], names: Sequence[str], worlds: int) -> tuple[float, int]:
    """The share of ways that the maps of such worlds answer right, and of how many."""
    given = {"names": {"plain": list(names), "two": [], "proper": []}, "people": PEOPLE, "seed": 7}
    facts, items = build({**words, **given, "worlds": worlds, "questions_per_world": 10})
    bare = re.compile(rf"\b[Tt]he (?=(?:{'|'.join(name for name in names if name[0].isupper()) or '$'})\b)")
    right = 0
    for world in dict.fromkeys(fact["world"] for fact in facts):
        atlas = Atlas([bare.sub("", fact["text"]) for fact in facts if fact["world"] == world], reader=reader)
        for item in items:
            if item["world"] == world:
                said = atlas.say(bare.sub("", item["question"]))
                answer = ", ".join(said.way.words) if said and said.way and item["kind"] == "directions" else said.answer if said else ""
                right += answer.lower() in [accepted.lower().replace("the ", "") for accepted in item["answers"]]
    return right / len(items), len(items)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=("val", "test"))
    parser.add_argument("--worlds", type=int, default=24)
    told = parser.parse_args()
    torch.set_num_threads(1)
    reader = fitted_places()
    print("| statements | how many | kind right | F1 of links | false links | direction right |\n|---|--:|--:|--:|--:|--:|")
    for unseen, what in ((False, "wordings that training lacks"), (True, "settings that it lacks")):
        found = statements(reader, told.split, unseen)
        print(f"| {what} | {found.pop('statements'):.0f} | " + " | ".join(f"{value:.3f}" for value in found.values()) + " |")
    print("\n| maps told in | places called by | ways | right | seconds |\n|---|---|--:|--:|--:|")
    for unseen, what in ((False, "wordings that training lacks"), (True, "settings that it lacks")):
        for name, names in NAMES.items():
            begin = time.perf_counter()
            share, count = ways(
                reader, frames_of(told.split, unseen, Random(7)), re.split(", | " if name == "one word" else ", ", names), told.worlds
            )
            print(f"| {what} | {name} | {count} | {share:.3f} | {time.perf_counter() - begin:.1f} |", flush=True)


if __name__ == "__main__":
    main()
