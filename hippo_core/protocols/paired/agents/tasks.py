"""How an item's work is done by commands, and what becomes of it.

Three real agents may stand in for an item's own command (`wrappers/NAME.sh`): each reads the prompt from its standard input and prints its
token usage. It must be installed where contained commands see it (/usr, /opt), gets its key by a variable that the caller passes, and
reaches the network. Its home folder is empty before and gone afterwards: no history, no settings and no login reach it or are kept.

Tokens are read out of what an agent printed, cached ones once: `input` holds all tokens that the model read, those from the cache among
them, `cached` says how many those were. So total = input + output. Codex and Gemini report cached tokens within the input, Claude beside
it: there they are added. Where nothing can be read it is None, and an item that needs it fails.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core.errors import unknown
from hippo_core.protocols.paired.items import CommandTask, Format, Shell

NOT_JUDGED = "not judged:"  # how the answer of an item's row begins where its agent broke the item
MOST = 10**12  # tokens; a larger number is none, and could not be read back from a table
WRAPPERS = Path(__file__).with_name("wrappers")
AGENTS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}  # the variable of its key


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


def task_of(item: Shell, agent: str = "") -> AgentTask:
    """The task that an item is. `agent`: a real one in place of the item's own, which must state its tokens; a plain command stays."""
    if isinstance(item, CommandTask):
        return AgentTask(item, item.command, item.expected_exit_code, network=item.network)
    if not agent:
        required = item.token_usage == "required"
        return AgentTask(item, item.agent_command, 0, item.usage_format, required, tuple(item.environment), item.network)
    if agent not in AGENTS:
        raise unknown("agent", agent, AGENTS)
    form: Any = agent  # in which its output states tokens
    script = (WRAPPERS / f"{agent}.sh").read_text(encoding="utf-8")
    return AgentTask(item, "sh {task}/agent.sh", 0, form, True, (AGENTS[agent],), True, {"agent.sh": script})


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
    text, usages = stdout.decode("utf-8", errors="replace"), []
    for part in (text, *text.splitlines()):  # one JSON document, or one a line
        if not part.lstrip().startswith("{"):
            continue
        try:
            usage = READERS[form](json.loads(part))
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            continue
        numbers = (usage.input, usage.output, usage.cached)
        whole = all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MOST for number in numbers)
        if whole and usage.cached <= usage.input and usage.total:
            usages.append(usage)
    if form == "codex":
        return max(usages, key=lambda usage: usage.total, default=None)
    return usages[-1] if usages else None


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
