"""What was fitted for a model is read back as it was written, or refused in a line that says what fits it again."""

import pytest
import torch
from torch import nn

from hippo_core.errors import LabError
from hippo_core.files import check_seal, read_object, read_sealed, root
from hippo_core.models.adapter import check_weights
from hippo_core.models.artifacts import Owner, load_part, read_part, save_part

OWNER = Owner("minilm", {"name": "minilm", "sha256": "0" * 64}, "python fit.py")
PARTS = sorted(path for path in (root() / "data/weights").glob("*/*.json") if "seal" in read_object(path))
TRAINED = sorted(path.parent for path in (root() / "data/weights").glob("*/training.json"))


def flipped(offset):
    def damage(content):
        content[offset] ^= 1
        return content

    return damage


DAMAGES = {
    "a number": flipped(-3),
    "the header": flipped(20),
    "its end": lambda content: content[:-4],
    "more": lambda content: content + b"\0\0\0\0",
}


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(3)
    save_part(OWNER, "head", {"settings": {"width": 4}, "weights": {"key": 0.25}}, nn.Linear(4, 4), tmp_path)
    return tmp_path


def damage(path, spoil):
    path.write_bytes(spoil(bytearray(path.read_bytes())))


def test_a_part_is_read_as_it_was_written(folder):
    torch.manual_seed(3)
    weight = nn.Linear(4, 4).weight
    again = load_part(OWNER, "head", lambda values: nn.Linear(values["width"], 4), folder)
    assert torch.equal(again.weight, weight) and not again.weight.requires_grad
    assert read_part(OWNER, "head", folder)["weights"] == {"key": 0.25}


@pytest.mark.parametrize("how", DAMAGES.values(), ids=DAMAGES)
def test_damaged_tensors_are_refused(folder, how):
    damage(folder / "head.safetensors", how)
    with pytest.raises(LabError, match=r"^\S*head\.safetensors is damaged: .*; fit it again: `python fit\.py`$"):
        load_part(OWNER, "head", lambda values: nn.Linear(4, 4), folder)


@pytest.mark.parametrize(("old", "new"), [("0.25", "0.75"), ('"tensors"', '"tensor5"'), ('"width": 4', '"width": 5')])
def test_a_damaged_description_is_refused(folder, old, new):
    damage(folder / "head.json", lambda content: content.replace(old.encode(), new.encode()))
    for read in (lambda: read_part(OWNER, "head", folder), lambda: load_part(OWNER, "head", lambda values: nn.Linear(4, 4), folder)):
        with pytest.raises(LabError, match=r"^\S*head\.json is damaged .*; fit it again: `python fit\.py`$"):
            read()


def test_all_that_is_shipped_has_a_seal_and_fits_it():
    sealed = {path.with_suffix(".safetensors") for path in PARTS}
    for path in PARTS:
        made = read_sealed(path, "")
        if path.with_suffix(".safetensors").exists():
            check_seal(path.with_suffix(".safetensors"), made["tensors"], "")
    for folder in TRAINED:
        check_weights(folder)
        sealed |= {folder / name for name in read_object(folder / "training.json")["weights"]}
    assert set((root() / "data/weights").glob("*/*.safetensors")) <= sealed
