"""The learned repair: the identity until it is trained, and refused where it was trained for something else."""

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.files import write_json
from hippo_core.protocols.cache.defences.base import CleanStatistics
from hippo_core.protocols.cache.defences.learned import FILE, Repair, RepairSettings, load_repair, save_repair
from tests.protocols.cache.conftest import cache

CLEAN = CleanStatistics.of([cache(seed) for seed in range(100, 104)])


def made(**settings):
    repair = Repair(RepairSettings(rank=4, **settings), CLEAN)
    repair.start_from([cache(100)])
    return repair


def moved(repair):
    torch.nn.init.constant_(repair.up, 0.3)
    return repair


def test_it_begins_as_the_identity_and_is_none_when_it_has_learnt():
    repair = made()
    assert torch.equal(repair(cache(1)), cache(1))
    assert not torch.equal(moved(repair)(cache(1)), cache(1))


def test_a_token_is_repaired_by_itself():
    repair = moved(made())
    assert torch.allclose(repair(cache(1))[:, :, :, 7:8], repair(cache(1)[:, :, :, 7:8]), atol=1e-6)


def test_what_is_no_number_becomes_one():
    kv = cache(1)
    kv[0, 0, 0, 0, 0], kv[1, 1, 1, 1, 1] = torch.nan, torch.inf
    assert made()(kv).isfinite().all()


@pytest.mark.parametrize(("settings", "same"), [({"parts": "V"}, (slice(None), 0)), ({"layers": (2,)}, (slice(0, 2),))])
def test_it_leaves_the_rest_alone(settings, same):
    repaired = moved(made(**settings))(cache(1))
    assert torch.equal(repaired[same], cache(1)[same]) and not torch.equal(repaired, cache(1))


def test_one_that_trains_no_more_repairs_as_it_did(monkeypatch):
    repair = moved(made())
    before = repair(cache(1))
    repair.fixed()
    monkeypatch.setattr(torch.linalg, "qr", None)
    assert torch.equal(repair(cache(1)), before) and not any(weight.requires_grad for weight in repair.parameters())


def test_it_comes_back_from_the_disk_as_it_was(tmp_path):
    repair = moved(made())
    save_repair(repair, tmp_path, {"model": "hippo-tiny"})
    assert torch.equal(load_repair(tmp_path, CLEAN, "hippo-tiny")(cache(1)), repair(cache(1)))


def test_one_of_another_model_or_none_is_refused(tmp_path):
    with pytest.raises(LabError, match="step=train"):
        load_repair(tmp_path, CLEAN, "hippo-tiny")
    save_repair(made(), tmp_path, {"model": "smollm2-135m"})
    with pytest.raises(LabError, match="trained for the model smollm2-135m"):
        load_repair(tmp_path, CLEAN, "hippo-tiny")
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(LabError, match="damaged"):
        load_repair(tmp_path, CLEAN, "smollm2-135m")


@pytest.mark.parametrize("settings", [{"rank": 6}, {"rank": 0}, {"rank": 4, "layers": [7]}, {"depth": 3}])
def test_a_checkpoint_of_another_config_is_refused_in_one_line(tmp_path, settings):
    save_repair(made(), tmp_path, {"model": "hippo-tiny"})
    write_json(tmp_path / "repair.json", {"model": "hippo-tiny", "settings": settings})
    with pytest.raises(LabError, match=r"settings|layers") as error:
        load_repair(tmp_path, CLEAN, "hippo-tiny")
    assert "\n" not in str(error.value)


def test_what_the_model_lacks_is_refused():
    with pytest.raises(LabError, match=r"layers .7. are none"):
        Repair(RepairSettings(layers=(7,), rank=4), CLEAN)
    with pytest.raises(LabError, match="rank 99"):
        Repair(RepairSettings(rank=99), CLEAN)
