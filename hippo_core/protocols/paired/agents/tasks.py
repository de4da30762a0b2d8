"""Items whose work is done by commands, in one form: `command_task` and `agent_build_task` are sequences of one step."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.usage import Format
from hippo_core.protocols.paired.agents.workspace import relative
from hippo_core.protocols.paired.items import AgentBuildSequence, AgentStep, Built, CommandTask, Shell


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
    """The task that an item is; LabError for a path that leads out of the workspace."""
    if isinstance(item, CommandTask):
        return AgentTask(item, item.command, (AgentStep(id="task", prompt=item.prompt),), (), item.expected_exit_code, network=item.network)
    if isinstance(item, AgentBuildSequence):
        steps = tuple(item.steps)
    else:
        steps = (AgentStep(id="task", prompt=item.prompt, **{field: getattr(item, field) for field in Built.model_fields}),)
    for step in steps:
        for path in (*step.required_files, *step.forbidden_files, *(one.file for one in step.required_content)):
            relative(path, f"item {item.id}, step {step.id}")
    if len({step.id for step in steps}) < len(steps):
        raise LabError(f"item {item.id}: two steps have the same id")
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
