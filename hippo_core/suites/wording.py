"""An event as a statement and as a question: "On Friday, Carla sold a guitar at the market." and "Where did Carla sell a guitar?".

An event has the slots who, action, what (not for motions), where and when. A fact has all of them; a question asks for one and
names some of the others, the cue. Paraphrases use synonyms and other question forms; two forms of each kind are held out from all
training. Cues come on four rungs: `exact` (all other slots in the fact's words), `partial` (just enough of them), `paraphrase`
(synonyms and another form), `noisy` (each content word misspelt or dropped with probability .3).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from hippo_core.files import tables
from hippo_core.suites import lexicon
from hippo_core.suites.lexicon import Group, Verb

T = TypeVar("T")
SLOTS = ("who", "what", "where", "when")


@dataclass(frozen=True, slots=True)
class Event:
    """Who did what where and when, as groups of synonyms; `words` are the ones that its fact uses. A motion has no `what`."""

    who: str
    action: tuple[Verb, ...]
    what: Group | None
    where: Group
    when: tuple[str, str]

    @property
    def key(self) -> str:
        """What makes two events the same, whatever the words: the basis of the split into train, val and test."""
        return "|".join((self.who, self.action[0].past, self.what[0] if self.what else "", self.where[0], self.when[1]))


@dataclass(frozen=True, slots=True)
class Words:
    """One choice of words for an event: every slot's value as it stands in a text."""

    who: str
    action: Verb
    what: str | None
    where: str
    when: str
    preposition: str  # of the time

    def slots(self) -> dict[str, str]:
        values = {"who": self.who, "action": self.action.past, "what": self.what, "where": self.where, "when": self.when}
        return {slot: value for slot, value in values.items() if value is not None}


TABLES = tables(__file__)
QUESTION_FORMS: dict[str, tuple[str, ...]] = TABLES["questions"]
HELD_OUT_FORMS = {kind: (f"Do you recall {kind} {{plain}}{{rest}}?", f"Tell me {kind} {{plain}}{{rest}}.") for kind in QUESTION_FORMS}


def choose_words(random: Random, event: Event, *, usual: bool = False) -> Words:
    """Words for an event among those that training may use; `usual`: the first of each group."""

    def pick(group: Sequence[T]) -> T:
        known = lexicon.training_words(group)
        return known[0] if usual else random.choice(known)

    preposition, when = event.when
    return Words(event.who, pick(event.action), None if event.what is None else pick(event.what), pick(event.where), when, preposition)


def synonyms(random: Random, event: Event, words: Words, *, training: bool) -> Words:
    """Other words for the same event, each slot different from `words` where the language has a second word."""

    def other(group: Sequence[T], used: T) -> T:
        known = lexicon.training_words(group) if training else group
        return random.choice([word for word in known if word != used] or [used])

    action = other(event.action, words.action)
    what = other(event.what, words.what) if event.what and words.what else None
    return replace(words, action=action, what=what, where=other(event.where, words.where))


def render_fact(random: Random, words: Words) -> str:
    """The fact as a sentence, in a form drawn at random."""
    form = random.choice(TABLES["facts" if words.what else "motions"])
    text = form.format(
        who=words.who,
        past=words.action.past,
        what=f" {lexicon.article(words.what)}" if words.what else "",
        where=_where(words),
        when=f"{words.preposition} {words.when}",
    )
    return text[0].upper() + text[1:]


def ask(form: str, kind: str, cue: dict[str, str], words: Words) -> str:
    """A question for the slot `kind` that names the slots in `cue`. The action of a motion is always named."""
    who = cue.get("who")
    what = lexicon.article(words.what) if words.what and "what" in cue else ""
    acts = bool(what) or kind == "what" or words.what is None
    inverted, plain = _clauses(kind, who, what, acts, words.action)
    where = _where(words) if "where" in cue else ""
    when = f" {words.preposition} {words.when}" if "when" in cue else ""
    first = f"{when}{where}, ".lstrip() if when or where else ""
    text = form.format(inverted=inverted, plain=plain, rest=where + when, first=first)
    return text[0].upper() + text[1:]


def _where(words: Words) -> str:
    return f" {'at' if words.what else 'to'} the {words.where}"


def _clauses(kind: str, who: str | None, what: str, acts: bool, action: Verb) -> tuple[str, str]:
    if kind == "who":
        plain = " ".join(filter(None, (action.past, what))) if acts else "was"
        return plain, plain
    if who and acts:
        return " ".join(filter(None, ("did", who, action.base, what))), " ".join(filter(None, (who, action.past, what)))
    if who:
        return f"was {who}", f"{who} was"
    passive = f"was {action.past}"
    return (f"was {what} {action.past}", f"{what} {passive}") if what else (passive, passive)


def add_noise(random: Random, question: str, content: list[str]) -> tuple[str, set[str]]:
    """Misspell or drop each content word with probability .3. Returns the question and the words that are fully dropped."""
    removed = set()
    for phrase in content:
        noisy = []
        for word in phrase.split():
            draw = random.random()
            noisy.append("" if draw < 0.15 else misspell(random, word) if draw < 0.3 else word)
        if not any(noisy):
            removed.add(phrase)
        question = question.replace(phrase, " ".join(filter(None, noisy)), 1)
    return " ".join(question.replace(" ?", "?").replace(" ,", ",").split()), removed


def misspell(random: Random, word: str) -> str:
    """One slip of the fingers: two letters swapped, one left out, one doubled, or one replaced."""
    at = random.randrange(len(word) - 1)
    slip = random.randrange(4)
    if slip == 0 and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if slip == 1 and len(word) > 3:
        return word[:at] + word[at + 1 :]
    if slip == 2:
        return word[:at] + word[at] + word[at:]
    letter = random.choice([letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter != word[at].lower()])
    return word[:at] + (letter.upper() if word[at].isupper() else letter) + word[at + 1 :]
