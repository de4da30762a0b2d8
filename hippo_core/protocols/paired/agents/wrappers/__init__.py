"""Command lines of real agents in place of an item's own: each reads the prompt from its standard input and prints its token usage.

An agent must be installed where contained commands see it (/usr, /opt), gets its key by a variable that the caller passes, and reaches the
network. Its home folder is empty before and gone afterwards, so no history, no settings and no stored login reach it or are kept.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hippo_core.errors import unknown
from hippo_core.protocols.paired.agents.tasks import AgentTask
from hippo_core.protocols.paired.agents.usage import Format

SCRIPTS = Path(__file__).parent


AGENTS: dict[Format, str] = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}  # the variable of its key


def wrapped(task: AgentTask, name: str) -> AgentTask:
    """The task with a real agent; itself where `name` is empty or it is a plain command. Its token usage is then required."""
    if not name or task.item.type == "command_task":
        return task
    if name not in AGENTS:
        raise unknown("agent", name, AGENTS)
    form: Any = name  # in which its output states tokens
    script = (SCRIPTS / f"{name}.sh").read_text(encoding="utf-8")
    return replace(
        task,
        command="sh {task}/agent.sh",
        wrapper={"agent.sh": script},
        usage=form,
        usage_required=True,
        environment=(AGENTS[form],),
        network=True,
    )
