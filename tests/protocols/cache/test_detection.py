"""Who notices damage: areas and recalls of curves, and whose suspicion they are of."""

import pytest
import torch

from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.defences.base import CleanStatistics, DefenceContext
from hippo_core.protocols.cache.detection import RATES, Detections, roc
from tests.protocols.cache.conftest import cache, damaged  # noqa: F401


def test_recall_counts_what_lies_above_as_many_clean_scores_as_false_alarms_allow():
    clean = torch.arange(1000).float()
    found = roc(torch.tensor([989.0, 989.5, 990.0, 2000.0]), clean)
    assert found["recall_at_1_percent"] == 0.75  # above 989: ten clean scores are
    assert roc(clean, clean)["auc"] == pytest.approx(0.5) and roc(clean + 2000, clean)["auc"] == 1


def test_equal_scores_are_no_finding():
    found = roc(torch.zeros(5), torch.zeros(100))
    assert found["recall"] == [0.0] * len(RATES) and found["auc"] == 0.5


@pytest.mark.parametrize("name", ["detect_clear", "rms_outlier", "clipping", "episodic"])
def test_large_noise_is_noticed_and_the_curve_follows_the_mask(lm, damaged, name):  # noqa: F811
    known = [cache(seed) for seed in range(100, 108)]
    defence = load_defence(name, DefenceContext(lm, CleanStatistics.of(known), known))
    kv = cache(1)
    defence.write(kv, "a/0", range(5, 45))
    found = Detections()
    told = {"task": "text", "kind": "gaussian", "defence": name}
    for severity in (0.0, 1.0):
        hit = corrupt(kv, Corruption("gaussian", severity, times="window", window=(3, 20)), 7, "a/0")
        given = damaged(hit.kv, mask=hit.mask)
        found.see({**told, "severity": severity}, [hit], [defence.suspicion(given, defence.repair(given))])
    [line] = found.plain()["lines"]
    assert line["recall_at_1_percent"] > 0.5 and line["auc"] > 0.9
    assert line["damaged"] == hit.mask.sum() and line["clean"] == hit.mask.numel()


@pytest.fixture(scope="module")
def lm():
    from hippo_core.models.load import load
    from hippo_core.models.spec import load_spec

    return load(load_spec("hippo-tiny"), threads=1)
