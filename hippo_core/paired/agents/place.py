"""The temporary place of one task: its workspace, what its commands see beside it, and each command run contained, its output kept.

Everything is copied here first, so that commands see nothing of the suite but what is meant for them: `scripts/` always, `score/` in setup
and score commands only, `/task/prompt.md`, and the memory's socket while the agent runs.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hippo_core.files import LabError, write_bytes, write_json
from hippo_core.paired.agents.capture import Captured
from hippo_core.paired.agents.containment import Containment, Way, free_uid
from hippo_core.paired.agents.limits import Limits
from hippo_core.paired.agents.workspace import fresh_copy, names, read


@dataclass
class Place:
    """Where a task's commands run. `secrets`: variables that only the agent gets, whose values are kept out of what is stored."""

    root: Path
    way: Way
    limits: Limits
    network: bool
    secrets: Mapping[str, str]
    uid: int = field(default_factory=free_uid)

    @classmethod
    @contextmanager
    def open(
        cls, suite: Path, fixture: str, keep: Path, way: Way, limits: Limits, network: bool, secrets: Mapping[str, str]
    ) -> Iterator["Place"]:
        """A place with a fresh copy of the suite's fixture; at its end the workspace is copied to the folder `keep`."""
        with tempfile.TemporaryDirectory(prefix="hippo-task.") as folder:
            place = cls(Path(folder), way, limits, network, secrets)
            place.root.chmod(0o711)
            if fixture:
                fresh_copy(suite, fixture, place.workspace)
            else:
                place.workspace.mkdir()
            for name in ("scripts", "score"):
                if (suite / name).exists():
                    fresh_copy(suite, name, place.root / name)
            try:
                yield place
            finally:
                with suppress(OSError, shutil.Error):  # folders that the agent closed, where we are no root
                    shutil.copytree(place.workspace, keep, symlinks=True, copy_function=_copy_plain)

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
        brought = {name: self.root / name for name in ("scripts", *(() if agent else ("score",))) if (self.root / name).is_dir()}
        with Containment.open(self.workspace, self.way, self.limits, brought | dict(extra or {}), self.network, self.uid) as box:
            paths = {name: box.path(name) for name in box.visible}
            filler = {**values, **paths, "workspace": box.directory, "python": box.python}
            around = {"MEMORY_CONDITION": values["condition"]}
            if "task" in paths:
                filler["prompt_file"] = f"{paths['task']}/prompt.md"
            if "memory" in paths:
                around["MEMORY_QUERY"] = f"{box.python} {paths['memory']}/query"
            ran = box.run(
                ["/bin/sh", "-c", filled(line, filler)], stdin, around | dict(self.secrets if agent else {}), seconds, meanwhile=meanwhile
            )
        return self._kept(line, ran, keep)

    def _kept(self, line: str, ran: Captured, keep: Path) -> Captured:
        out, err = ran.stdout, ran.stderr
        for name, value in self.secrets.items():
            out, err = (text.replace(value.encode(), f"[{name}]".encode()) for text in (out, err))
        write_bytes(keep.with_name(keep.name + ".stdout"), out)
        write_bytes(keep.with_name(keep.name + ".stderr"), err)
        about = {name: value for name, value in asdict(ran).items() if name not in ("stdout", "stderr")}
        write_json(keep.with_name(keep.name + ".json"), {"command": line, **about})
        return replace(ran, stdout=out, stderr=err)

    def leaks(self) -> list[tuple[str, str]]:
        """Secrets whose value stands in a file of the workspace: name and path."""
        found = []
        for path in names(self.workspace) if self.secrets else ():
            with suppress(LabError):
                content = read(self.workspace, path)
                found += [(name, path) for name, value in self.secrets.items() if value.encode() in content]
        return found


def filled(line: str, values: Mapping[str, str]) -> str:
    """A shell line with its {names} replaced, quoted for the shell; LabError where it names a folder that it does not see."""
    for name in ("scripts", "score", "prompt_file"):
        if f"{{{name}}}" in line and name not in values:
            raise LabError(f"a command names {{{name}}}, which it does not see: {line}")
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", shlex.quote(value))
    return line


def _copy_plain(source: str, target: str) -> None:
    """Copy a plain file; pipes and sockets that an agent left are not kept."""
    if os.path.isfile(source):
        shutil.copyfile(source, target, follow_symlinks=False)
