"""What relations are like, as far as what is told of them says; what held when."""

import pytest

from hippo_core.methods.relational.graph import Graph
from tests.methods.relational.test_graph import traces

FRIENDS = ("Omar is a friend of Lea.", "Omar is a friend of Tom.", "Ida is a friend of Ann.", "Ida is a friend of Max.")
SITES = ("The Finch shop is in Lima.", "The Marlow shop is in Oslo.", "The Ash shop is in Rome.")
NEWS = ("Lea says that the Dale shop is in Lima.", "Tom says that the Dale shop is in Oslo.", "Ida says that the Dale shop is in Oslo.")


def graph_of(*texts):
    return Graph.of(traces(*texts))


def fit(graph, number):
    return graph.fit(graph.statements[number])


def test_a_person_with_two_friends_is_no_contradiction():
    graph = graph_of(*FRIENDS)
    assert not any(graph.contested(number) for number in range(4))
    assert not graph.schemas["friend"].functional
    grown = graph_of(
        *FRIENDS, "Lea says that Max is a friend of Kim.", "Tom says that Max is a friend of Eve.", "Later Max is a friend of Ben."
    )
    assert not any(grown.contested(number) for number in range(7))


def test_a_relation_that_was_told_once_says_nothing_about_how_many_tails_there_are():
    assert not any(map(graph_of(*NEWS).contested, range(3)))


def test_that_heads_have_one_tail_is_learned():
    graph = graph_of(*SITES, *NEWS)
    assert graph.schemas["is in"].functional
    assert [graph.contested(number) for number in range(6)] == [False] * 3 + [True] * 3
    several = graph_of(*SITES, *(text.replace("Lima", city) for text in SITES[:1] for city in ("Bern", "Kyiv")))
    assert not several.schemas["is in"].functional or several.schemas["is in"].tails["several"] == 1


def test_a_move_says_that_a_head_has_one_tail_at_a_time():
    assert graph_of("The Finch shop is in Lima.", "Later the Finch shop moved to Oslo.", "The Ash shop is in Rome.").contested(0)


def test_what_is_told_of_one_never_retires_what_is_told_of_another():
    graph = graph_of(*SITES, *FRIENDS, *NEWS)
    assert {graph.statements[graph.current_statement(number)].head for number in (0, 1, 2)} == {"finch", "marlow", "ash"}
    assert [graph.current_statement(number) for number in range(3)] == [0, 1, 2]


def test_a_schema_grows_with_heads_of_its_kinds_and_not_with_what_is_repeated():
    graph = graph_of(SITES[0], *["The Finch shop is in Lima."] * 5)
    assert fit(graph, 0) == 0
    graph = graph_of(*SITES)
    assert fit(graph, 0) == pytest.approx(2 / 3)
    graph = graph_of(*SITES, "The Dale mill is in Bern.", "The Dale shop is in 1999.")
    assert fit(graph, 3) == 0  # no other mill
    assert fit(graph, 4) == 0  # a number where cities are
    assert fit(graph, 0) == pytest.approx(2 / 3)
    assert all(0 <= fit(graph, number) < 1 for number in range(5))


def test_what_held_at_a_time():
    texts = (*SITES, *NEWS, "Later the Dale shop moved to Bern.")
    graph = graph_of(*texts)  # told from time 1 on
    assert graph.current_statement(3) == 6
    assert (graph.history(3), graph.history(0)) == ([3, 4, 6], [0])


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("Omar knows Omar.", None),  # a self-loop
        ("Omar met nobody.", None),  # an empty slot
        ("", None),
        ("Łukasz is a friend of 李明.", None),  # a script without capitals has no names
        ("Łukasz is a friend of Zoë.", ("zoë", "friend", "łukasz")),
        ("Omar is a friend of Will.", ("will", "friend", "omar")),  # a name that is a stop word
        ("Omar frobnicates Lea.", ("omar", "H frobnicates T", "lea")),  # an unseen relation
    ],
)
def test_edges_of_odd_texts(text, edge):
    [edge_statement] = graph_of(text).statements
    assert (edge_statement.key and edge_statement.key[:3]) in (edge, edge and edge[::-1])


def test_a_cycle_ends():
    graph = graph_of("Omar is a friend of Lea.", "Lea is a friend of Tom.", "Tom is a friend of Omar.")
    from hippo_core.methods.relational.paths import Search

    assert Search(graph).best("Who is the friend of the friend of Omar?")
