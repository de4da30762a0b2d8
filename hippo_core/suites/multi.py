"""episodic_multi: what people say of themselves, and take back. The last mention wins.

taught   Lea lives in Rome. ... Tobias has a parrot as a pet. ... Actually, Lea lives in Oslo.
asked    In which city does Lea live?      gold: Oslo
"""

from dataclasses import dataclass
from random import Random
from typing import Annotated

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.files import tables
from hippo_core.suites import lexicon
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Settings, Split, Suite, World, WorldSpec, after_all
from hippo_core.suites.unanswerable import has_matching_fact, hide_named
from hippo_core.suites.wording import add_noise


@dataclass(frozen=True, slots=True)
class PersonRelation:
    """A relation of a person: its statement, its questions (usual form, paraphrases, two held-out forms), and its values."""

    words: str  # as they stand in the fact
    question: str
    paraphrases: tuple[str, ...]
    held_out: tuple[str, str]
    values: tuple[str, ...]
    tail: str = ""


TABLES = tables(__file__)
RELATIONS = {name: PersonRelation(**{"values": lexicon.CITIES, **values}) for name, values in TABLES["relations"].items()}
CORRECTIONS: tuple[str, ...] = TABLES["corrections"]


class MultiSettings(Settings):
    """A world of corrections. All of it stands before each question."""

    n_facts: Annotated[int, Field(ge=8)] = 16
    corrections: Annotated[float, Field(ge=0, le=0.6)] = 0.35  # share of the facts that take back an earlier one
    new_names: Annotated[float, Field(ge=0, le=1)] = 0.25
    rungs: tuple[str, ...] = ("exact", "paraphrase", "noisy")
    held_out: bool = True  # whether questions of val and test worlds may use forms that no training saw


Statement = tuple[str, str, str]  # who, relation, value
# A world with up to so many statements is drawn again where one of them is not of the split. Larger worlds would hardly ever pass: they
# draw from pairs that have at least two statements in the split.
MANY = 64


def make_statements(random: Random, settings: MultiSettings, spec: WorldSpec) -> tuple[list[Statement], bool]:
    """Statements in order. A pair of person and relation that occurs again corrects the earlier statement."""
    new = spec.split != "train" and random.random() < settings.new_names
    n_corrections = round(settings.n_facts * settings.corrections)
    n_pairs = settings.n_facts - n_corrections
    pairs = _pairs(random, n_pairs, new) if settings.n_facts <= MANY else _sayable_pairs(random, n_pairs, new, spec.split)
    order = pairs + random.choices(pairs, k=n_corrections)
    random.shuffle(order)
    current: dict[tuple[str, str], str] = {}
    statements = []
    for who, relation in order:
        options = [value for value in RELATIONS[relation].values if value != current.get((who, relation))]
        own = [value for value in options if belongs(f"{who}|{relation}|{value}", spec.split)]
        value = random.choice(own or options)
        current[who, relation] = value
        statements.append((who, relation, value))
    return statements, new


def _pairs(random: Random, n_pairs: int, new: bool) -> list[tuple[str, str]]:
    """Persons and relations, each of both in several pairs."""
    size = max(3, round(n_pairs**0.5))
    people = random.sample(lexicon.names(held_out=new), max(size, -(-n_pairs // len(RELATIONS))))
    relations = random.sample(list(RELATIONS), min(len(RELATIONS), -(-n_pairs // len(people))))
    return random.sample([(who, relation) for who in people for relation in relations], n_pairs)


def _sayable_pairs(random: Random, n_pairs: int, new: bool, split: Split) -> list[tuple[str, str]]:
    """The same of persons and relations of which at least two things can be said in the split."""
    names = lexicon.names(held_out=new)
    pairs: list[tuple[str, str]] = []
    for who in random.sample(names, len(names)):
        for relation, of in RELATIONS.items():
            if sum(belongs(f"{who}|{relation}|{value}", split) for value in of.values) > 1:
                pairs.append((who, relation))
        if len(pairs) >= n_pairs:
            return random.sample(pairs, n_pairs)
    raise LabError(f"episodic_multi has names for {len(pairs)} pairs of person and relation in a world of {split}, not for {n_pairs}")


def render_statement(random: Random, statement: Statement, corrects: bool) -> str:
    """The statement as a sentence, marked as a correction where it is one."""
    who, name, value = statement
    relation = RELATIONS[name]
    text = f"{who} {relation.words} {value}{relation.tail}."
    return random.choice(CORRECTIONS).format(statement=text) if corrects else text


def ask(random: Random, statement: Statement, rung: str, *, training: bool) -> tuple[str, tuple[str, ...]]:
    """A question for the value of a statement, and the slices it belongs to."""
    who, name, _ = statement
    relation = RELATIONS[name]
    if rung == "paraphrase":
        forms = relation.paraphrases if training else relation.paraphrases + relation.held_out
        form = random.choice(forms)
        return form.format(who=who), ("new_template",) if form in relation.held_out else ()
    text = relation.question.format(who=who)
    if rung != "noisy":
        return text, ()
    words = [who, *(word for word in relation.words.split() if len(word) > 3 and word in text)]
    while True:
        noisy, removed = add_noise(random, text, words)
        if noisy != text and who not in removed:
            return noisy, ()


def make_world(random: Random, settings: MultiSettings, spec: WorldSpec) -> World:
    """One world; most questions are about a statement that was taken back."""
    for _ in attempts(settings, "world of corrections"):
        statements, new = make_statements(random, settings, spec)
        last = {(who, relation): number for number, (who, relation, _) in enumerate(statements)}
        mentions = {pair: sum((who, relation) == pair for who, relation, _ in statements) for pair in last}
        near = {pair: sum((who == pair[0]) != (about == pair[1]) for who, about, _ in statements) for pair in last}
        pairs = [pair for pair in last if near[pair] >= settings.n_competitors]
        if len(pairs) >= settings.n_items and all(belongs("|".join(s), spec.split) for s in statements):
            break
    random.shuffle(pairs)
    targets = sorted(pairs, key=lambda pair: mentions[pair] == 1)[: settings.n_items]
    random.shuffle(targets)
    facts, items = [], []
    first: dict[tuple[str, str], int] = {}
    asked = {last[pair] for pair in targets}
    for number, (who, relation, value) in enumerate(statements):
        corrects = first.setdefault((who, relation), number) < number
        slots = {"who": who, "relation": RELATIONS[relation].words, "value": value}
        text = render_statement(random, (who, relation, value), corrects)
        facts.append(spec.fact(number, text, slots, asked=number in asked))
    for number, pair in enumerate(targets):
        rung = settings.rungs[(spec.index * settings.n_items + number) % len(settings.rungs)]
        gold = statements[last[pair]]
        question, slices = ask(random, gold, rung, training=spec.split == "train" or not settings.held_out)
        about = {"rung": rung, "cue": {"who": pair[0], "relation": RELATIONS[pair[1]].words}, **after_all(facts, [last[pair]])}
        about["chance"] = 1 / len({value for _, relation, value in statements if relation == pair[1]})
        about["slices"] = (*slices, "new_name") if new else slices
        items.append(spec.item(number, question, gold[2], "corrected" if mentions[pair] > 1 else "plain", **about))
    return World(spec.id, tuple(facts), tuple(items))


EPISODIC_MULTI = Suite(
    "episodic_multi",
    "statements and corrections: the last mention wins",
    MultiSettings,
    make_world,
    hide=hide_named,
    is_answerable=has_matching_fact,
    order=2,
    asks="the last of several",
)
