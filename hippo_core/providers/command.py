"""Models behind a command line. How each command is called is one entry of a table; the prompt goes to its standard input alone."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hippo_core.errors import LabError, unknown
from hippo_core.providers import tokens
from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.process import run
from hippo_core.providers.retry import BUSY_WORDS, CallFailed, RetryPolicy

# of the caller's environment, what every command is given: where it finds itself, its home, its words, its way through a proxy
ALLOWED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR"),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"),
)


@dataclass(frozen=True)
class Command:
    """How a command is called. None of them takes a temperature or a limit of tokens on the command line."""

    argv: tuple[str, ...]  # its words; it reads the prompt from its standard input
    model: str  # the option that names a model
    parse: Callable[[str], Completion]  # from its output to an answer; CallFailed where it holds none
    allowed: tuple[str, ...] = ()  # names of the environment that it is given besides `ALLOWED`


COMMANDS: Mapping[str, Command] = {
    "claude": Command(
        ("claude", "--print", "--output-format", "json", "--max-turns", "1"),
        "--model",
        tokens.claude,
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    "gemini": Command(
        ("gemini", "--output-format", "json"),
        "--model",
        tokens.gemini,
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENAI_USE_VERTEXAI"),
    ),
    "codex": Command(
        ("codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "-"),
        "--model",
        tokens.codex,
        ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"),
    ),
}


class CommandProvider(Provider):
    """A command of the table, with the model that it takes by itself or the one named. LabError where the command is not installed."""

    takes_temperature = False

    def __init__(self, name: str, model: str = "", policy: RetryPolicy | None = None, check: bool = True) -> None:
        super().__init__(policy)
        if name not in COMMANDS:
            raise unknown("command", name, COMMANDS)
        if model.startswith("-"):
            raise LabError(f"a model of {name} is a name, got the option {model!r}")
        self.name, self.model, self.command = name, model, COMMANDS[name]
        if check and not shutil.which(self.command.argv[0]):
            raise LabError(f"the command {self.command.argv[0]} is not on the PATH; install it, or choose another provider")

    @property
    def argv(self) -> list[str]:
        """The words of the call; options stand before a final `-`."""
        words = list(self.command.argv)
        end = len(words) - (words[-1] == "-")
        return words[:end] + ([self.command.model, self.model] if self.model else []) + words[end:]

    @property
    def identity(self) -> str:
        """`claude`, or `claude:MODEL`."""
        return f"{self.name}:{self.model}" if self.model else self.name

    def describe(self) -> str:
        """The command as it is called."""
        return " ".join(self.argv)

    def call(self, prompt: str, max_tokens: int, temperature: float) -> Completion:
        """Run the command once; neither limit nor temperature reaches it."""
        environment = {name: os.environ[name] for name in (*ALLOWED, *self.command.allowed) if name in os.environ}
        try:
            ran = run(self.argv, prompt, environment, self.policy.timeout)
            errors = " ".join(ran.errors.decode(errors="replace").split())[-200:]
            if ran.status:
                what = f"killed by signal {-ran.status}" if ran.status < 0 else f"exit status {ran.status}"
                message = errors or " ".join(ran.output.decode(errors="replace").split())[-200:] or "it says nothing"
                raise CallFailed(f"{what}: {message}", retry=ran.status < 0 or bool(BUSY_WORDS.search(message)))
            return self.command.parse(tokens.decoded(ran.output, "its output"))
        except CallFailed as error:
            raise CallFailed(f"{self.command.argv[0]}: {error}", error.retry, error.after) from None
