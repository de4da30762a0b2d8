"""lm-evaluation-harness on a model of the lab, where it is installed: its tasks, prompts and metrics on our weights; a line a metric.

python -m benchmarks.continual.lm_harness MODEL TASK... [--limit 100] [--include FOLDER]

MODEL is whatever `model=` takes: a name of params/models (with its adapter merged in) or a folder in Hugging Face's format. `--include`
names a folder with tasks of one's own, as YAML; the harness's own tasks fetch their data by the network.
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hippo_core.errors import LabError
from hippo_core.files import mistakes_in_a_line
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec

VERSION = "0.4.13"  # of requirements-peers.lock
BRING = f"python -m pip install 'lm_eval=={VERSION}' -c requirements.lock"


def around(lm: LanguageModel, batch: int, **more: Any) -> Any:
    """The harness around the same weights, with a tokenizer of its own.

    Raises:
        LabError: the harness is not installed.
    """
    try:
        from lm_eval.models.huggingface import HFLM  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise _not_there(error) from None
    return HFLM(pretrained=lm.model, tokenizer=copy.deepcopy(lm.tokenizer), batch_size=batch, max_length=lm.spec.context_limit, **more)


def evaluated(lm: LanguageModel, tasks: Sequence[str], limit: int | None = None, include: Path | None = None) -> Mapping[str, Any]:
    """What the harness finds of each task: its metrics by name.

    Raises:
        LabError: the harness or a package that its tasks need is not installed, or a task is unknown.
    """
    try:
        from lm_eval import simple_evaluate  # pyright: ignore[reportMissingImports]
        from lm_eval.tasks import TaskManager  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise _not_there(error) from None
    manager = TaskManager(include_path=str(include) if include else None)
    if unknown := [task for task in tasks if task not in manager.all_tasks]:
        raise LabError(f"lm-evaluation-harness knows no task {unknown[0]!r}; `lm_eval ls tasks` lists them, --include brings your own")
    results = simple_evaluate(around(lm, lm.spec.batch_size), tasks=list(tasks), limit=limit, task_manager=manager, bootstrap_iters=0)
    assert results is not None  # as it is on the first of several processes
    return results["results"]


def _not_there(error: ModuleNotFoundError) -> LabError:
    return LabError(f"lm-evaluation-harness is not installed, or not all that its tasks need ({error.name}): {BRING}")


def main(
    model: str,
    tasks: list[str],
    limit: Annotated[int | None, typer.Option(min=1, help="questions of each task")] = None,
    include: Annotated[Path | None, typer.Option(exists=True, file_okay=False, help="a folder of tasks of one's own")] = None,
) -> None:
    """Ask the harness's tasks."""
    results = evaluated(load(load_spec(model)), tasks, limit, include)
    print("| task | metric | value |\n|---|---|--:|")
    for task, metrics in results.items():
        for name, value in metrics.items():
            if isinstance(value, float) and "stderr" not in name:
                print(f"| {task} | {name.removesuffix(',none')} | {value:.4f} |")


if __name__ == "__main__":
    with mistakes_in_a_line():
        typer.run(main)
