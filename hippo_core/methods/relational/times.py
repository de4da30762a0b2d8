"""Dates in statements and questions, and which time a question asks about.

    In March the Marlow shop moved to Oslo.             told of March: from there on it holds
    In which city was the Marlow shop in February?      what held before anything that is told of a later month

Dates of one kind are compared: months, years, numbered days, weeks or steps.
"""

import re
from typing import Literal, NamedTuple

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
