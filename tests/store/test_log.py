"""A log that a kill left is read as far as it goes; one that is broken before its last commit is refused and stays as it is."""

from random import Random

import pytest

from hippo_core.errors import LabError
from hippo_core.store import TraceStore
from hippo_core.store.log import FRAME, HEADER
from tests.store.made import IDENTITY, trace

COMMITS, PAGE = 12, 4096


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The two files of a store with a log, as a kill leaves them, and the length of the log after each commit."""
    folder, lengths = tmp_path_factory.mktemp("killed"), []
    TraceStore.create(folder, "s1", IDENTITY).close()
    with TraceStore.open(folder, "s1", IDENTITY) as store:
        log = store.path.with_name("traces.sqlite-wal")
        for number in range(COMMITS):
            store.append([trace(f"f{number}")])
            lengths.append(log.stat().st_size)
        return store.path.read_bytes(), log.read_bytes(), lengths


@pytest.fixture
def size_with(killed, tmp_path):
    """How many traces a store has with this log; read by a reader, or else a writer."""
    folder = tmp_path / "hei_nw/s1"
    folder.mkdir(parents=True)

    def opened(log, read_only):
        (folder / "traces.sqlite").write_bytes(killed[0])
        (folder / "traces.sqlite-wal").write_bytes(log)
        with TraceStore.open(tmp_path, "s1", IDENTITY, read_only=read_only) as store:
            return store.size()

    return opened


def flipped(log, offset):
    damaged = bytearray(log)
    damaged[offset] ^= 4
    return bytes(damaged)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_log_that_was_cut_anywhere_has_its_whole_commits(killed, size_with, read_only):
    _, log, lengths = killed
    cuts = [0, HEADER, HEADER + FRAME, *lengths, *(length - 1 for length in lengths), *Random(1).choices(range(len(log)), k=20)]
    for cut in cuts:
        assert size_with(log[:cut], read_only) == sum(length <= cut for length in lengths)


@pytest.mark.parametrize("read_only", [True, False])
def test_damage_behind_which_commits_stand_is_refused_and_the_log_stays(killed, size_with, tmp_path, read_only):
    _, log, lengths = killed
    offsets = [*range(0, HEADER, 5), *range(HEADER, HEADER + FRAME, 5), HEADER + FRAME, *Random(2).choices(range(lengths[-3]), k=20)]
    for offset in offsets:
        broken = flipped(log, offset)
        with pytest.raises(LabError, match=r"its log is broken, and commits stand behind that.*; bring back a copy, or teach anew"):
            size_with(broken, read_only)
        assert (tmp_path / "hei_nw/s1/traces.sqlite-wal").read_bytes() == broken


def test_a_last_commit_that_is_torn_in_any_way_is_none(killed, size_with):
    _, log, lengths = killed
    for offset in Random(3).choices(range(lengths[-2], lengths[-1]), k=12):
        assert size_with(flipped(log, offset), True) == COMMITS - 1
    for begin in range(lengths[-2], lengths[-1], FRAME + PAGE):  # a power cut writes frames in any order
        assert size_with(log[:begin] + bytes(FRAME + PAGE) + log[begin + FRAME + PAGE :], True) == COMMITS - 1


def test_what_an_earlier_log_left_behind_the_end_is_no_damage(killed, size_with):
    _, log, lengths = killed
    old = bytearray(log)
    for begin in range(HEADER, len(log), FRAME + PAGE):
        old[begin + 8] ^= 1  # another salt
    for length in lengths:
        assert size_with(log[:length] + bytes(old[length:]), True) == lengths.index(length) + 1
