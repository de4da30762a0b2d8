"""Items whose work is done by commands, in one form (command and build tasks are sequences of one step), and what becomes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hippo_core.protocols.paired.agents.usage import Format, Usage
from hippo_core.protocols.paired.items import AgentBuildSequence, AgentStep, Built, CommandTask, Shell

NOT_JUDGED = "not judged:"  # how the answer of an item's row begins where its agent broke the item


@dataclass(frozen=True)
class AgentTask:
    """An item, its agent's command, and its steps; `usage`: the format in which the agent must state its tokens, None where it need not."""

    item: Shell
    command: str
    steps: tuple[AgentStep, ...]
    setup_commands: tuple[str, ...] = ()
    status: int = 0
    usage: Format | None = None
    usage_required: bool = False
    environment: tuple[str, ...] = ()
    network: bool = False
    wrapper: Mapping[str, str] = field(default_factory=dict)  # files beside the prompt, which a wrapped agent is called by

    def seconds(self, step: AgentStep) -> float:
        """The time of each command of a step."""
        return step.timeout_s or self.item.timeout_s


def task_of(item: Shell) -> AgentTask:
    """The task that an item is."""
    if isinstance(item, CommandTask):
        return AgentTask(item, item.command, (AgentStep(id="task", prompt=item.prompt),), (), item.expected_exit_code, network=item.network)
    if isinstance(item, AgentBuildSequence):
        steps = tuple(item.steps)
    else:
        steps = (AgentStep(id="task", prompt=item.prompt, **{field: getattr(item, field) for field in Built.model_fields}),)
    return AgentTask(
        item,
        item.agent_command,
        steps,
        tuple(item.setup_commands),
        usage=item.usage_format,
        usage_required=item.token_usage == "required",
        environment=tuple(item.environment),
        network=item.network,
    )


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
    skipped: bool = False
    usage: Usage | None = None
    containment: str = ""
    sub_results: tuple["ItemResult", ...] = ()
    fault: bool = False
