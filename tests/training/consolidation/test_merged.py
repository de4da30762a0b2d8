"""A merged model answers as the one to which its update is attached, and the model that it came from stays as it was."""

import json

import pytest
import torch

from hippo_core.discovery import members
from hippo_core.errors import LabError
from hippo_core.files import read_sealed, sha256, write_sealed
from hippo_core.models import checksums
from hippo_core.models.generate import generate
from hippo_core.models.load import load
from hippo_core.models.prompt import render
from hippo_core.models.spec import load_spec
from hippo_core.results.records.sealed import seal
from hippo_core.training.consolidation import live
from hippo_core.training.consolidation.lineage import LINEAGE
from hippo_core.training.consolidation.live import merge
from hippo_core.training.consolidation.update_rules import make_update_rule
from hippo_core.training.consolidation.update_rules.base import FILE
from tests.training.consolidation.test_live import TRACES
from tests.training.consolidation.test_ways import QUESTIONS, RANK, logits


@pytest.fixture
def write_update(lm, tmp_path):
    """Writes an update of a way, of numbers drawn at random, as a record holds it; returns the folder and what the model then answers."""

    def write(name):
        update_rule, folder = make_update_rule(name, lm, RANK, 1), tmp_path / "consolidated"
        folder.mkdir()
        torch.manual_seed(1)
        with torch.no_grad():
            for weight in update_rule.weights().values():
                weight += 0.1 * torch.randn_like(weight)
        update_rule.save(folder)
        model = {"name": "hippo-tiny", "weights": checksums.weights("hippo-tiny")}
        recipe = {"way": name, "rank": RANK, "first_block": 1}
        (folder / LINEAGE).write_text(json.dumps({"store": "f" * 64, "model": model, "recipe": recipe}))
        outputs = logits(lm), answers(lm)
        update_rule.detach()
        return folder, outputs

    return write


def answers(lm):
    return [answer.tokens for answer in generate(lm, [render(lm, [], question, "short") for question in QUESTIONS], 4)]


@pytest.mark.parametrize("name", ["lora", "sparse"])
def test_a_merged_model_answers_as_the_attached_one(name, write_update, lm, tmp_path):
    before, source = logits(lm), sha256(load_spec("hippo-tiny").path / "model.safetensors")
    folder, (attached, expected) = write_update(name)
    assert merge(folder, tmp_path / "out") == "hippo-tiny"
    other = load(load_spec(str(tmp_path / "out")), "cpu")
    assert torch.allclose(logits(other), attached, atol=1e-3) and not torch.allclose(attached, before, atol=0.1)
    assert answers(other) == expected
    assert json.loads((tmp_path / "out" / LINEAGE).read_text())["store"] == "f" * 64
    assert sha256(load_spec("hippo-tiny").path / "model.safetensors") == source
    with pytest.raises(LabError, match="is there already"):
        merge(folder, tmp_path / "out")


@pytest.mark.parametrize("name", sorted(members("hippo_core.training.consolidation.update_rules").keys() - {"lora", "sparse"}))
def test_what_is_no_weights_is_refused(name, write_update, tmp_path):
    folder, _ = write_update(name)
    with pytest.raises(LabError, match=f"way {name} cannot be merged into weights: it acts on some questions"):
        merge(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_does_not_belong_to_the_model_is_refused(write_update, tmp_path):
    folder, _ = write_update("lora")
    made = json.loads((folder / LINEAGE).read_text())
    (folder / LINEAGE).write_text(json.dumps(made | {"model": {"name": "hippo-tiny", "weights": "0"}}))
    with pytest.raises(LabError, match="with other weights than it has now"):
        merge(folder, tmp_path / "out")
    (folder / LINEAGE).write_text("{}")
    with pytest.raises(LabError, match="is damaged, or an earlier version's"):
        merge(folder, tmp_path / "out")
    with pytest.raises(LabError, match=r"holds no lineage\.json"):
        merge(tmp_path, tmp_path / "out")


def test_what_was_altered_since_the_sleep_is_not_merged(write_update, lm, tmp_path):
    folder, _ = write_update("lora")
    seal(tmp_path)
    flip(folder / FILE)
    with pytest.raises(LabError, match=r"is not as it was finished: consolidated/consolidated\.safetensors was changed"):
        merge(folder, tmp_path / "out")


def test_what_was_altered_in_a_live_memory_is_not_merged(lm, tmp_path):
    for _ in live.learn(lm, TRACES[:1], "sparse", 1, tmp_path / "learnt"):
        pass
    made = read_sealed(tmp_path / "learnt" / LINEAGE, "")
    weights = tmp_path / "learnt" / made["folder"] / FILE
    flip(weights)
    with pytest.raises(LabError, match="is damaged: expected SHA-256"):
        merge(tmp_path / "learnt", tmp_path / "out")
    flip(weights)
    for name in ("../learnt", str(weights.parent), "."):
        write_sealed(tmp_path / "learnt" / LINEAGE, {**made, "folder": name})
        with pytest.raises(LabError, match="is damaged, or an earlier version's"):
            merge(tmp_path / "learnt", tmp_path / "out")


def flip(path):
    path.write_bytes((content := path.read_bytes())[:-1] + bytes([content[-1] ^ 1]))
