"""Items whose work is done by commands: `command_task`, `agent_build_task`, `agent_build_sequence` (several steps in one workspace)."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hippo_core.files import LabError
from hippo_core.paired.agents.containment import Limits
from hippo_core.paired.agents.usage import Format
from hippo_core.paired.agents.workspace import relative

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]  # it becomes a folder's name
RESERVED = re.compile(r"^(PATH|HOME|USER|TMPDIR|LANG|IFS|ENV|BASH_ENV|LD_.*|PYTHON.*|MEMORY_.*)$")


class Strict(BaseModel):
    """A part of an item; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Assertion(Strict):
    """What a file must hold. One of: `contains` a text; `equals` a text, less space at its ends; at `json_path` (keys and positions joined
    by dots) the value `equals`."""

    file: str
    contains: str | None = None
    equals: Any = None
    json_path: str | None = None

    @model_validator(mode="after")
    def _one_demand(self) -> "Assertion":
        relative(self.file, "assertion")
        if (self.contains is not None) == ("equals" in self.model_fields_set):
            raise LabError(f"an assertion on {self.file!r} needs either contains or equals")
        if self.json_path is not None and self.contains is not None:
            raise LabError(f"an assertion on {self.file!r}: json_path goes with equals")
        if self.json_path is None and self.contains is None and not isinstance(self.equals, str):
            raise LabError(f"an assertion on {self.file!r}: equals without json_path is a text")
        return self


class Step(Strict):
    """What is asked of the agent in one go, and what must hold afterwards."""

    id: Name
    prompt: str
    memory_questions: tuple[str, ...] = ()  # named q1, q2, ...; each must be asked of the memory where there is one
    score_commands: tuple[str, ...] = ()  # each must end with 0
    required_files: tuple[str, ...] = ()
    forbidden_files: tuple[str, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    timeout: float = Field(900.0, gt=0, le=86_400)  # seconds, of each command

    @field_validator("required_files", "forbidden_files")
    @classmethod
    def _below(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            relative(path, "file")
        return paths


class Task(Strict):
    """An agent's item. Commands are shell lines; in them {workspace}, {scripts}, {prompt_file}, {python}, {condition} and {step} are
    replaced, quoted. The agent's command gets the prompt on its standard input, too.

    `scripts`: a folder of the suite that all commands see; `score_scripts`: one that only score commands see, as {score_scripts}.
    `environment`: names of variables that the caller may pass. `token_usage`: the format in which the agent's output states its tokens; the
    item fails where it does not.
    """

    id: Name
    eval_type: Literal["command_task", "agent_build_task", "agent_build_sequence"]
    agent_command: str
    fixture: str | None = None
    scripts: str | None = None
    score_scripts: str | None = None
    setup_commands: tuple[str, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)
    expected_exit_code: int = 0
    environment: tuple[str, ...] = ()
    token_usage: Format | None = None
    network: bool = False
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()

    @field_validator("fixture", "scripts", "score_scripts")
    @classmethod
    def _below(cls, path: str | None) -> str | None:
        return path and str(relative(path, "folder"))

    @field_validator("environment")
    @classmethod
    def _harmless(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [name for name in names if RESERVED.match(name) or not name.isidentifier()]:
            raise LabError(f"environment: {', '.join(wrong)} cannot be passed to an agent")
        return names

    @field_validator("steps")
    @classmethod
    def _apart(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if len({step.id for step in steps}) < len(steps):
            raise LabError("two steps have the same id")
        return steps


def parse(item: dict[str, Any], where: str = "item") -> Task:
    """A task from an item's JSON object; a `command_task` and an `agent_build_task` state their one step's fields themselves. LabError, in
    one line that begins with `where`, for anything else."""
    values = dict(item)
    try:
        if values.get("eval_type") == "command_task":
            values["agent_command"] = values.pop("command", "")
        if values.get("eval_type") != "agent_build_sequence":
            if "steps" in values:
                raise LabError("steps are for agent_build_sequence")
            values["steps"] = [{"id": "task", **{key: values.pop(key) for key in set(values) & (set(Step.model_fields) - {"id"})}}]
        return Task.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise LabError(f"{where}: {place + ': ' if place else ''}{first['msg']}") from None
    except LabError as error:
        raise LabError(f"{where}: {error}") from None
