"""The comparison of ways: the right fact is always among the traces; masked, all ways answer alike."""

from hippo_core.delivery.kv import KVDelivery
from hippo_core.delivery.text import TextDelivery
from hippo_core.models.load import load
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of
from hippo_core.models.spec import load_spec
from hippo_core.suites.draw import worlds
from recipes.adapters import compare_deliveries, question
from recipes.skills import SEED


def test_a_question_has_its_gold_facts_and_so_many_traces_in_order_of_telling():
    for world in worlds("semantic", "default", 20, SEED, "val"):
        texts = [fact.text for fact in world.facts]
        for item in world.items:
            asked = question(world, item, 5)
            gold = {fact.text for fact in world.facts if fact.id in item.gold_facts}
            assert gold <= set(asked.passages)
            assert len(asked.passages) == max(5, len(gold))
            assert [text for text in texts if text in asked.passages] == list(asked.passages)


def test_masked_all_ways_answer_alike_and_seen_they_answer_better():
    lm = load(load_spec("hippo-tiny"), "cpu")
    compared = compare_deliveries(
        {"text": TextDelivery(lm), "kv": KVDelivery(lm, PassageKV(lm, prefix_of(lm, "short")))}, n=20, traces=(1, 3)
    )
    assert list(compared["masked"]) == [False] * 4 + [True] * 2
    masked = compared[compared["masked"]]
    assert masked["em"].nunique() == masked["prompt_tokens"].nunique() == masked["trace_tokens"].nunique() == 1
    assert compared[~compared["masked"]]["em"].min() > masked["em"].max()
    assert (compared[compared["inject"] == "kv"]["computed_tokens"] <= compared[compared["inject"] == "text"]["prompt_tokens"].max()).all()
