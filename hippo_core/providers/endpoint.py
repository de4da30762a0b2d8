"""Models behind an HTTP endpoint: OpenAI-compatible chat completions, and Ollama's own."""

import json
import os
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hippo_core.errors import LabError
from hippo_core.providers import tokens
from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.retry import BUSY, CallFailed, RetryPolicy, retry_after

if TYPE_CHECKING:
    import httpx

MOST = 8 * 2**20  # bytes of a reply
KEY = re.compile(r"[!-~]+")
HERE = ("localhost", "127.0.0.1", "::1")
KINDS = {  # path of a question, usual URL, and how a reply is read
    "openai": ("/chat/completions", "https://api.openai.com/v1", tokens.openai),
    "ollama": ("/api/chat", "http://localhost:11434", tokens.ollama),
}


class EndpointProvider(Provider):
    """A model behind a URL, of one of KINDS. `key_env` names the variable that holds the key. The key is sent to that URL alone, over TLS
    or within this machine, and stands in no record and in no error."""

    def __init__(
        self, kind: str, model: str, url: str = "", key_env: str = "", policy: RetryPolicy | None = None, check: bool = True
    ) -> None:
        super().__init__(policy)
        path, usual_url, self.parse = KINDS[kind]
        if kind == "openai" and url in ("", usual_url) and not key_env:
            key_env = "OPENAI_API_KEY"
        url = url or usual_url
        try:
            parts = urlsplit(url)
            _ = parts.port  # which is read only when it is asked for
        except ValueError as error:
            raise LabError(f"an endpoint is http://HOST/PATH or https://HOST/PATH, got {url!r}: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise LabError(
                f"an endpoint is http://HOST/PATH or https://HOST/PATH without user or query, got {parts.scheme}://{parts.hostname}"
            )
        if not model:
            raise LabError(f"an endpoint needs the name of a model, as in {kind}:MODEL@{url}")
        if key_env and parts.scheme == "http" and parts.hostname not in HERE:
            raise LabError(f"the key of {key_env} would go to {parts.hostname} unencrypted; use https")
        if check and key_env and not KEY.fullmatch(os.environ.get(key_env, "")):  # a key that is none would stand in an error of httpx
            raise LabError(f"the variable {key_env} holds no key for {url}: expected letters, digits and signs without a space")
        self.kind, self.model, self.base, self.key_env = kind, model, url.rstrip("/"), key_env
        self.url = self.base + path

    @property
    def identity(self) -> str:
        """`openai:MODEL@URL`."""
        return f"{self.kind}:{self.model}@{self.base}"

    def describe(self) -> str:
        """The method, the URL and the model."""
        return f"POST {self.url} (model {self.model})"

    def body(self, prompt: str, max_tokens: int, temperature: float) -> dict[str, Any]:
        """What is sent."""
        sent = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        if self.kind == "ollama":
            return sent | {"stream": False, "options": {"temperature": temperature, "num_predict": max_tokens}}
        return sent | {"max_tokens": max_tokens, "temperature": temperature}

    def call(self, prompt: str, max_tokens: int, temperature: float) -> Completion:
        """One request; redirects are not followed."""
        import httpx

        headers = {"Authorization": f"Bearer {os.environ[self.key_env]}"} if self.key_env else {}
        deadline = time.monotonic() + self.policy.timeout
        try:
            with (
                httpx.Client(timeout=self.policy.timeout) as client,
                client.stream("POST", self.url, json=self.body(prompt, max_tokens, temperature), headers=headers) as reply,
            ):
                text = tokens.decoded(_content(reply, deadline, self.policy.timeout), "the reply")
                if reply.status_code != 200:
                    raise CallFailed(
                        f"status {reply.status_code}: {_error_text(text)}",
                        reply.status_code in BUSY,
                        retry_after(reply.headers.get("Retry-After")),
                    )
                return self.parse(text)
        except httpx.TimeoutException:
            raise CallFailed(f"{self.url}: no answer within {self.policy.timeout:g} s", retry=True) from None
        except httpx.HTTPError as error:
            raise CallFailed(f"{self.url}: {error or type(error).__name__}", retry=True) from None
        except CallFailed as error:
            raise CallFailed(f"{self.url}: {error}", error.retry, error.after) from None


def _content(reply: "httpx.Response", deadline: float, timeout: float) -> bytes:
    """The whole reply; httpx limits the time between two pieces, this the time of all."""
    content = bytearray()
    for piece in reply.iter_bytes():
        content += piece
        if len(content) > MOST:
            raise CallFailed(f"more than {MOST:,} bytes of reply")
        if time.monotonic() > deadline:
            raise CallFailed(f"no whole answer within {timeout:g} s", retry=True)
    return bytes(content)


def _error_text(text: str) -> str:
    """What a reply that is no success says, in a line."""
    try:
        text = json.dumps(json.loads(text))
    except ValueError:
        text = f"HTML {text}" if text.lstrip()[:1] == "<" else text
    return " ".join(text.split())[:200] or "an empty reply"
