"""The items of a paired suite: one model a type, told apart by `type`. Unknown keys and wrong types are errors."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


def leaves(path: str) -> bool:
    """Whether a path is no name of something below a folder."""
    parts = Path(path).parts
    return Path(path).is_absolute() or ".." in parts or not parts or "\0" in path


def human_note_of(world: str) -> str:
    """The file that tells about a world, from the suite's folder."""
    return f"human_notes/{world}.md"


def _of_workspace(path: str) -> str:
    if leaves(path):
        raise ValueError("expected a path within the workspace, without '..'; name it from the workspace's root")
    return path


def _plain_world(world: str) -> str:
    if leaves(human_note_of(world)):
        raise ValueError("expected a world's name without '..', since it names its human note's file; call it by a plain word")
    return world


def _harmless(name: str) -> str:
    if RESERVED.fullmatch(name) or not name.isidentifier():
        raise ValueError(f"{name} cannot be passed to an agent")
    return name


def _blind(command: str) -> str:
    if "{condition}" in command:
        raise ValueError("an agent may not read its condition; score_commands alone may name {condition}")
    return command


def _compiled(selector: str) -> str:
    import soupsieve  # here, since few suites have pages

    try:
        soupsieve.compile(selector)
    except (ValueError, NotImplementedError, soupsieve.SelectorSyntaxError) as error:
        raise ValueError(f"expected a CSS selector, as nav > a[href]; {str(error).splitlines()[0]}") from None
    return selector


RESERVED = re.compile(r"PATH|HOME|USER|TMPDIR|LANG|IFS|ENV|BASH_ENV|LD_.*|PYTHON.*|MEMORY_.*")  # variables that the harness itself sets
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]  # a plain name: it becomes part of paths
Inside = Annotated[Text, AfterValidator(_of_workspace)]
World = Annotated[Text, AfterValidator(_plain_world)]
Command = Annotated[Text, AfterValidator(_blind)]
Variable = Annotated[Text, AfterValidator(_harmless)]
Assertion = Text | Annotated[list[Text], Field(min_length=1)]  # words that must stand in the answer; of a list any one of them
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1000)]
Positive = Annotated[int, Field(ge=1)]
Format = Literal["plain", "claude", "codex", "gemini"]  # in which an agent's output states its tokens


class StrictModel(BaseModel):
    """What all parts of a suite share."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ItemBase(StrictModel):
    """What every item has. `world`: the notes that it may draw on, and its cluster; `tags`: groups that a comparison reports apart."""

    id: Id
    world: World = "main"
    tags: list[Text] = []


class AskingItem(ItemBase):
    """What is asked of a memory, which brings `top_k` notes."""

    question: Text
    top_k: Count = 5


class Retrieval(AskingItem):
    """Are the expected notes among the first `top_k`? A right one covers all expected ids, tags and files."""

    type: Literal["retrieval"]
    expected_notes: list[Text] = []
    expected_tags: list[Text] = []
    expected_files: list[Text] = []


class GroundedAnswer(AskingItem):
    """Does the answer hold every required assertion and no forbidden one?"""

    type: Literal["grounded_answer"]
    expected_notes: list[Text] = []
    required_assertions: Annotated[list[Assertion], Field(min_length=1)]
    forbidden_assertions: list[Assertion] = []


class AdversarialStale(AskingItem):
    """`prefer_fresh`: the answer holds what a later note says and not what it replaces; `refuse`: no note answers, "unknown" is right."""

    type: Literal["adversarial_stale"]
    expect: Literal["refuse", "prefer_fresh"]
    stale_notes: list[Text] = []
    fresh_notes: list[Text] = []
    stale_assertions: list[Assertion] = []
    fresh_assertions: list[Assertion] = []

    @model_validator(mode="after")
    def _says_what_is_fresh(self) -> "AdversarialStale":
        if self.expect == "prefer_fresh" and not self.fresh_assertions:
            raise ValueError("expected fresh_assertions where expect is prefer_fresh; say what the later note says")
        return self


class ResumeQuality(ItemBase):
    """Does a briefing name every required topic and no forbidden one?"""

    type: Literal["resume_quality"]
    prompt: Text
    top_k: Count = 20
    expected_notes: list[Text] = []
    required_topics: Annotated[list[Assertion], Field(min_length=1)]
    forbidden_topics: list[Assertion] = []


class Content(StrictModel):
    """What a file of the workspace must hold: it `contains` these words; or `equals` this text, less space at its ends; or `equals` this
    value at `json_path`, keys and positions joined by dots."""

    file: Inside
    contains: Text | None = None
    equals: Any = None
    json_path: Text | None = None

    @model_validator(mode="after")
    def _one_demand(self) -> "Content":
        if (self.contains is not None) == ("equals" in self.model_fields_set):
            raise ValueError("expected either contains or equals")
        if self.json_path is not None and self.contains is not None:
            raise ValueError("json_path goes with equals")
        if self.json_path is None and self.contains is None and not isinstance(self.equals, str):
            raise ValueError("equals without json_path is a text")
        return self


class PageElement(StrictModel):
    """What a page of the workspace must hold (agents/pages.py says what can be judged): elements that `select` finds, a CSS selector, whose
    text holds `text`, for which `style` is declared, and where a script `listens` for these events by code that holds these words. `count`:
    exactly so many of them; null: one at least."""

    file: Inside = "index.html"
    select: Annotated[Text, AfterValidator(_compiled)]
    text: str = ""
    style: dict[Text, Text] = {}
    listens: dict[Text, list[Text]] = {}
    count: Annotated[int, Field(ge=0)] | None = None


class Limits(StrictModel):
    """Limits of the commands of one item; null: none. Sizes in megabytes."""

    cpu: Positive | None = None  # seconds of the processor, of each process
    processes: Positive | None = 128  # at a time, threads counted
    memory: Positive | None = 4096  # address space of each process
    resident: Positive | None = 4096  # what all of them hold together
    file: Positive | None = 256  # each file that is written
    open_files: Positive | None = 1024
    scratch: Positive = 256  # /tmp, and the home folder
    output: Annotated[float, Field(gt=0, le=64)] = 1.0  # of each stream what is kept; the rest is read and cut


class Contained(StrictModel):
    """How commands run. `environment`: variables that the caller may pass to the agent; `network`: whether they reach it."""

    limits: Limits = Limits()
    environment: list[Variable] = []
    network: bool = False
    timeout_s: Seconds = 900.0


class Built(StrictModel):
    """What is asked of a workspace after an agent has worked in it. `memory_questions`: what it must have asked the memory for."""

    memory_questions: list[Text] = []
    score_commands: list[Text] = []
    required_files: list[Inside] = []
    forbidden_files: list[Inside] = []
    required_content: list[Content] = []
    required_elements: list[PageElement] = []


class AgentStep(Built):
    """One step of a sequence; its own time limit where it names one."""

    id: Id
    prompt: Text
    tags: list[Text] = []
    timeout_s: Seconds | None = None


class CommandTask(ItemBase, Contained):
    """Does a command end with the expected exit status?"""

    type: Literal["command_task"]
    prompt: Text
    command: Command
    expected_exit_code: int = 0
    fixture: str = ""

    @property
    def steps(self) -> list[AgentStep]:
        """Its one step."""
        return [AgentStep(id="task", prompt=self.prompt)]


class AgentItem(ItemBase, Contained):
    """An agent works in a fresh copy of a fixture. Commands may name {workspace}, {scripts}, {prompt_file}, {python}, {step}; score and
    setup commands {score}, too, and score commands {condition}. `usage_format`: how the agent's output states its tokens."""

    fixture: Text
    agent_command: Command
    setup_commands: list[Command] = []
    token_usage: Literal["required", "optional"] = "optional"
    usage_format: Format = "plain"


class AgentBuildTask(AgentItem, Built):
    """One thing is asked of the agent."""

    type: Literal["agent_build_task"]
    prompt: Text

    @property
    def steps(self) -> list[AgentStep]:
        """Its one step."""
        return [AgentStep(id="task", prompt=self.prompt, **{name: getattr(self, name) for name in Built.model_fields})]


class AgentBuildSequence(AgentItem):
    """Steps in one workspace, one after another."""

    type: Literal["agent_build_sequence"]
    steps: Annotated[list[AgentStep], Field(min_length=1)]

    @model_validator(mode="after")
    def _steps_differ(self) -> "AgentBuildSequence":
        if len({step.id for step in self.steps}) < len(self.steps):
            raise ValueError("two steps have the same id")
        return self


Asking = Retrieval | GroundedAnswer | AdversarialStale | ResumeQuality
Shell = CommandTask | AgentBuildTask | AgentBuildSequence
Item = Asking | Shell
ITEMS: dict[str, type[Item]] = {
    "retrieval": Retrieval,
    "grounded_answer": GroundedAnswer,
    "adversarial_stale": AdversarialStale,
    "resume_quality": ResumeQuality,
    "command_task": CommandTask,
    "agent_build_task": AgentBuildTask,
    "agent_build_sequence": AgentBuildSequence,
}
