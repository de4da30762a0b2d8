"""What holds where people disagree, and paths from a question's names to what it asks for."""

from itertools import permutations

import pytest

from hippo_core.methods.relational.graph import Graph
from hippo_core.methods.relational.paths import Search
from hippo_core.store.trace import Trace

SAYS = {"Lea": "Lea says that the mill is in {}.", "Tom": "According to Tom, the mill stands in {}.", "Ida": "The mill is in {}, Ida says."}
CHAIN = (
    "The Vance company employs Omar.",
    "At the Finch shop, Omar bought a lamp.",
    "Omar bought a vase at the Marlow shop.",
    "The Finch shop is in Lima.",
    "The Marlow shop stands in Oslo.",
    "The Vance company is in Bern.",
    "Omar is a friend of Lea.",
    "The Marlow shop sends letters to Lima.",
)


def traces(*texts, **more):
    return [Trace("w", f"f{number}", text, time=number, id=number, **more) for number, text in enumerate(texts, 1)]


def winning_tail(*texts):
    """Where the mill is, as the graph settles it."""
    graph = Graph.of(traces(*(text.replace("mill", "Mill works") for text in texts)))
    return graph.statements[graph.current_statement(0)].tail


def statements(*pairs):
    return [SAYS[who].format(city) for who, city in pairs]


@pytest.mark.parametrize(
    ("told", "so"),
    [
        (statements(("Lea", "Lima"), ("Tom", "Oslo"), ("Ida", "Oslo")), "oslo"),  # the most
        (
            statements(("Lea", "Lima"), ("Lea", "Lima"), ("Lea", "Lima"), ("Tom", "Oslo"), ("Ida", "Oslo")),
            "oslo",
        ),  # who says it thrice counts once
        (statements(("Lea", "Oslo"), ("Tom", "Lima"), ("Ida", "Lima"), ("Tom", "Oslo")), "oslo"),  # a last word takes the first one back
        (["The mill is in Oslo.", "Rumor has it that the mill is in Lima."], "oslo"),
        (["The mill is in Lima.", *statements(("Lea", "Lima"), ("Tom", "Lima")), "Later the mill moved to Oslo."], "oslo"),
        (["Lea thinks that the mill is in Lima.", "Tom thinks that the mill is in Lima.", "Ida is sure that the mill is in Oslo."], "oslo"),
        (["The mill is in Oslo.", "Lea has a vague idea that the mill is in Lima."], "oslo"),  # a plain word is no doubt
    ],
)
def test_what_holds(told, so):
    assert winning_tail(*told) == so


def test_a_rumor_does_not_win_in_any_order():
    texts = [
        "The mill is in Oslo.",
        "Rumor has it that the mill is in Lima.",
        "Someone heard that the mill is in Lima, but nobody confirmed it.",
    ]
    assert {winning_tail(*order) for order in permutations(texts)} == {"oslo"}


def asked(question, *texts, **more):
    search = Search(Graph.of(traces(*texts)), **more)
    paths = search.best(question)
    return [search.graph.statements[number].trace.text for number in paths[0].statements] if paths else None


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("In which city did Omar buy a lamp?", (1, 3)),
        ("In which city did Omar buy a vase?", (2, 4)),
        ("Which city does Omar work in?", (0, 5)),
        ("In which city did the friend of Lea buy a vase?", (6, 2, 4)),
        ("In which city did Omarr buy a lamp?", (1, 3)),  # a slip of the pen
    ],
)
def test_a_path_leads_from_the_names_to_what_is_asked_for(question, path):
    assert asked(question, *CHAIN) == [CHAIN[number] for number in path]


def test_a_detour_that_says_a_little_more_does_not_win():
    texts = ("At the Finch shop, Omar bought a brass lamp.", "The Finch shop is in Lima.", "The Finch shop is a dealer of the Marlow shop.")
    question = "In which city did Omar order a brass lamp?"  # "dealer" is a little likelier to "order" than "bought" is
    assert asked(question, *texts, "The Marlow shop is in Oslo.") == [*texts[:2]]
    assert asked(question, texts[0], texts[2], "The Marlow shop is in Oslo.") == [texts[0], texts[2], "The Marlow shop is in Oslo."]


def test_a_word_more_of_the_question_is_worth_a_statement_more():
    texts = (
        "Lea bought a small old brass lamp at the Finch shop.",
        "The Finch shop is in Lima.",
        "Omar is a friend of Lea.",
        "Omar bought a small old brass lamp at the Marlow shop.",
        "The Marlow shop is in Oslo.",
    )
    assert asked("In which city did the friend of Lea buy a small old brass lamp?", *texts) == [*texts[2:]]


def test_of_paths_that_say_as_much_the_one_whose_statements_are_told_of_others_likewise_is_best():
    texts = (CHAIN[2], CHAIN[7], CHAIN[4], "Lea bought a vase at the Finch shop.", CHAIN[3])  # letters to Lima are told of first
    assert asked("In which city did Omar buy a vase?", *texts) == [CHAIN[2], CHAIN[4]]


def test_the_path_follows_what_is_stored():
    altered = [text.replace("Finch shop is in Lima", "Finch shop is in Kyiv") for text in CHAIN]
    assert asked("In which city did Omar buy a lamp?", *altered)[-1] == "The Finch shop is in Kyiv."
    without = [text for text in CHAIN if "Finch shop is in" not in text]
    assert "The Finch shop" not in " ".join(asked("In which city did Omar buy a lamp?", *without)[1:])


def test_a_contested_statement_is_replaced_by_the_one_that_holds_unless_that_is_switched_off():
    texts = [*CHAIN[:4], "Later the Finch shop moved to Oslo."]
    assert asked("In which city did Omar buy a lamp?", *texts)[-1] == texts[-1]
    both = {asked("In which city did Omar buy a lamp?", *order, resolve=False)[-1] for order in (texts, [texts[-1], *texts[:-1]])}
    assert both != {texts[-1]}


@pytest.mark.parametrize("name", ["Oman", "Omah", "Vancouver", "Marlene", "Leander"])
def test_another_name_that_begins_alike_is_not_taken_for_one_that_is_known(name):
    assert asked(f"In which city did {name} buy a lamp?", *CHAIN) is None


def test_nothing_is_found_where_no_name_is_known():
    assert asked("In which city did Zora buy a lamp?", *CHAIN) is None
    assert asked("what?", *CHAIN) is None
    assert asked("In which city did Omar buy a lamp?") is None


MOVES = (
    "The Marlow shop is in Lima.",
    "The Finch shop stands in Bath.",
    "In March the Marlow shop moved to Oslo.",
    "Since June the Marlow shop stands in Bern.",
    "Later the Finch shop moved to Riga.",
    "Omar bought a vase at the Marlow shop.",
)


@pytest.mark.parametrize(
    ("question", "city"),
    [
        ("In which city was the Marlow shop in February?", "Lima"),
        ("In which city was the Marlow shop in March?", "Oslo"),
        ("In May, in which city was the Marlow shop?", "Oslo"),
        ("In which city is the Marlow shop?", "Bern"),
        ("In which city was the Marlow shop in August?", "Bern"),
        ("In which city was the Marlow shop at first?", "Lima"),
        ("In which city was the Marlow shop before it moved?", "Oslo"),
        ("In which city was the Finch shop originally?", "Bath"),
        ("Where was the Marlow shop in April?", "Oslo"),
    ],
)
def test_a_question_about_a_time_is_answered_by_what_held_then(question, city):
    [*_, last] = asked(question, *MOVES)
    assert f"in {city}." in last or f"to {city}." in last


def test_a_statement_that_is_told_of_another_time_changes_what_held(question="In which city was the Marlow shop in April?"):
    assert asked(question, *MOVES) == [MOVES[2]]
    altered = [text.replace("In March", "In May") for text in MOVES]
    assert asked(question, *altered) == [MOVES[0]]
    assert asked(question, MOVES[1], *MOVES[3:5]) is None  # nothing is told of it before June
    days = [text.replace("In March", "On day 3").replace("Since June", "On day 9") for text in MOVES]
    assert asked("In which city was the Marlow shop on day 8?", *days) == [days[2]]
    assert asked("In which city was the Marlow shop on day 2?", *days) == [MOVES[0]]


def test_a_date_of_what_was_done_is_no_time_that_is_asked_about():
    texts = ("Omar bought a vase at the Marlow shop in May.", "Omar bought a vase at the Finch shop in July.", *MOVES[:2])
    assert asked("In which city did Omar buy a vase in July?", *texts) == [texts[1], MOVES[1]]
    assert Graph.of(traces(*texts)).statements[0].attribution.since is None
