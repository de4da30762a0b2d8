"""A worker is fit for cells when its packages are those of the lock and its code is the runner's."""

import pytest

from hippo_core.lab.grid.executors import worker
from hippo_core.lab.run.preflight import Requirements

NOTHING = Requirements((), ())
OURS = {"python": "3.11", "lock": "l", "code": "c", "packages": [], "seen": True}


@pytest.mark.parametrize(
    ("change", "shared", "says"),
    [
        ({}, True, ""),
        ({"python": "3.12"}, True, "another Python"),
        ({"lock": "other"}, True, "another requirements.lock"),
        ({"code": "other"}, True, "other code"),
        ({"packages": ["numpy 1.0 where requirements.lock says 2.4.6"]}, True, "numpy 1.0 where requirements.lock says 2.4.6"),
        ({"missing": "no model at data/models/x"}, True, "no model at data/models/x"),
        ({"seen": False}, True, "RECORDS="),
        ({"seen": False}, False, ""),
    ],
    ids=str,
)
def test_what_differs_is_said(change, shared, says):
    why = worker.unfit(OURS, OURS | change, shared)
    assert says in why if says else why == ""


def test_a_package_that_is_not_as_the_lock_says_is_found(lab_dir):
    """The lock is compared with what is installed."""
    (lab_dir / "requirements.lock").unlink()
    (lab_dir / "requirements.lock").write_text("numpy==1.0\nno-such-package==1\npytest\n")
    description = worker.describe(NOTHING, "nowhere")
    assert [line.split(" where ")[0].split()[0] for line in description["packages"]] == ["numpy", "no-such-package"]
    assert "no-such-package missing where requirements.lock says 1" in description["packages"]
    assert description["seen"] is False


def test_a_checkout_that_changes_under_a_worker_is_seen(lab_dir):
    before = worker.describe(NOTHING, "nowhere")
    (lab_dir / "hippo_core/suites/episodic.py").open("a").write("# other\n")
    assert worker.describe(NOTHING, "nowhere")["code"] != before["code"]
