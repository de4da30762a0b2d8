"""`hippo examine`: what the checkpoints of phases answer of any task."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hippo_core.errors import LabError

if TYPE_CHECKING:
    from hippo_core.protocols.forgetting.checkpoint import PhaseCheckpoint

app = typer.Typer()  # without a name: its command is one of `hippo`
Split = Literal["train", "val", "test"]


@app.command()
def examine(
    checkpoint: Annotated[Path, typer.Argument(help="phase_N.safetensors of a record of `run forgetting`, or the record: all its phases")],
    tasks: Annotated[
        list[str] | None, typer.Argument(help="copy, reverse, majority, parity, add, sub, mul, squares or PATH.jsonl; its own unless given")
    ] = None,
    split: Annotated[Split, typer.Option(help="the items that are asked")] = "test",
) -> None:
    """Ask the checkpoints of phases of experiment `forgetting` any task: nats a token and accuracy."""
    from hippo_core.protocols.forgetting.checkpoint import read_phase

    paths = [checkpoint] if checkpoint.is_file() else sorted(checkpoint.glob("phase_*.safetensors"))
    if not paths:
        raise LabError(f"no checkpoint of a phase at {checkpoint}: expected phase_N.safetensors; `hippo run forgetting` writes them")
    phases = sorted(map(read_phase, paths), key=lambda phase: phase.phase)
    print(f"{split} items; accuracy: mean [least to most] of the initialisations\n")
    print("| after phase | learnt last | task | items | nats a token | accuracy |\n|--:|---|---|--:|--:|---|")
    for phase in phases:
        for task in tasks or phase.tasks:
            name, items, nats, right = examined(phase, task, split)
            means = [f"{sum(nats) / len(nats):.3f}", f"{sum(right) / len(right):.3f} [{min(right):.3f} to {max(right):.3f}]"]
            print("|", " | ".join([str(phase.phase), phase.tasks[phase.phase - 1], name, str(items), *means]), "|", flush=True)


def examined(phase: "PhaseCheckpoint", task: str, split: Split) -> tuple[str, int, list[float], list[float]]:
    """The task's name, how many items of the split were asked, and of each model the nats a token and the share of right answers.

    Raises:
        LabError: there is no such task, or it does not fit the model.
    """
    import torch

    from hippo_core.models.matmul import quicken_products
    from hippo_core.protocols.forgetting.learner import Learner
    from hippo_core.protocols.forgetting.tasks import Corpus, make_task

    torch.set_num_threads(1)
    quicken_products()
    corpus = Corpus([make_task(task, phase.control, phase.subset)])
    phase.shape.require(corpus, phase.model)
    learner, name = Learner(phase.shape, corpus, phase.seeds, rate=1e-3, decay=0.0), corpus.tasks[0].name
    nats, right = learner.examined(phase.answering(name), 0, split)
    return name, len(corpus.items(0, split)), nats.tolist(), right.tolist()
