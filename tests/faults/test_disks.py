"""Full and read-only disks, real ones: one line says which and what to do, nothing half is kept, and a call after that goes on."""

import time

import pytest

from hippo_core.results import records
from hippo_core.results.records.paths import record_folders
from hippo_core.results.records.sealed import wrong_with
from tests.faults.conftest import LONG, RECORDS, assert_as_if_undisturbed, leftovers
from tests.faults.mounts import fill, mounted, read_only, size, small_disk
from tests.lab.running import LIMIT, ended, lab, none_left, start


@pytest.mark.skipif(not LONG, reason="`make test-faults` fills both folders")
@pytest.mark.parametrize("name", ["executed", "data/generated"])
def test_a_disk_that_runs_full_stops_the_grid_and_a_second_call_goes_on(undisturbed, fresh, temporary, name):
    disk, needed = fresh / name, size(undisturbed / name)
    with mounted(small_disk(disk, 4 * needed)) as (before, root):
        seen = root / fresh.relative_to("/")
        ballast = fill(seen / name, leave=needed // 2)
        full = lab(fresh, "grid", "faults", before=before, TMPDIR=str(temporary))
        assert (full.returncode, len(full.stderr.splitlines())) == (2, 1), full.stdout + full.stderr
        assert "the disk is full" in full.stderr and "free some space and call again" in full.stderr
        kept = undamaged_records(seen)
        assert len(kept) < RECORDS
        assert leftovers(seen) == []
        assert none_left(fresh)
        ballast.unlink()
        mended = lab(fresh, "grid", "faults", before=before, TMPDIR=str(temporary))
        assert mended.returncode == 0, mended.stdout + mended.stderr
        assert [done for done in kept if not (done / records.DONE).exists()] == []
        assert_as_if_undisturbed(fresh, undisturbed, seen)


@pytest.mark.skipif(not LONG, reason="`make test-faults` fills the folder for temporary files, too")
def test_a_full_folder_for_temporary_files_stops_the_grid_and_is_named(undisturbed, fresh, temporary):
    with mounted(small_disk(temporary, 1024)) as (before, root):
        running = start(fresh, "faults", before=before, TMPDIR=str(temporary))
        until = time.monotonic() + LIMIT
        while running.poll() is None and time.monotonic() < until:  # kernels that end give space back
            ballast = fill(root / temporary.relative_to("/"))
            time.sleep(0.05)
        full = ended(running)
        assert (full.returncode, len(full.stderr.splitlines())) == (2, 1), full.stdout + full.stderr
        assert f"the disk is full at {temporary}" in full.stderr
        assert leftovers(fresh) == []
        assert none_left(fresh)
        ballast.unlink()
        mended = lab(fresh, "grid", "faults", before=before, TMPDIR=str(temporary))
        assert mended.returncode == 0, mended.stdout + mended.stderr
        assert_as_if_undisturbed(fresh, undisturbed)
        assert list((root / temporary.relative_to("/")).iterdir()) == []


def test_a_read_only_place_for_records_is_said_before_any_cell_runs(fresh, temporary):
    with mounted(read_only(fresh / "executed")) as (before, _):
        refused = lab(fresh, "grid", "faults", before=before, TMPDIR=str(temporary))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1, refused.stderr
    assert f"no access to {fresh / 'executed'}" in refused.stderr and "read-only" in refused.stderr and "HIPPO_ROOT" in refused.stderr
    assert not (fresh / "data/generated").exists()


def undamaged_records(lab_path):
    """The finished records of the disturbed grid, all of them whole."""
    folders = list(record_folders(lab_path / "executed/faults"))
    assert [what for record in folders for what in wrong_with(record)] == []
    return folders
