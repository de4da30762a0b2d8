"""How an item's work is done by commands, and what becomes of it.

Three real agents may stand in for an item's own command (`wrappers/NAME.sh`): each gets the prompt on its standard input and prints its
final message and its token usage; a wrapper ends where the output has not grown since (`watch.sh`). The agent must be installed where
contained commands see it (/usr, /opt), gets its key by a variable that the caller passes, and reaches the network. Its home folder is empty
before and gone afterwards: no history, no settings and no login reach it or are kept.

Tokens are read out of what an agent printed, cached ones once: `input` holds all tokens that the model read, those from the cache among
them, `cached` says how many those were. So total = input + output. Codex and Gemini report cached tokens within the input, Claude beside
it: there they are added. Where nothing can be read it is None, and an item that needs it fails.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.paired.items import CommandTask, Format, Shell

NOT_JUDGED = "not judged:"  # how the answer of an item's row begins where its agent broke the item
MOST = 10**12  # tokens; a larger number is none, and could not be read back from a table
WRAPPERS = Path(__file__).with_name("wrappers")
AGENTS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}  # the variable of its key
SANDBOXES = {  # an agent's own, beside the harness's containment; the first unless another is named
    "claude": ("bypassPermissions", "acceptEdits", "default", "plan"),
    "codex": ("danger-full-access", "workspace-write", "read-only"),
    "gemini": ("yolo", "auto_edit", "default"),
}


@dataclass(frozen=True)
class AgentTask:
    """An item and its agent's command; `usage`: the format in which the agent must state its tokens, None where it need not."""

    item: Shell
    command: str
    status: int = 0
    usage: Format | None = None
    usage_required: bool = False
    environment: tuple[str, ...] = ()
    network: bool = False
    wrapper: Mapping[str, str] = field(default_factory=dict)  # files beside the prompt, which a wrapped agent is called by


def task_of(item: Shell, agent: str = "", sandbox: str = "") -> AgentTask:
    """The task that an item is. `agent`: a real one in place of the item's own, which must state its tokens; a plain command stays.
    `sandbox`: that agent's own one (`SANDBOXES`). LabError where there is no such agent or sandbox."""
    if agent and agent not in AGENTS:
        raise unknown("agent", agent, AGENTS)
    if sandbox and sandbox not in SANDBOXES.get(agent, ()):
        raise (
            unknown(f"sandbox of {agent}", sandbox, SANDBOXES[agent]) if agent else LabError("a sandbox is an agent's own; name its agent")
        )
    if isinstance(item, CommandTask):
        return AgentTask(item, item.command, item.expected_exit_code, network=item.network)
    if not agent:
        required = item.token_usage == "required"
        return AgentTask(item, item.agent_command, 0, item.usage_format, required, tuple(item.environment), item.network)
    form: Any = agent  # in which its output states tokens
    parts = [f"SANDBOX={sandbox or SANDBOXES[agent][0]}\n", *((WRAPPERS / f"{name}.sh").read_text("utf-8") for name in ("watch", agent))]
    return AgentTask(item, "sh {task}/agent.sh", 0, form, True, (AGENTS[agent],), True, {"agent.sh": "".join(parts)})


@dataclass(frozen=True)
class Usage:
    """Tokens: read (the cached ones among them), written, and how many of those read came from the cache."""

    input: int
    output: int
    cached: int = 0

    @property
    def total(self) -> int:
        """Read and written."""
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached)


def parse(stdout: bytes, form: Format) -> Usage | None:
    """The usage that a command's output states last, for Codex the largest; None where it states none that makes sense."""
    usages = []
    for usage in _stated(stdout, READERS[form]):
        numbers = (usage.input, usage.output, usage.cached)
        whole = all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MOST for number in numbers)
        if whole and usage.cached <= usage.input and usage.total:
            usages.append(usage)
    if form == "codex":
        return max(usages, key=lambda usage: usage.total, default=None)
    return usages[-1] if usages else None


def final_message(stdout: bytes, form: Format) -> str:
    """What a command's output states last as its message; "" where it states none."""
    return next((text for text in reversed(list(_stated(stdout, MESSAGES[form]))) if isinstance(text, str)), "")


def _stated(stdout: bytes, reader: Callable[[Any], Any]) -> Iterator[Any]:
    """What a reader gets from each JSON document of an output: the whole of it, or a line."""
    text = stdout.decode("utf-8", errors="replace")
    for part in (text, *text.splitlines()):
        if part.lstrip().startswith("{"):
            with suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
                yield reader(json.loads(part))


def _plain(event: dict[str, Any]) -> Usage:
    """`{"tokens": {"input": n, "output": n, "cached": n}}`"""
    tokens = event["tokens"]
    return Usage(tokens["input"], tokens["output"], tokens.get("cached", 0))


def _claude(event: dict[str, Any]) -> Usage:
    """`claude -p --output-format json`: the cache's reads and writes stand beside the input."""
    usage = event["usage"]
    cached = usage.get("cache_read_input_tokens", 0)
    return Usage(usage["input_tokens"] + cached + usage.get("cache_creation_input_tokens", 0), usage["output_tokens"], cached)


def _codex(event: dict[str, Any]) -> Usage:
    """`codex exec --json`: events, one a line; those of finished turns hold the usage."""
    usage = event["usage"]
    return Usage(usage["input_tokens"], usage["output_tokens"], usage.get("cached_input_tokens", 0))


def _gemini(event: dict[str, Any]) -> Usage:
    """`gemini --output-format json`: by model; what it thought counts as written."""
    tokens = [model["tokens"] for model in event["stats"]["models"].values()]
    written = sum(counts["candidates"] + counts.get("thoughts", 0) for counts in tokens)
    return Usage(sum(counts["prompt"] for counts in tokens), written, sum(counts.get("cached", 0) for counts in tokens))


READERS: dict[Format, Callable[[dict[str, Any]], Usage]] = {"plain": _plain, "claude": _claude, "codex": _codex, "gemini": _gemini}
MESSAGES: dict[Format, Callable[[dict[str, Any]], Any]] = {
    "plain": lambda event: event["message"],
    "claude": lambda event: event["result"],
    "codex": lambda event: event["item"]["text"] if event["item"]["type"] == "agent_message" else None,
    "gemini": lambda event: event["response"],
}


@dataclass(frozen=True)
class ItemResult:
    """`notes` say why it failed; empty where it succeeded. `fault`: it could not be judged, by what its agent left or did.

    `usage` of an item is the sum over its steps: count one or the other.

    `scores`, of an item sums over its steps: score_commands_passed of score_commands, assertions_passed of assertions (files and contents),
    memory_queries_verified of memory_queries_required, memory_queries (all that the memory was asked), steps_passed of steps.
    """

    item_id: str
    type: str
    condition: str
    repeat: int
    success: bool
    scores: Mapping[str, float]
    duration_ms: float
    notes: tuple[str, ...]
    usage: Usage | None = None
    containment: str = ""
    sub_results: tuple["ItemResult", ...] = ()
    fault: bool = False
