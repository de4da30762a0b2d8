"""What a gate does with what is told: one edge for what is told again, a wait for what is unsure, and a replay that promotes it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.methods.base import Observation, Query
from hippo_core.methods.controls import open_controlled
from hippo_core.methods.relational.edge import HUB, Attestation, Edge, EdgeCodec, EdgeTerms, add_attestation, confidence, hub, recency
from hippo_core.methods.relational.graph import Graph
from hippo_core.store import TraceStore
from hippo_core.store.trace import Statement
from hippo_core.suites.types import Item
from tests.methods.asking import bound
from tests.methods.relational.test_graph import CHAIN

AGAIN = "You find the Finch shop in Lima."
RUMOR = "Rumor has it that the Finch shop is in Bern."
VAGUE = "Lea has a vague idea that the Marlow shop is in Oslo."
LAMP = "In which city did Omar buy a lamp?"


class Lab:
    """A relational memory with a store of its own."""

    def __init__(self, tiny, folder, **overrides):
        self.method = bound("memory/sgc_rss", tiny, encoder="own", **overrides)
        self.store = TraceStore.create(folder, "s", self.method.identity())

    def teach(self, *texts, start=0, provenance=""):
        observations = [Observation(Statement(f"f{n}", "w", text, n), provenance=provenance) for n, text in enumerate(texts, start)]
        return self.method.teach(observations, self.store)

    def actions(self, *texts, **more):
        return [decision.action for decision in self.teach(*texts, **more)]

    @property
    def graph(self):
        return Graph.of(self.store.traces("w"))

    def sleep(self):
        return list(self.method.replay("w", self.store))

    def shown(self, question=LAMP):
        sources = tuple(f"f{n}" for n in range(50))
        return [trace.text for trace in self.method.open(self.store.traces("w"))(Query(question, sources)).shown]


def edges(graph):
    """What there is, but for the numbers of traces."""
    return (
        [(statement.trace.text, statement.attestations, statement.is_pending, statement.trace.evidence) for statement in graph.statements],
        graph.schemas,
        graph.at,
        graph.groups,
    )


def test_what_is_told_again_is_one_edge_with_more_tellings(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    toms = ["Tom says that the Finch shop is in Lima."] * 2
    assert lab.actions(*CHAIN, AGAIN, *toms)[-3:] == ["aggregate"] * 3
    [edge] = [edge_ for edge_ in lab.graph.statements if edge_.tail == "lima" and edge_.head == "finch"]
    assert [attestation.teller for attestation in edge.attestations] == ["", "", "Tom", "Tom"]
    assert edge.trace.evidence == 4
    assert lab.graph.repeated == 0


def test_without_the_gate_each_telling_is_an_edge(tiny, tmp_path):
    lab = Lab(tiny, tmp_path, **{"relational.gate.enabled": False})
    assert set(lab.actions(*CHAIN, AGAIN, RUMOR)) == {"insert"}
    assert lab.graph.repeated > 0


def test_the_same_at_another_time_is_another_edge(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    assert "aggregate" not in lab.actions("Omar bought a lamp at the Finch shop in May.", "Omar bought a lamp at the Finch shop in June.")


@pytest.mark.parametrize(("threshold", "waiting"), [(0.5, {RUMOR}), (0.6, {RUMOR, VAGUE}), (0.7, {RUMOR, VAGUE, CHAIN[7], CHAIN[5]})])
def test_each_threshold_makes_another_store(tiny, tmp_path, threshold, waiting):
    lab = Lab(tiny, tmp_path, **{"relational.gate.threshold": threshold})
    texts = (
        *CHAIN[:4],
        CHAIN[6],
        *(f"The {name} shop is in {city}." for name, city in zip(("Ash", "Bell", "Cole"), ("Rome", "Kyiv", "Turin"), strict=True)),
    )
    vague = VAGUE.replace("Marlow", "Dale")
    decisions = lab.teach(*texts, CHAIN[7], CHAIN[5], *["Nobody came."] * 20, RUMOR, vague)
    kept = {decision.statement.text for decision in decisions if decision.action == "route"} - {"Nobody came."}
    assert {VAGUE if text == vague else text for text in kept} & {RUMOR, VAGUE, CHAIN[7], CHAIN[5]} == waiting


def test_what_waits_is_recalled_by_itself_and_joined_after_a_sleep(tiny, tmp_path):
    lab = Lab(tiny, tmp_path, **{"relational.schema_fasttrack": False})
    assert set(lab.actions(*CHAIN)) == {"route"}
    assert CHAIN[1] in lab.shown()
    assert lab.shown() != [CHAIN[1], CHAIN[3]]
    assert {row["recalled"] for row in lab.sleep()} == {1.0}
    assert lab.shown() == [CHAIN[1], CHAIN[3]]
    lab.store.rollback()
    assert lab.shown() != [CHAIN[1], CHAIN[3]]


def test_a_sleep_weighs_no_more_than_it_may(tiny, tmp_path):
    lab = Lab(tiny, tmp_path, **{"relational.schema_fasttrack": False, "replay.max_items": 2, "replay.cycles": 3})
    lab.teach(*CHAIN)
    assert [row["cycle"] for row in lab.sleep()] == [1, 1, 2, 2, 3, 3]
    assert sum(not statement.is_pending for statement in lab.graph.statements) == 6


def test_another_speaker_promotes_what_waits_and_the_same_one_does_not(tiny, tmp_path):
    for number, (second, promoted) in enumerate([("Tom", True), ("Lea", False)]):
        lab = Lab(tiny, tmp_path / str(number))
        lab.teach("Lea has a vague idea that the Dale shop is in Oslo.", f"{second} has a vague idea that the Dale shop is in Oslo.")
        lab.teach(*CHAIN, start=2)
        lab.sleep()
        assert lab.graph.statements[0].is_pending != promoted


def test_a_plain_word_does_not_vanish_in_a_rumor(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    assert lab.actions(RUMOR, RUMOR.replace("Rumor has it that the", "The")) == ["route", "insert"]


def test_deciding_does_not_depend_on_whether_tellings_are_added_up(tiny, tmp_path):
    texts = [
        "Lea says that the Dale shop is in Lima.",
        "Tom says that the Dale shop is in Oslo.",
        "According to Ida, the Dale shop stands in Oslo.",
    ]
    for number, on in enumerate([True, False]):
        lab = Lab(tiny, tmp_path / str(number), **{"relational.gate.enabled": on})
        lab.teach(*CHAIN, *texts, *texts[:1] * 3)
        graph = lab.graph
        number_of_first = next(n for n, statement in enumerate(graph.statements) if statement.trace.text == texts[0])
        assert graph.contested(number_of_first)
        assert graph.statements[graph.current_statement(number_of_first)].tail == "oslo"


def test_the_oracle_finds_what_was_added_to_another_telling(tiny, tmp_path):
    lab = Lab(tiny, tmp_path, control="oracle")
    lab.teach(CHAIN[3], AGAIN, CHAIN[1])
    item = Item("q", "w", LAMP, ("Lima",), ("f1", "f2"), "hops_2", taught=("f0", "f1", "f2"), retold={"f0": "f1"})
    controlled = open_controlled(lab.method, lab.store.traces("w"), ())(item, Query(LAMP, item.taught))
    assert [trace.text for trace in controlled.opened] == [CHAIN[3], CHAIN[1]]
    assert [trace.text for trace in controlled.retrieved.shown] == [CHAIN[1], CHAIN[3]]  # along the path


TEXTS = (*CHAIN, AGAIN, RUMOR, VAGUE, "Later the Finch shop moved to Oslo.", "Omar.", "")


@settings(max_examples=8, deadline=None)
@given(order=st.lists(st.sampled_from(range(len(TEXTS))), min_size=1, max_size=10), gone=st.sets(st.integers(0, 9)))
def test_a_store_without_a_provenance_equals_one_that_was_never_told(tiny, tmp_path_factory, order, gone):
    full, never = (Lab(tiny, tmp_path_factory.mktemp("store")) for _ in range(2))
    for index, number in enumerate(order):
        full.teach(TEXTS[number], start=index, provenance="b" if index in gone else "a")
        if index not in gone:
            never.teach(TEXTS[number], start=index, provenance="a")
    full.method.delete(full.store, provenance="b")
    assert edges(full.graph) == edges(never.graph)


def test_a_graph_that_follows_its_traces_is_one_made_anew(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    followed = Graph()
    for number, text in enumerate((*TEXTS, VAGUE.replace("Lea", "Tom"), AGAIN)):
        lab.teach(text, start=number)
        followed = followed.follow(lab.store.traces("w"))
    lab.sleep()
    followed = followed.follow(lab.store.traces("w"))
    assert edges(followed) == edges(lab.graph)
    assert edges(followed.follow(lab.store.traces("w")[1:])) == edges(Graph.of(lab.store.traces("w")[1:]))


def test_ten_thousand_duplicates_are_one_edge_of_a_few_tellings():
    attestations = ()
    for time in range(10_000):
        attestations = add_attestation(attestations, Attestation("Lea", time))
    assert attestations == (Attestation("Lea", 0), Attestation("Lea", 9999))


def test_how_sure_several_are_together():
    assert confidence([Attestation("Lea", 1, 0.6), Attestation("Tom", 2, 0.6)]) == pytest.approx(0.84)
    assert confidence([Attestation("Lea", 1, 0.6), Attestation("Lea", 2, 0.6)]) == pytest.approx(0.6)
    assert confidence([Attestation("Lea", 1)]) == 1


def test_terms_lie_between_nothing_and_all():
    assert EdgeTerms(1, 1, 1, 1, 0).score == pytest.approx(1)
    assert EdgeTerms(1, 0, 0.5, 0.5, 0).passes(0.6)
    assert not EdgeTerms(1, 0, 0.5, 0.5, 0.1).passes(0.6)
    assert (recency(None), recency(1), hub(64, HUB), hub(96, HUB), hub(1000, HUB)) == (1, 0.5, 0, 0.5, 1)


@pytest.mark.parametrize(
    "data", [b"{}", b'{"waits":false,"tellings":[]}', b'{"waits":false,"tellings":[["Lea",1,7,false]]}', b'{"tellings":3,"waits":0}']
)
def test_a_payload_that_is_no_edge_is_one_line(data):
    with pytest.raises(LabError, match="teach") as error:
        EdgeCodec().decode(data)
    assert "\n" not in str(error.value)


def test_an_edge_comes_back_as_it_was():
    edge = Edge((Attestation("Zoë", 3, 0.6, True), Attestation("", 4)), is_pending=True)
    assert EdgeCodec().decode(EdgeCodec().encode(edge)) == edge


DALE = "Omar bought a bell at the Dale shop."
BELL = "In which city did Omar buy a bell?"
HOME = "Lea has a vague idea that the Dale shop is in Kyiv."
ROME = "Tom knows that the Dale shop is in Rome."


def test_what_is_vague_is_met_where_nothing_else_is_told_of_it(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    assert lab.actions(*CHAIN, DALE, HOME)[-1] == "route"
    assert lab.shown(BELL) == [DALE, HOME]
    assert lab.shown() == [CHAIN[1], CHAIN[3]]
    assert lab.actions(ROME, start=10) == ["insert"]
    assert lab.shown(BELL) == [DALE, ROME]
    assert not lab.graph.statements_about("kyiv")


def test_what_is_vague_is_not_met_in_a_relation_that_the_graph_does_not_have(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    assert lab.actions(DALE, HOME) == ["insert", "route"]
    assert lab.graph.statements_about("dale") == [0]


def test_what_was_met_while_it_waited_is_met_once_when_it_waits_no_more(tiny, tmp_path):
    lab = Lab(tiny, tmp_path)
    lab.teach(*CHAIN, DALE, HOME, HOME.replace("Lea", "Tom"))
    before = lab.graph.statements_about("dale")
    grown = Graph.of(lab.store.traces("w"))
    lab.sleep()
    grown.follow(lab.store.traces("w"))
    assert [statement.is_pending for statement in grown.statements][-1] is False
    assert grown.statements_about("dale") == before == lab.graph.statements_about("dale")
    assert not any(grown.pending_at.values())
