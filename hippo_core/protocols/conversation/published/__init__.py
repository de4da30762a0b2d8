"""Conversations that others published, read by path into dialogues; none of them is kept here.

`read_published(path)` finds out the format, LoCoMo's or LongMemEval's. Their questions' `kind` is the category of the file.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.published import locomo, longmemeval
from hippo_core.text import normal_values


def read_published(path: Path, corrections: Sequence[Path] = ()) -> tuple[Dialogue, ...]:
    """The dialogues of a file. `corrections`: lists of LoCoMo's wrong questions, or folders of them.

    Raises:
        LabError: no such file, neither format, or something in it is missing or contradicts itself.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        normal_values(values, str(path))  # for its error alone: published words stay as they are
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LabError(f"{path} is no JSON: {error}") from None
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(one, dict) for one in values):
        raise LabError(f"{path}: expected a list of objects, conversations of LoCoMo or questions of LongMemEval")
    if all(one.keys() >= locomo.KEYS for one in values):
        return tuple(locomo.parse(values, str(path), locomo.read_corrections(corrections)))
    if all(one.keys() >= longmemeval.KEYS for one in values):
        if corrections:
            raise LabError("a list of wrong questions is one of LoCoMo's; leave it out for LongMemEval")
        return tuple(longmemeval.parse(values, str(path)))
    due = [", ".join(sorted(module.KEYS)) for module in (locomo, longmemeval)]
    raise LabError(f"{path}: expected objects with {due[0]} (LoCoMo) or {due[1]} (LongMemEval), got {', '.join(sorted(values[0])[:6])}")
