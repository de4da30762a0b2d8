"""The temporary sandbox of one task: its workspace, what its commands see beside it, and each command run contained, its output kept.

Everything is copied here first, so that commands see nothing of the suite but what is meant for them: `scripts/` always, `score/` in setup
and score commands only, `/task/prompt.md`, and the memory's socket while the agent runs.
"""

import base64
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, write_bytes, write_json
from hippo_core.protocols.paired.agents.containment import Captured, Containment, ContainmentMode, free_uid
from hippo_core.protocols.paired.agents.tasks import AgentTask
from hippo_core.protocols.paired.agents.workspace import fresh_copy, keep, open_plain, pieces, temporary, walk


@dataclass
class TaskSandbox:
    """Where a task's commands run. `secrets`: variables that only the agent gets, whose values are kept out of what is stored.
    `faults`: what of the workspace could not be kept, in words."""

    root: Path
    mode: ContainmentMode
    task: AgentTask
    secrets: Mapping[str, str]
    uid: int = field(default_factory=free_uid)
    faults: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def open(cls, suite: Path, task: AgentTask, target: Path, mode: ContainmentMode, secrets: Mapping[str, str]) -> Iterator["TaskSandbox"]:
        """A sandbox with a fresh copy of the task's fixture; at its end the workspace is copied to `target`, less what holds a secret."""
        with temporary("hippo-task.") as folder:
            folder.chmod(0o711)
            sandbox = cls(folder, mode, task, secrets)
            if task.item.fixture:
                fresh_copy(suite, task.item.fixture, sandbox.workspace)
            else:
                sandbox.workspace.mkdir()
            for name in ("scripts", "score"):
                if (suite / name).exists():
                    fresh_copy(suite, name, folder / name)
            try:
                yield sandbox
            finally:
                try:
                    sandbox.faults += keep(sandbox.workspace, target, [path for _, path in sandbox.leaks()])
                except (LabError, OSError) as error:
                    sandbox.faults.append(f"the workspace was not kept whole: {in_a_line(error)}")

    @property
    def workspace(self) -> Path:
        """The folder that commands work in."""
        return self.root / "workspace"

    def add(self, name: str, files: Mapping[str, str]) -> Path:
        """A folder of these texts, in place of an earlier one of the name."""
        folder = self.root / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
            (folder / file).chmod(0o644)
        folder.chmod(0o755)
        return folder

    def run(
        self,
        line: str,
        seconds: float,
        keep: Path,
        values: Mapping[str, str],
        extra: Mapping[str, Path] | None = None,
        stdin: bytes = b"",
        agent: bool = False,
        meanwhile: Callable[[], object] | None = None,
    ) -> Captured:
        """Run a shell line. What it wrote goes to `keep`.stdout and `keep`.stderr, how it ended to `keep`.json. `values`: for its {names};
        `extra`: folders that it sees beside the suite's."""
        visible = {name: self.root / name for name in ("scripts", *(() if agent else ("score",))) if (self.root / name).is_dir()}
        visible |= extra or {}
        with Containment.open(self.workspace, self.mode, self.task.item.limits, visible, self.task.network, self.uid) as box:
            paths = {name: box.path(name) for name in box.visible}
            filler = {**values, **paths, "workspace": box.directory, "python": box.python}
            around = dict(self.secrets) if agent else {}
            if "task" in paths:
                filler["prompt_file"] = f"{paths['task']}/prompt.md"
            if "memory" in paths:
                around["MEMORY_QUERY"] = f"{box.python} {paths['memory']}/query"
            ran = box.run(["/bin/sh", "-c", filled(line, filler)], stdin, around, seconds, meanwhile=meanwhile)
        about = asdict(ran)
        kept = {name: self._clean(about.pop(name)) for name in ("stdout", "stderr")}
        for name, content in kept.items():
            write_bytes(keep.with_name(f"{keep.name}.{name}"), content)
        write_json(keep.with_name(keep.name + ".json"), {"command": line, **about})
        return replace(ran, **kept)

    @cached_property
    def written(self) -> dict[str, list[bytes]]:
        """Each secret by its name, as it may be written."""
        return {name: forms(value) for name, value in self.secrets.items()}

    def redacted(self, text: str) -> str:
        """A text of the agent's as it is stored: no secret, and no half characters."""
        return self._clean(text.encode("utf-8", errors="backslashreplace")).decode("utf-8", errors="replace")

    def _clean(self, raw: bytes) -> bytes:
        """These bytes with the name of each secret for its value."""
        for name, some in self.written.items():
            for form in some:
                raw = raw.replace(form, f"[{name}]".encode())
        return raw

    def named(self, text: str) -> list[str]:
        """The secrets whose value a text holds."""
        raw = text.encode("utf-8", errors="surrogatepass")
        return [name for name, some in self.written.items() if any(form in raw for form in some)]

    def leaks(self) -> list[tuple[str, str]]:
        """Secrets whose value stands in the workspace: name and path. It may be in a file, a path or what a link points at."""
        leaked: list[tuple[str, str]] = []
        for path, status in walk(self.workspace) if self.secrets else ():
            texts = [os.fsencode(path), os.fsencode(path).replace(b"/", b"")]  # also spread over folders' names
            if stat.S_ISLNK(status.st_mode):
                texts.append(os.fsencode(os.readlink(self.workspace / path)))
            for name, some in self.written.items():
                within = any(form in text for text in texts for form in some)
                if not within and stat.S_ISREG(status.st_mode):
                    within = _contains_any(self.workspace / path, some)
                if within:
                    leaked.append((name, path))
        return leaked


def forms(value: str) -> list[bytes]:
    """A secret as it may be written: plain, in UTF-16, hex, URL and base64, the longest first. What a program encrypts or packs is none."""
    raw = os.fsencode(value)
    wide = [value.encode(code, errors="surrogatepass") for code in ("utf-16-le", "utf-16-be")]
    encoded = {raw, *wide, raw.hex().encode(), raw.hex().upper().encode(), quote(raw, safe="").encode()}
    for shift, first in enumerate((0, 2, 3)):  # the value may begin at any of three places; what its neighbours decide is left out
        for code in (base64.b64encode, base64.urlsafe_b64encode):
            encoded.add(code(bytes(shift) + raw)[first : (shift + len(raw)) * 8 // 6])
    return sorted(encoded, key=len, reverse=True)


def _contains_any(path: Path, some: list[bytes]) -> bool:
    """Whether a file of any size holds one of these, also over the ends of lines."""
    overlap, tail = 2 * len(some[0]), b""
    with open_plain(path) as file:
        for _, piece in pieces(file):
            window = tail + piece
            joined = window.translate(None, b"\r\n")
            if any(form in window or form in joined for form in some):
                return True
            tail = window[-overlap:]
    return False


def filled(line: str, values: Mapping[str, str]) -> str:
    """A shell line with its {names} replaced, quoted for the shell; LabError where it names a folder that it does not see."""
    for name in ("scripts", "score", "prompt_file"):
        if f"{{{name}}}" in line and name not in values:
            raise LabError(f"a command names {{{name}}}, which it does not see: {line}")
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", shlex.quote(value))
    return line
