"""Files and errors that every part of the lab shares: where it reads and writes, atomic writes, safe YAML, checksums."""

import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from hippo_core.errors import LabError

SHIPPED = Path(__file__).with_name("shipped")  # what a wheel brings of params/ and data/ (setup.py); no checkout has this folder
INSTALLED = SHIPPED.is_dir()  # from a wheel
COMMAND = "hippo" if INSTALLED else ".venv/bin/hippo"  # the lab's command line, as it is typed; in a checkout at its root
BRING_MODELS = "hippo models" if INSTALLED else "make models"
PARENT = SHIPPED if INSTALLED else Path(__file__).resolve().parents[1]  # of params/ and data/, where nothing else is set
YAML_BYTES, YAML_DEPTH, YAML_VALUES = 16 << 20, 100, 1_000_000  # more of it than anybody writes: an attack, or another file
YAML_KEPT = 1 << 16  # characters of a text, at most, whose values are kept
TAG = "tag:yaml.org,2002:"
NEVER = re.compile(r"(?!)")
AMBIGUOUS = {  # plain numbers that YAML 1.1 does not read as decimals: 010 is 8 and 1:30 is 90
    f"{TAG}int": re.compile(r"[-+]?0[0-9_]+|.*:.*"),
    f"{TAG}float": re.compile(r".*:.*"),
}
FULL = (errno.ENOSPC, errno.EDQUOT)  # a full disk, a quota that is used up
MARK, MARKED = ".made-by-hippo", "The lab made this folder and may remove it.\n"  # a file in each folder that we may remove, and its words
UNWRITTEN = ".hippo-unwritten"  # ends the name of a file that is being written


class Terminated(SystemExit):
    """SIGTERM came, as a cluster's scheduler sends it before it kills."""


def in_a_line(error: BaseException) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def mistakes_in_a_line() -> Iterator[None]:
    """Of a module that is run by itself: a LabError ends it with its one line and no traceback."""
    try:
        yield
    except LabError as error:
        raise SystemExit(str(error)) from None


def root() -> Path:
    """Where parameters and weights are read: `$HIPPO_ROOT` where set, else the repository's root, else what a wheel brought."""
    return Path(os.environ.get("HIPPO_ROOT") or PARENT)


def home() -> Path:
    """Where the lab writes, and what is the user's own is looked for: the root; from a wheel a folder in the user's cache."""
    if has_checkout():
        return root()
    from platformdirs import user_cache_path

    return user_cache_path("hippo", appauthor=False)


def has_checkout() -> bool:
    """Whether the root is a folder of the user's: a checkout, or what `$HIPPO_ROOT` names."""
    return root() != SHIPPED


def require_checkout(what: str) -> None:
    """LabError where the lab runs from a wheel alone; `what` cannot be done there."""
    if not has_checkout():
        raise LabError(f"{what} needs a checkout of the lab, this is a wheel; call it in one, or set HIPPO_ROOT to its folder")


def parse_yaml(text: str) -> Any:
    """What a YAML text holds, loaded safely, by libyaml where there is one. YAMLError, with the line, also where a key stands twice, a
    number may mean two things, or the text would unfold to more than anybody writes. The same text is parsed once."""
    return deepcopy(_kept(text)) if len(text) <= YAML_KEPT else _parsed(text)


def _parsed(text: str) -> Any:
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _require_shallow(yaml.parse(text, Loader=kind))
        loader = kind(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _size(node, {})
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:  # of a tag that does not fit
        raise yaml.YAMLError(f"a value is not what its tag says: {in_a_line(error)}") from None


_kept = lru_cache(512)(_parsed)


def _require_shallow(events: Iterable[yaml.Event]) -> None:
    """YAMLError where a text is nested too deep; asked before it is composed, for libyaml would end the process."""
    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > YAML_DEPTH:
                raise _refused(event, f"nested more than {YAML_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a part of a YAML text stands for, each alias counted as what it repeats; YAMLError where that is refused."""
    if isinstance(node, yaml.ScalarNode):
        if not node.style and AMBIGUOUS.get(node.tag, NEVER).fullmatch(node.value):
            raise _refused(node, f"{node.value} may be read in two ways; write a decimal number, or put it in quotes if it is text")
        if not node.style and node.tag == f"{TAG}timestamp":
            node.tag = f"{TAG}str"  # a date is text to every reader here
        return 1
    if (size := known.get(id(node))) is not None:
        if size == 0:
            raise _refused(node, "an alias stands inside what it repeats")
        return size
    known[id(node)] = 0
    parts = node.value
    if isinstance(node, yaml.MappingNode):
        _require_keys(node)
        parts = [part for pair in node.value for part in pair]
    size = 1
    for part in parts:
        size += _size(part, known)
        if size > YAML_VALUES:
            raise _refused(node, f"stands for more than {YAML_VALUES:,} values")
    known[id(node)] = size
    return size


def _require_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if key.tag in (f"{TAG}bool", f"{TAG}null"):
            raise _refused(key, f"the key {key.value!r} is read as true, false or nothing; put it in quotes")
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                raise _refused(key, f"the key {key.value!r} stands twice")
            seen.add((key.tag, key.value))


def _refused(node: yaml.Node | yaml.Event, why: str) -> yaml.YAMLError:
    return yaml.YAMLError(f"line {node.start_mark.line + 1}: {why}")


def read_text(path: Path, most: int) -> str:
    """The content of a text file of at most so many bytes; LabError where it is missing, larger, or not UTF-8."""
    try:
        if (size := path.stat().st_size) > most:
            raise LabError(f"{path} is too large: expected at most {most:,} bytes, found {size:,}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise LabError(f"expected a file, {path} is a folder") from None
    except UnicodeDecodeError as error:
        raise LabError(f"{path} is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None


def read_yaml(path: Path, parse: Callable[[str], Any] = parse_yaml) -> Any:
    """The content of a YAML file, loaded safely; LabError where it is missing or no YAML."""
    try:
        return parse(read_text(path, YAML_BYTES))
    except yaml.YAMLError as error:
        raise LabError(f"{path} is not valid YAML: {in_a_line(error)}") from None


def tables(module: str) -> dict[str, Any]:
    """The words of a module: the YAML file of its name beside it (`words.yaml` of `words.py`), its lists as tuples."""
    return _frozen(read_yaml(Path(module).with_suffix(".yaml")))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, for `object_pairs_hook`; ValueError where a key stands twice."""
    if len(values := dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return values


def parse_json(text: str | bytes, where: object) -> dict[str, Any]:
    """A JSON text that holds an object; LabError, beginning with where it stands, where it holds anything else or names a key twice."""
    try:
        values = json.loads(text, object_pairs_hook=once_each)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise LabError(f"{where} is damaged: expected a JSON object, each key once")
    return values


def read_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file that holds an object; LabError where it holds anything else."""
    return parse_json(path.read_bytes(), path)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a temporary file beside it, synced, then renamed over it. An OSError names the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNWRITTEN)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a write or a sync does not say of what
            error.filename = str(path)
        raise


def remove_unwritten(path: Path) -> None:
    """Remove what killed processes left beside a file that they were about to write; only for who alone may write it."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????{UNWRITTEN}"):
        if left.is_file() and not left.is_symlink():
            left.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys in the given order, not-a-number refused (use None)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def mark(folder: Path) -> None:
    """Say in a folder that the lab made it, so that the lab may remove it."""
    (folder / MARK).write_text(MARKED, encoding="utf-8")


def made_folder(folder: Path) -> Path:
    """A folder with its parents: marked where it was not there before, and so one that the lab may remove."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        mark(folder)
    return folder


def is_marked(folder: Path) -> bool:
    """Whether the lab made this folder; a link is none of the lab's, wherever it leads."""
    note = folder / MARK
    if folder.is_symlink() or note.is_symlink():
        return False
    with suppress(OSError):
        return note.read_bytes() == MARKED.encode()
    return False


def remove_made(folder: Path) -> None:
    """Remove a folder that the lab made; any other stays as it is. The mark goes last, so that a killed removal can go on."""
    if not is_marked(folder):
        return
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != MARK:
            entry.unlink(missing_ok=True)
    with suppress(OSError):  # something could not be removed, or came meanwhile: the mark stays beside it
        if [entry.name for entry in folder.iterdir()] == [MARK]:
            (folder / MARK).unlink()
            folder.rmdir()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears at `path` whole when the block ends without an error, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, descriptor = locked_folder(path.parent, f".{path.name}.")
    try:
        yield temporary
        os.chmod(temporary, 0o755)
        os.rename(temporary, path)
        (path / MARK).unlink(missing_ok=True)  # whoever asked for the folder says whether we may remove it
    except BaseException:
        remove_made(temporary)
        raise
    finally:
        os.close(descriptor)


def locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder that this process locks until it closes the descriptor or ends. Folders of this prefix that no process locks are
    removed."""
    remove_left(parent, prefix)
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        with suppress(FileNotFoundError):  # somebody took it for a left one before it was locked
            descriptor = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # not every network file system knows such locks: there nothing is removed either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists():
                mark(folder)
                return folder, descriptor
            os.close(descriptor)


def remove_left(parent: Path, prefix: str) -> None:
    """Remove the folders of `locked_folder` that no process locks any more."""
    for folder in parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError):  # it is held, or another user's, or gone by now
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_made(folder)
            finally:
                os.close(descriptor)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sealed(path: Path, values: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all, with the SHA-256 of its values as `seal`; `read_sealed` reads it."""
    write_json(path, {**values, "seal": values_sha256(values)})


def read_sealed(path: Path, remedy: str) -> dict[str, Any]:
    """The values that `write_sealed` wrote; LabError, which `remedy` ends, where the file holds anything else."""
    try:
        values = read_object(path)
        stated = values.pop("seal", None)
        if stated == values_sha256(values):
            return values
    except (LabError, OSError, RecursionError):
        pass
    raise LabError(f"{path} is damaged or was not written by the lab: its seal does not fit; {remedy}")


def values_sha256(values: Mapping[str, Any]) -> str:
    """The SHA-256 of an object of JSON, in whatever order its keys come."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def seal(path: Path) -> dict[str, int | str]:
    """What a file must be when it is read back: its length in bytes and its SHA-256."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def check_seal(path: Path, expected: object, remedy: str) -> None:
    """LabError where a file is not what its seal says; `remedy` ends the line."""
    if not isinstance(expected, dict) or not isinstance(expected.get("bytes"), int) or not isinstance(expected.get("sha256"), str):
        raise LabError(f"{path} has no seal (its length and SHA-256); {remedy}")
    if not path.is_file():
        raise LabError(f"{path} is missing; {remedy}")
    if path.stat().st_size != expected["bytes"]:
        raise LabError(f"{path} is damaged: expected {expected['bytes']} bytes, found {path.stat().st_size}; {remedy}")
    if (actual := sha256(path)) != expected["sha256"]:
        raise LabError(f"{path} is damaged: expected SHA-256 {expected['sha256'][:12]}..., found {actual[:12]}...; {remedy}")
