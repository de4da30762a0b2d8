"""The altered store: what tells an answer tells another one, and nothing else changes."""

from hippo_core.methods.altering import altered, answering
from hippo_core.suites import settings_for
from hippo_core.suites.datasets.build import cut, drawn_worlds


def test_of_several_gold_facts_the_one_that_holds_the_answer_is_altered_and_what_tells_it_again():
    settings = settings_for("semantic", "default").model_copy(update={"retellings": 0.3, "n_facts": 40})
    told = list(cut(drawn_worlds("semantic", "default", 20, 3, "val", settings), 20))
    again = 0
    for world, other in zip(told, altered(told), strict=True):
        was, now = ({fact.id: fact for fact in one.facts} for one in (world, other))
        changed = set()
        for item in world.items:
            gold, slot = answering(item, was) or ("", "")
            assert slot == "city"
            same = [gold, *(one for one, first in item.retold.items() if first == gold)]
            again += len(same) - 1
            assert len({now[one].slots[slot] for one in same}) == 1
            assert all(item.answers[0] not in now[one].text and now[one].slots[slot] in now[one].text for one in same)
            changed |= set(same)
        assert all(now[one] == was[one] for one in was.keys() - changed)
    assert again
