"""An archive holds the plain files that its list names, each once and of the length that the list says; anything else is refused."""

import gzip
import hashlib
import io
import json
import tarfile

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.paired.archiving import CONTENTS, HEADERS, verify

BODY = b"{}\n"
SUM = hashlib.sha256(BODY).hexdigest()
SEAL = {"bytes": len(BODY), "sha256": SUM}
FILE = ("run/run.json", BODY, tarfile.REGTYPE)
BIG = 64 << 20


def packed(target, listed, files, tail=b""):
    """Write an archive of these files (name, content, kind), its list first."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, body, kind in ([] if listed is None else [(CONTENTS, json.dumps(listed).encode(), tarfile.REGTYPE)]) + files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(body) if kind == tarfile.REGTYPE else 0, kind, "/etc/passwd"
            tar.addfile(entry, io.BytesIO(body))
    target.write_bytes(gzip.compress(content.getvalue() + tail))


def test_a_complete_archive_is_verified(tmp_path):
    packed(tmp_path / "x.tar.gz", {FILE[0]: SEAL}, [FILE])
    assert verify(tmp_path / "x.tar.gz") == {FILE[0]: SUM}


@pytest.mark.parametrize(
    ("listed", "files", "why"),
    [
        (None, [], "as its first file"),
        ({}, [], "its list names no file"),
        ({}, [FILE], "its list names no file"),
        ({FILE[0]: SEAL}, [], "not as its list says"),
        ({FILE[0]: SEAL}, [FILE, FILE], "is in it twice"),
        ({FILE[0]: SEAL}, [FILE, ("run/more", b"", tarfile.REGTYPE)], "is not in its list"),
        ({FILE[0]: SEAL}, [FILE, ("run/link", b"", tarfile.SYMTYPE)], "no links"),
        ({FILE[0]: {"bytes": 0, "sha256": SUM}}, [(FILE[0], b"", tarfile.SYMTYPE)], "is no plain file"),
        ({FILE[0]: {"bytes": 0, "sha256": SUM}}, [(FILE[0], b"", tarfile.LNKTYPE)], "is no plain file"),
        ({FILE[0]: {"bytes": 0, "sha256": SUM}}, [(FILE[0], b"", tarfile.CHRTYPE)], "is no plain file"),
        ({"../x": SEAL}, [("../x", BODY, tarfile.REGTYPE)], "of a file inside the archive"),
        ({"/etc/x": SEAL}, [("/etc/x", BODY, tarfile.REGTYPE)], "of a file inside the archive"),
        ({FILE[0]: [1]}, [FILE], "no length and SHA-256"),
        ({FILE[0]: SUM}, [FILE], "no length and SHA-256"),
        ({FILE[0]: {"bytes": -1, "sha256": SUM}}, [FILE], "no length and SHA-256"),
        ({FILE[0]: {**SEAL, "sha256": "0" * 64}}, [FILE], "not as its list says: run/run.json"),
        ({FILE[0]: SEAL}, [(FILE[0], b"\0" * BIG, tarfile.REGTYPE)], "would unpack to 67,108,864 bytes; its list says 3"),
    ],
)
def test_any_other_archive_is_refused_in_a_line(tmp_path, listed, files, why):
    packed(tmp_path / "x.tar.gz", listed, files)
    with pytest.raises(LabError, match=why) as error:
        verify(tmp_path / "x.tar.gz")
    assert "\n" not in str(error.value) and [path.name for path in tmp_path.iterdir()] == ["x.tar.gz"]


def test_no_more_is_unpacked_than_the_list_says(tmp_path):
    packed(tmp_path / "x.tar.gz", {FILE[0]: SEAL}, [FILE], b"\0" * (2 * HEADERS))
    with pytest.raises(LabError, match="would unpack to more than its list says"):
        verify(tmp_path / "x.tar.gz")
    for content in (b"", b"none", gzip.compress(b"none")):
        (tmp_path / "x.tar.gz").write_bytes(content)
        with pytest.raises(LabError, match=r"is no archive|as its first file"):
            verify(tmp_path / "x.tar.gz")
