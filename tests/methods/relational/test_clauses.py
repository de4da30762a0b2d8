"""Questions in words that no pattern knows: their parts in the order of a path, who speaks, and disputes in different words."""

import numpy as np
import pytest

from hippo_core.methods.relational.clauses import Clauses, TextSimilarity, hops_of
from hippo_core.methods.relational.graph import Graph, read
from hippo_core.methods.relational.mentions import mentions
from hippo_core.methods.relational.paths import Search
from tests.methods.relational.test_graph import traces

MEANS = {  # what means the same, for likeness without an encoder
    "team": ("shirt", "winger", "team", "play"), "train": ("drills", "goalposts", "train"), "river": ("winds", "floods", "river"),
    "draw": ("drew", "picture"), "bake": ("dough", "rolls", "bread", "baker"),
}  # fmt: skip
TEXTS = (
    "Ulla wears the shirt of Tarn Rovers.",
    "Tarn Rovers do their drills at Larkhill.",
    "The Ost winds past Larkhill.",
    "Ulla once drew a picture of Brackendale.",
    "The Silk winds past Brackendale.",
    "Brackendale lends its goalposts to Moss Rangers.",
)
QUESTION = "Which river runs by the place where the team of Ulla trains?"


class SharedMeanings(TextSimilarity):
    """Texts are alike by the share of meanings that both have."""

    def texts(self, asked, known):
        sets = [
            [{name for name, words in MEANS.items() if any(word in text for word in words)} for text in group] for group in (asked, known)
        ]
        return np.array([[len(a & b) / max(1, len(a | b)) for b in sets[1]] for a in sets[0]]).reshape(len(asked), len(known))


def path(question, *texts, **more):
    search = Search(Graph.of(traces(*texts)), SharedMeanings(), **more)
    best = search.best(question)
    return [texts[number] for number in best[0].statements] if best else None


def test_a_path_says_in_order_what_the_parts_say_from_the_name_outward():
    assert path(QUESTION, *TEXTS) == [*TEXTS[:3]]
    assert path("Which river runs by the place where Moss Rangers train?", *TEXTS) == [TEXTS[5], TEXTS[4]]


def test_statements_that_say_the_parts_in_another_order_are_no_path():
    other = ("Ulla runs the river at Dunmere.", "Dunmere has a place for its drills at Saxby.", "The team of Penn Town is sold at Saxby.")
    for texts in ((*other, *TEXTS[:3]), (*TEXTS[:3], *other)):
        assert path(QUESTION, *texts) == [*TEXTS[:3]]


def test_it_has_as_many_statements_as_the_parts_ask_for():
    assert len(path("Where does the team of Ulla train?", *TEXTS)) == 2
    assert len(path("What is the team of Ulla?", *TEXTS)) == 1
    more = ("Tarn Rovers train Brackendale.", "Ulla trains at Moss.")
    assert path("Where does Ulla train?", TEXTS[0], *more) == [more[1]]


@pytest.mark.parametrize(
    ("question", "hops"),
    [
        ("Who is the baker of Saxby?", 1),
        ("Who makes the bread in the village where Ulla lives?", 3),  # "the bread" is taken for a thing that is described
        ("Where do the team of the teacher of Ulla train?", 3),
        ("Which river runs by Larkhill?", 1),
        ("Ulla?", 1),
    ],
)
def test_how_many_statements_a_question_asks_for(question, hops):
    [name] = mentions(question)
    assert Clauses(question, name, [name], SharedMeanings()).hops == hops
    assert hops_of([]) == 1


@pytest.mark.parametrize(
    ("text", "teller", "core"),
    [
        ("Ann maintains that the Ost winds past Saxby.", "Ann", "the Ost winds past Saxby"),
        ("The Ost winds past Saxby, or so Ann told the others.", "Ann", "The Ost winds past Saxby"),
        ("At the Galanter, Ann met Tom.", "", "At the Galanter, Ann met Tom"),
        ("In the Galanter hall, Ann met Tom.", "", "In the Galanter hall, Ann met Tom"),
        ("Ann plays for Tarn Rovers.", "", "Ann plays for Tarn Rovers"),
        ("Lorries of Brock set out from Saxby.", "", "lorries of Brock set out from Saxby"),
    ],
)
def test_who_speaks_in_words_of_no_pattern(text, teller, core):
    [trace] = traces(text)
    statement = read(trace)
    assert (statement.teller, statement.attribution.core) == (teller, core)


DISPUTE = (
    "Ann maintains that the Silk floods Larkhill.",
    "Tom maintains that the Ost winds past Larkhill.",
    "Larkhill floods whenever the Ost is high, or so Ida told the others.",
    "Tarn Rovers do their drills at Larkhill.",
)


def test_what_most_hold_to_wins_though_each_says_it_in_other_words():
    asked = "Which river runs by the place where Tarn Rovers train?"
    assert path(asked, *DISPUTE)[-1] == DISPUTE[2]
    swapped = [text.replace("Ost", "X").replace("Silk", "Ost").replace("X", "Silk") for text in DISPUTE]
    assert path(asked, *swapped)[-1] == swapped[2]
    one = [text.replace("Tom", "Ida") for text in DISPUTE] + ["Tom maintains that the Silk winds past Larkhill."]
    assert "Silk" in path(asked, *one)[-1]  # Ida's two statements are one voice
    assert "Ost" in path(asked, *one, resolve=False)[-1]


def test_what_is_said_of_another_matter_has_no_voice_however_many_say_it():
    asked = "Which river runs by the place where Tarn Rovers train?"
    other = [f"{who} maintains that Larkhill lends its goalposts to Moss Rangers." for who in ("Lea", "Max", "Kim")]
    assert path(asked, *DISPUTE, *other)[-1] == DISPUTE[2]
