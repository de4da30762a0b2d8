"""Questions that a trace answers, made from its text alone.

    trace       On Friday, Carla sold a guitar at the market.
    rehearsed   Who was it that sold a guitar at the market?  Carla      At which hour or day did Carla sell off a guitar?  Friday

An event of the lab's own words is asked for slot by slot, in words and forms of which no suite uses one; any other text by `texts`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from hippo_core.store.trace import Trace
from hippo_core.suites import lexicon, wording
from hippo_core.suites.lexicon import Group, Verb
from hippo_core.suites.wording import Event, Words
from hippo_core.training.consolidation.texts import ask_text, spans

# {plain}, {inverted}, {rest} and {first} as in `wording.QUESTION_FORMS`, none of which is here, nor reads like one of these.
FORMS: Mapping[str, tuple[str, ...]] = {
    "who": (
        "Who was it that {plain}{rest}?",
        "Please name the one who {plain}{rest}.",
        "Say who {plain}{rest}.",
        "By what name does one call whoever {plain}{rest}?",
        "{first}which one was it that {plain}?",
        "Who is the one who {plain}{rest}?",
        "I am looking for whoever {plain}{rest}: who was it?",
        "Somebody {plain}{rest}; who?",
        "Name whoever {plain}{rest}.",
    ),
    "what": (
        "Which object {inverted}{rest}?",
        "Please name the thing that {plain}{rest}.",
        "What exactly {inverted}{rest}?",
        "{first}which thing exactly {inverted}?",
        "Say what it was that {plain}{rest}.",
        "What thing was it that {plain}{rest}?",
        "Name the thing that {plain}{rest}.",
        "Which of all things {inverted}{rest}?",
        "I am looking for the thing that {plain}{rest}: what was it?",
    ),
    "where": (
        "In which place {inverted}{rest}?",
        "Please name the place where {plain}{rest}.",
        "Where exactly {inverted}{rest}?",
        "{first}at exactly which place {inverted}?",
        "Say where it was that {plain}{rest}.",
        "Where was it that {plain}{rest}?",
        "Name the place where {plain}{rest}.",
        "At what spot {inverted}{rest}?",
        "I am looking for the place where {plain}{rest}: which was it?",
    ),
    "when": (
        "At which hour or day {inverted}{rest}?",
        "Please name the time when {plain}{rest}.",
        "When exactly {inverted}{rest}?",
        "{first}at exactly what time {inverted}?",
        "Say when it was that {plain}{rest}.",
        "When was it that {plain}{rest}?",
        "Name the time when {plain}{rest}.",
        "On what occasion {inverted}{rest}?",
        "I am looking for the time when {plain}{rest}: which was it?",
    ),
}
RESTATED = ("What is known about {cue}?", "What happened to {cue}?", "Please say all that concerns {cue}.", "Recount the doings of {cue}.")


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A question that a trace answers: the trace's id, the question and the answer."""

    trace: int
    question: str
    answer: str


def rehearse(random: Random, trace: Trace, wordings: int) -> list[Rehearsed]:
    """So many different questions that the trace answers; fewer, or none, where its text does not carry as many."""
    event = read_event(trace.text)
    asked: dict[str, str] = {}
    for _ in range(8 * wordings):
        if len(asked) == wordings:
            break
        drawn = ask_event(random, *event) if event else ask_text(random, trace.text)
        if drawn is None:
            break
        asked.setdefault(*drawn)
    return [Rehearsed(trace.id, question, answer) for question, answer in asked.items()]


def restatements(trace: Trace) -> list[Rehearsed]:
    """Every question for the whole trace: the answer is its text, of a text of others the sentence about the cue. An
    event is cued by its person, or by what that one did, any other text by what it names."""
    event = read_event(trace.text)
    if event:
        _, words = event
        did = [f"whoever {words.action.past} {lexicon.article(words.what)}"] if words.what else []
        answers = dict.fromkeys((words.who, *did), trace.text)
    else:
        answers = {span.text: span.sentence for span in spans(trace.text)[0]}
    return [Rehearsed(trace.id, form.format(cue=cue), answer) for cue, answer in answers.items() for form in RESTATED]


def ask_event(random: Random, event: Event, words: Words) -> tuple[str, str]:
    """A question for a slot of the event and its answer. Half of the cues are in other words, half leave out a slot."""
    kind = random.choice([slot for slot in wording.SLOTS if getattr(words, slot) is not None])
    asked = words if random.random() < 0.5 else wording.synonyms(random, event, words, training=True)
    cue = {slot: value for slot, value in asked.slots().items() if slot not in (kind, "action")}
    main = {"who"} if kind != "who" else {"what"} if words.what else {"where"}
    left_out = [slot for slot in cue if slot not in main]
    if left_out and random.random() < 0.5:
        del cue[random.choice(left_out)]
    return wording.ask(random.choice(FORMS[kind]), kind, cue, asked), words.slots()[kind]


def read_event(text: str) -> tuple[Event, Words] | None:
    """The event that a text in the suites' words tells, and the words that it uses; None for any other text."""
    for pattern in _patterns():
        if match := pattern.fullmatch(text):
            slots = {name: value for name, value in match.groupdict().items() if value}
            action, what, where, when = (_index()[slot].get(slots.get(slot, "").lower()) for slot in ("past", "what", "where", "when"))
            if action is None or where is None or when is None or ("what" in slots) != (what is not None):
                return None
            verb = next(verb for verb in action if verb.past == slots["past"])
            event = Event(slots["who"], action, what, where, when)
            return event, Words(slots["who"], verb, slots.get("what"), slots["where"], when[1], when[0])
    return None


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    slots = {
        "{when}": r"(?:[Oo]n|[Ii]n|[Aa]t) (?P<when>\w+)",
        "{past}": f"(?P<past>{_either(verb.past for groups in (lexicon.ACTIONS, lexicon.MOTIONS) for group in groups for verb in group)})",
        "{what}": f" an? (?P<what>{_either(word for group in lexicon.OBJECTS for word in group)})",
        "{where}": f" (?:at|to|At|To) the (?P<where>{_either(word for group in lexicon.PLACES for word in group)})",
        "{who}": r"(?P<who>[A-Z]\w+)",
    }
    forms = (*wording.TABLES["facts"], *wording.TABLES["motions"])
    return tuple(re.compile(_filled(re.escape(form).replace(r"\{", "{").replace(r"\}", "}"), slots)) for form in forms)


def _filled(form: str, slots: Mapping[str, str]) -> str:
    for slot, pattern in slots.items():
        form = form.replace(slot, pattern)
    return form


def _either(words) -> str:
    return "|".join(sorted(map(re.escape, set(words)), key=len, reverse=True))


@cache
def _index() -> dict[str, dict[str, tuple]]:
    """Each slot's words in lower case, with what they belong to."""
    actions: Sequence[tuple[Verb, ...]] = (*lexicon.ACTIONS, *lexicon.MOTIONS)
    objects: Sequence[Group] = lexicon.OBJECTS
    return {
        "past": {verb.past.lower(): group for group in actions for verb in group},
        "what": {word.lower(): group for group in objects for word in group},
        "where": {word.lower(): group for group in lexicon.PLACES for word in group},
        "when": {time.lower(): (preposition, time) for preposition, time in lexicon.TIMES},
    }
