"""What a sentence says, without who says so, how surely and whether it replaces what was so before.

Lea thinks that the Marlow shop is in Lima.     ->  Lea, .6: the Marlow shop is in Lima
Later the Marlow shop moved to Oslo.            ->  "", replaces: the Marlow shop moved to Oslo
Rumor has it that the Marlow shop is in Bern.   ->  nobody, .1: the Marlow shop is in Bern
The Ost winds past Saxby, or so Ann maintains.  ->  Ann: The Ost winds past Saxby (in words that no pattern knows)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from hippo_core.methods.relational.mentions import COMMON, Mention
from hippo_core.retrieval.lexicon import words

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_KINDS = rf"(?P<month>{'|'.join(MONTHS)})|(?:the year )?(?P<year>[12]\d\d\d)|(?P<unit>day|week|step) (?P<number>\d+)"
_DATE = rf"(?:in|on|at|by|since) (?:{_KINDS})"
BEFORE = re.compile(rf"^{_DATE},? (?=\w)", re.IGNORECASE)
BEHIND = re.compile(rf",? {_DATE}(?=[.?!]?$)", re.IGNORECASE)
MIDST = re.compile(rf",? {_DATE}\b", re.IGNORECASE)
STATE = re.compile(r"\b(?:moved|relocated|is|stands|lies|sits) ")
MOVED = re.compile(r"\b(?:moved|relocated) ")
FIRST = re.compile(r",? (?:at first|originally|to begin with|in the beginning)\b", re.IGNORECASE)
EARLIER = re.compile(r",? (?:before (?:it|this|that) (?:has |had )?(?:moved|relocated|changed)|previously)\b", re.IGNORECASE)


class Date(NamedTuple):
    """The `number` of a month, a year, a day, a week or a step."""

    kind: str
    number: int


class When(NamedTuple):
    """Which time is asked about: that of a `date`, the first one, or the one before what holds now."""

    what: Literal["date", "first", "before"]
    date: Date | None = None


def _date(match: re.Match[str]) -> Date:
    if month := match["month"]:
        return Date("month", MONTHS.index(month.capitalize()))
    return Date("year", int(match["year"])) if match["year"] else Date(match["unit"].lower(), int(match["number"]))


def dated(core: str) -> tuple[str, Date | None]:
    """What is said to be so, or to have become so, without its date; other sentences as they are, since a date may belong to what was
    done."""
    if (match := BEFORE.match(core)) and STATE.search(core[match.end() :]):
        return core[match.end() :], _date(match)
    if (match := BEHIND.search(core)) and MOVED.search(core[: match.start()]):
        return core[: match.start()], _date(match)
    return core, None


def asked_of(question: str) -> tuple[str, When | None]:
    """A question without the time that it asks about, and that time; None where it has none."""
    for pattern, what in ((FIRST, "first"), (EARLIER, "before")):
        if match := pattern.search(question):
            return question[: match.start()] + question[match.end() :], When(what)  # type: ignore[arg-type]
    if match := BEFORE.match(question):
        rest = question[match.end() :]
        return rest[0].upper() + rest[1:], When("date", _date(match))
    if match := MIDST.search(question):
        return question[: match.start()] + question[match.end() :], When("date", _date(match))
    return question, None


CERTAIN, LIKELY, VAGUE, HEARSAY = 0.9, 0.6, 0.3, 0.1
NAME = r"(?P<who>(?:[Tt]he |[Aa]n? )?[^\W\d_][\w'’&.-]*(?: (?!that\b)[\w'’&.-]+){0,3}?)"
VERBS = {  # the confidence that a verb expresses; None: plain
    None: "says|said|tells us|told us|told me|tells me|claims|claimed|reports|reported|states|stated|writes|wrote|notes|noted|mentioned",
    CERTAIN: "knows|knew|swears|swore|insists|insisted|is sure|was sure|is certain|is convinced|has no doubt",
    LIKELY: "thinks|thought|believes|believed|supposes|expects|reckons|assumes",
    VAGUE: "guesses|guessed|suspects|suspected|heard|has heard|has a vague idea|has a feeling|vaguely remembers",
}
VERB_CONFIDENCE = {verb: confidence for confidence, verbs in VERBS.items() for verb in verbs.split("|")}
_VERB = "(?P<verb>" + "|".join(sorted(VERB_CONFIDENCE, key=len, reverse=True)) + ")"
_CORE = r"(?P<core>.+?)"
_END = r"\s*[.!]?$"
NOBODY = (
    rf"(?:Rumor|Rumour|Gossip) has it(?: that)? {_CORE}{_END}",
    rf"It is (?:rumored|rumoured|whispered|said) that {_CORE}{_END}",
    rf"(?:Someone|Somebody) (?:heard|says|said|claims|claimed) that {_CORE}(?:, but .*)?{_END}",
    rf"(?:Some|People|They|Others) (?:say|report|claim)(?: that)? {_CORE}(?:, but .*)?{_END}",
)
SPOKEN = (
    rf"According to {NAME}, {_CORE}{_END}",
    rf"{NAME} {_VERB}(?: for (?:certain|sure))?(?: that|:) {_CORE}{_END}",
    rf"{NAME} (?P<verb>says|said|claims|claimed|thinks|thought|believes|believed|knows|swears) {_CORE}{_END}",
    rf"{_CORE}, (?:as )?{NAME} {_VERB}{_END}",
    rf"{_CORE}, according to {NAME}{_END}",
)
SEEN = rf"{NAME} (?:has seen|saw) {_CORE}{_END}"  # what one saw, one is sure of
NAMES = rf"{NAME} would not swear to it, but names (?P<tail>.+?) for (?P<head>.+?){_END}"
PERHAPS = re.compile(r"^(?:Probably|Perhaps|Maybe|Possibly|Supposedly),? ", re.IGNORECASE)
CHANGE = re.compile(r"^(?:Later(?: on)?|Since then|Afterwards|Now|Meanwhile|By now|These days|Today),? ", re.IGNORECASE)
_PREPOSITIONS = "at in on by from to near with of for under over behind beside after before during"
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
MANY = re.compile(r"[A-Z][a-z]+[^s\W]s of ")


@dataclass(frozen=True, slots=True)
class Attribution:
    """What a sentence says, and who says so."""

    core: str  # the statement
    teller: str = ""  # "" where nobody says so
    confidence: float | None = None  # from 0 to 1, None for a plain statement
    replaces: bool = False  # whether it says that something changed
    since: Date | None = None


def parse_attribution(sentence: str) -> Attribution:
    """Parse a sentence. One of none of these forms is a plain statement by nobody."""
    text = sentence.strip()
    for pattern in NOBODY:
        if match := re.match(pattern, text):
            return _plainer(match["core"], "", HEARSAY)
    if match := re.match(NAMES, text):
        return Attribution(f"{match['head']} is in {match['tail']}", match["who"], VAGUE)
    for pattern in SPOKEN:
        if match := re.match(pattern, text):
            verb = match.groupdict().get("verb")
            return _plainer(match["core"], match["who"], VERB_CONFIDENCE[verb.lower()] if verb else None)
    if (match := re.match(SEEN, text)) and re.search(r" (?:in|at|on|with) ", match["core"]):
        return Attribution(match["core"], match["who"], CERTAIN)
    return _plainer(text.rstrip(" .!"), "", None)


def plainly(sentence: str) -> str:
    """What a sentence says, without its teller and how surely: the Marlow shop is in Lima, Lea says -> The Marlow shop is in Lima."""
    core = parse_attribution(sentence).core
    return f"{core[:1].upper()}{core[1:]}."


def _plainer(core: str, teller: str, confidence: float | None) -> Attribution:
    """Cut the adverbs in front that express a confidence or a change."""
    if perhaps := PERHAPS.match(core):
        core, confidence = core[perhaps.end() :], LIKELY if confidence is None else confidence
    change = CHANGE.match(core)
    core, since = dated(core[change.end() :] if change else core)
    return Attribution(core, teller, confidence, bool(change or since), since)


def infer_speaker(attribution: Attribution, names: Sequence[Mention]) -> Attribution:
    """Take a name that stands apart as the speaker: of three or more names the first or the last, parted from the others by a comma or
    "that", with words beside it that do not only locate it."""
    if attribution.teller or len(names) < 3:
        return attribution
    core, first, last = attribution.core, names[0], names[-1]
    if part := re.search(r",\s|\bthat\s", core[first.end : names[1].start]):
        cut = first.end + part.end()
        if _speaks(core[: first.start], core[first.end : cut]):
            return replace(attribution, teller=first.name, core=core[cut:])
    if part := re.search(r",\s", core[names[-2].end : last.start]):
        cut = names[-2].end + part.start()
        if _speaks(core[cut + 1 : last.start], core[last.end :]):
            return replace(attribution, teller=last.name, core=core[:cut])
    return attribution


def lowered(text: str) -> str:
    """A text that does not begin with several of something as if these were a name: "Lorries of Brock set out" -> "lorries of Brock"."""
    return text[0].lower() + text[1:] if MANY.match(text) else text


def _speaks(before: str, behind: str) -> bool:
    """Whether the words around a name may introduce a speaker."""
    around = [*words(before), *words(behind)]
    return any(word not in COMMON for word in around) and around[0] not in PREPOSITIONS
