"""What a person sees while models learn: a progress bar, and the curves in TensorBoard where it is installed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm


class Live:
    """Shows each evaluation of a course as it is measured. TensorBoard's events lie in `folder`, a folder an initialisation; a phase has at
    most so many steps; a bar is drawn where a person waits, and not the runner of a grid."""

    def __init__(self, folder: Path, seeds: Sequence[int], phases: int, steps: int, bar: bool) -> None:
        self.folder, self.seeds, self.steps = folder, seeds, steps
        self.bar = tqdm(total=phases * steps, unit="step", disable=not bar)
        self.boards: list[Any] = []

    def show(self, line: Mapping[str, Any]) -> None:
        """A line of the curve; a model that has stopped has no point in it."""
        step = line["phase"] * self.steps + line["step"]
        measured = {name: values for name, values in line.items() if isinstance(values, Mapping)}
        self.bar.update(step - self.bar.n)
        self.bar.set_postfix({name: f"{sum(values['right']) / len(values['right']):.2f}" for name, values in measured.items()})
        for index, model in enumerate(line["models"] if self._opened() else ()):
            board = self.boards[model]
            board.add_scalar("loss/training", line["training"][index], step)
            for name, values in measured.items():
                board.add_scalar(f"loss/{name}", values["nats"][index], step)
                board.add_scalar(f"accuracy/{name}", values["right"][index], step)

    def _opened(self) -> bool:
        """Whether there are boards; they are opened with the first line."""
        if not self.boards:
            with suppress(ModuleNotFoundError):
                from torch.utils.tensorboard import SummaryWriter  # it needs the package tensorboard

                self.boards = [SummaryWriter(str(self.folder / f"init_{seed}")) for seed in self.seeds]
        return bool(self.boards)

    def close(self) -> None:
        """Write what is not yet written."""
        self.bar.close()
        for board in self.boards:
            board.close()
