"""Retrieval by a head over MiniLM's word pieces: the head decides, it is the one of its seed, and what it cannot be is said."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from hippo_core.errors import LabError
from hippo_core.evaluation.run import passages_of
from hippo_core.files import read_sealed, root, write_sealed
from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.cells import cells_of
from hippo_core.models import artifacts, checksums, minilm
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.retrieval import encoded
from hippo_core.retrieval import minilm_head as head
from hippo_core.retrieval.key_encoder import KeyHead, KeySettings, MiniLMStates
from hippo_core.retrieval.lexicon import sentences
from hippo_core.retrieval.pieces import PieceHead, PieceSettings
from hippo_core.retrieval.text_encoder import with_payloads
from recipes.key import KeyRecipe, draw_batch, states_of, train_key
from tests.methods.asking import bound, choose, index_of, needs_minilm
from tests.models.handmade import worlds

pytestmark = needs_minilm
[WORLD, _] = worlds()
ITEM = WORLD.items[0]
FEATURES = ("key", "key_covered", "superseded")


@pytest.fixture
def heads(monkeypatch, tmp_path):
    """Two random heads of 256 units in a folder of the test's own, that of the first seed and that of the second, of which 24 units win."""
    monkeypatch.setattr(artifacts, "folder_of", lambda _: tmp_path)
    made = {}
    for seed in head.SEEDS[:2]:
        torch.manual_seed(seed)
        settings = KeySettings(blocks=(minilm.LAYERS,), hidden=minilm.WIDTH, units=256)
        made[seed] = KeyHead(settings).eval().requires_grad_(False)
        values = {
            "settings": settings.model_dump(mode="json"),
            "weights": {"key": {"off": {name: float(name == "key") for name in FEATURES}}},
            "fitted_with": {"expansion": 256, "winners": 24},
        }
        artifacts.save_part(head.owner(), head.part_of(seed), values, made[seed])
    return made


def by_hand(module, fact: str, question: str) -> float:
    """The cosine of two texts' strongest 24 units."""
    codes = []
    for states in minilm.token_states([fact, question]):
        active = module(states[None], torch.ones(1, len(states), dtype=torch.bool))[0]
        codes.append(normalize(active * (active >= active.topk(24).values[-1]), dim=0))
    return float(codes[0] @ codes[1])


def test_it_ranks_by_what_the_head_makes_of_the_pieces(tiny, heads):
    texts = {fact.id: fact.text for fact in WORLD.facts}
    for seed, module in heads.items():
        ranking = choose("baselines/rag_head", tiny, WORLD, ITEM, head=seed, candidates=len(texts)).ranking
        scores = [by_hand(module, texts[source], ITEM.question) for source in ranking]
        assert scores == pytest.approx(sorted(scores, reverse=True), abs=0.02)  # codes are whole numbers
    first, second = (choose("baselines/rag_head", tiny, WORLD, ITEM, head=seed).ranking for seed in heads)
    assert first != second


def test_weights_of_its_channels_decide(tiny, heads):
    path = root() / artifacts.folder_of(head.owner()) / "head-1337.json"
    usual = choose("baselines/rag_head", tiny, WORLD, ITEM, candidates=100).ranking
    made = read_sealed(path, "")
    made["weights"]["key"]["off"]["key"] = -1.0
    write_sealed(path, made)
    assert choose("baselines/rag_head", tiny, WORLD, ITEM, candidates=100).ranking[0] != usual[0]


def test_codes_on_disk_are_those_of_the_very_head_and_of_how_it_is_read(tiny, heads, monkeypatch, tmp_path):
    """A head that was fitted anew, or of which more units win, finds nothing of the old one's, whose files lie beside its own."""
    kept = tmp_path / "encoded"
    monkeypatch.setattr(encoded, "FOLDER", str(kept))
    monkeypatch.setattr(encoded, "LEAST", 1)

    def ranking():
        return choose("baselines/rag_head", tiny, WORLD, ITEM, candidates=100).ranking

    path = artifacts.folder_of(head.owner()) / "head-1337.json"
    made = read_sealed(path, "")
    made |= {"weights": {"key": {"off": made["weights"]["key"]["off"]}}}
    rankings = {"first": ranking()}
    assert ranking() == rankings["first"] and len(list(kept.iterdir())) == 1
    artifacts.save_part(head.owner(), head.part_of(1337), made, heads[1338])
    rankings["fitted anew"] = ranking()
    made["fitted_with"] = {"expansion": 128, "winners": 3}
    artifacts.save_part(head.owner(), head.part_of(1337), made, heads[1338])
    rankings["read otherwise"] = ranking()
    assert len(list(kept.iterdir())) == 3
    monkeypatch.setattr(encoded, "LEAST", 10**6)
    assert rankings["read otherwise"] == ranking()
    assert len(set(rankings.values())) == 3


@pytest.fixture
def projection(heads):
    """A random projection of pieces to 16 numbers beside the heads."""
    torch.manual_seed(5)
    module = PieceHead(PieceSettings(hidden=minilm.WIDTH, width=16)).eval().requires_grad_(False)
    artifacts.save_part(head.owner(), head.PIECES, {"settings": module.settings.model_dump(mode="json")}, module)
    artifacts.save_part(head.owner(), "confidence", {"fitted": {}})
    return module


def test_pieces_are_compared_by_a_memory_as_by_a_rag(tiny, projection):
    code = {"encoder": "minilm", "episodic.code.expansion": 256, "episodic.code.winners": 24}
    parts = bound("memory/hei_nw", tiny, **code, **{"episodic.code.channels": ["pieces"]}).components
    traces = with_payloads(parts.encoder, [replace(trace, id=number) for number, trace in enumerate(passages_of(WORLD), start=1)])
    for trace in traces:
        parts.codec().check(replace(trace.payload, token_ids=(1,)))
        assert [table.shape[1] for table in trace.payload.pieces] == [16] * len(sentences(trace.text))
    recalled = parts.recaller(traces).recall(ITEM.question, set(ITEM.taught))
    assert set(recalled.terms) == {"pieces"}
    ranking = choose("baselines/rag_head", tiny, WORLD, ITEM, channels=["pieces"], fusion="sum", candidates=100).ranking
    shown = [trace.source for trace in recalled.traces]
    assert list(ranking)[: len(shown)] == shown
    assert parts.codec().settings != bound("memory/hei_nw", tiny, **code).components.codec().settings


def test_pieces_are_added_up_without_a_fit(tiny, projection):
    fitted = {"encoder": "minilm", "episodic.code.channels": ["pieces"], "episodic.recall.fusion": "fitted"}
    for name, settings in (("memory/hei_nw", fitted), ("baselines/rag_head", {"channels": ["pieces"]})):
        with pytest.raises(LabError, match="pieces needs"):
            bound(name, tiny, **settings)
    with pytest.raises(LabError, match="pieces needs encoder=minilm"):
        bound("memory/hei_nw", tiny, encoder="own", **{"episodic.code.channels": ["pieces"]})


def test_pieces_know_the_word_that_each_is_of():
    assert minilm.words_of_pieces("Who mislaid Anna's lmap?")[0] == "who"
    assert set(minilm.words_of_pieces("Who mislaid Anna's lmap?")) == {"who", "mislaid", "anna's", "lmap", ""}


def test_what_minilm_runs_for_a_question_is_counted_once(tiny, heads):
    pieces = len(MiniLMStates().of([ITEM.question])[0]) + 2  # the opening and the closing one are run, too
    assert choose("baselines/rag_head", tiny, WORLD, ITEM).computed_tokens == pieces
    assert choose("baselines/rag_sum", tiny, WORLD, ITEM).computed_tokens == pieces


def test_a_head_that_was_not_trained_or_is_of_another_encoder_is_refused(tiny, heads, monkeypatch):
    with pytest.raises(LabError, match="minilm_head"):
        choose("baselines/rag_head", tiny, WORLD, ITEM, head=1339)
    monkeypatch.setitem(minilm.PUBLISHED, "model.safetensors", "0" * 64)
    with pytest.raises(LabError, match="fitted on minilm"):
        bound("baselines/rag_head", tiny)._recaller(index_of(tiny, WORLD))
    with pytest.raises(LabError, match="head"):
        bound("baselines/rag_head", tiny, head=1)


def test_a_cell_hangs_on_the_heads_that_lie_there(tmp_path, monkeypatch):
    answer = load_experiment("answer")

    def ids():
        """Those of a cell that asks with a head, and of one that does not."""
        fingerprints.forget()
        parameters = (answer.check({"preset": preset}, "here") for preset in ("baselines/rag_head", "baselines/rag_bm25"))
        return [cells_of(answer.plan(one))[-1].id for one in parameters]

    monkeypatch.setattr(checksums, "WEIGHTS", str(tmp_path))
    (tmp_path / "minilm").mkdir()
    (tmp_path / "minilm/head-1338.safetensors").write_bytes(b"one")
    before = ids()
    (tmp_path / "minilm/head-1338.safetensors").write_bytes(b"other")
    after = ids()
    assert after[0] != before[0] and after[1] == before[1]
    fingerprints.forget()


def test_it_is_trained_on_the_pairs_of_a_key_and_finds_them():
    recipe = KeyRecipe(seed=7, rooms=8, steps=60, facts=16, units=256, winners=16, blocks=(minilm.LAYERS,))
    source, log = MiniLMStates(), []
    trained = train_key(source, recipe, log.append)
    torch.manual_seed(1)
    untrained = KeyHead(trained.settings)
    assert hit_rate(trained, source, recipe) > hit_rate(untrained, source, recipe) + 0.05


def hit_rate(module, source, recipe) -> float:
    """How many cues of other rooms find their fact first."""
    from random import Random

    random, right, count = Random(99), 0, 0
    for _ in range(6):
        batch = states_of(source, draw_batch(random, recipe))
        texts = [torch.stack([module(state[None].float(), torch.ones(1, len(state), dtype=torch.bool))[0] for state in some])
                 for some in (batch.facts, batch.cues)]  # fmt: skip
        nearest = (normalize(texts[1], dim=-1) @ normalize(texts[0], dim=-1).T).argmax(1)
        right, count = right + int((nearest == torch.tensor(batch.gold)).sum()), count + len(batch.gold)
    return right / count
