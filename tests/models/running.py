"""The token ids that a model runs, and those that it must run to read what a row or an answer says that it read."""

from collections.abc import Iterable
from typing import Any

from hippo_core.models.prompt import split


def note_runs(lm: Any, rows: list[list[int]]) -> Any:
    """A context in which the token ids of each row that the model runs are added to `rows`, without those that it said itself."""

    def note(module, args, given):
        ids, mask = given["input_ids"], given.get("attention_mask")
        if ids.shape[1] > 1:
            seen = ids.new_ones(ids.shape) if mask is None else mask[:, -ids.shape[1] :]
            rows.extend(row[mask.bool()].tolist() for row, mask in zip(ids, seen, strict=True))

    return lm.model.register_forward_pre_hook(note, with_kwargs=True)


def runs_of(lm: Any, delivery: Any) -> list[list[int]]:
    """A list to which the rows that the model runs for a delivery are added from now on."""
    rows: list[list[int]] = []

    def noted(original):
        def call(*args, **more):
            with note_runs(lm, rows):
                return original(*args, **more)

        return call

    for name in ("ask", "make_ready"):
        setattr(delivery, name, noted(getattr(delivery, name)))
    return rows


def runs_to_read(lm: Any, parts: Iterable[tuple[str, str]], as_one_text: bool = False, delivery: str = "text") -> list[list[int]]:
    """The rows of token ids that the model runs to read these parts, each question behind its lines: a prompt, or each line once and the
    question behind it. `together`: the lines are one text."""
    rows, kept, group = [], set(), []
    for text, by in [*parts, ("", "model")]:
        if by != "model":
            group.append(text)
            continue
        *lines, question = group
        pieces = split(lm, ["\n".join(lines)] if as_one_text and lines and delivery != "text" else lines, question, "short")
        blocks, group = list(map(tuple, pieces.blocks)), []
        if delivery == "text":
            rows.append([*pieces.prefix, *(token for block in blocks for token in block), *pieces.tail])
        else:
            rows += [*(block for block in dict.fromkeys(blocks) if block not in kept), pieces.tail]
            kept |= set(blocks)
    return rows
