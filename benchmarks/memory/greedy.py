"""Whether a model answers the one question of a lesson right: each token of the answer is the likeliest."""

from collections.abc import Sequence

import torch

from hippo_core.models.language_model import LanguageModel
from hippo_core.training.lessons import Lesson
from hippo_core.training.packed_examples import LessonEncoder


@torch.inference_mode()
def right(lm: LanguageModel, encoder: LessonEncoder, lesson: Lesson, never: Sequence[int] = ()) -> tuple[bool, bool]:
    """As the model says it, and where it may not begin with any of the tokens `never`."""
    [batch] = encoder.batches([lesson], [], 1)
    hidden = lm.model.model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None], use_cache=False)[0]
    [(row, positions, _)] = batch.skills
    logits, wanted = lm.model.lm_head(hidden[row, positions]), batch.labels[row, positions]
    correct = bool((logits.argmax(-1) == wanted).all())
    logits[0, list(never)] = float("-inf")
    return correct, bool((logits.argmax(-1) == wanted).all())
