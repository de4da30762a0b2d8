"""The likelihood of the question after a passage, under the frozen model that answers: UPR (Sachan et al. 2022, arXiv 2204.07496).

`after_text` reads each passage as text; `after_kv` runs only the question's tokens, after the stored keys and values of the passages.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hippo_core.models.kv import restored, tokens_of
from hippo_core.models.prompt import Decoding, split
from hippo_core.models.score import Likelihood, log_likelihood_behind, token_likelihood
from hippo_core.text import on_one_line

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel
    from hippo_core.models.passage_kv import PassageKV


def after_text(lm: "LanguageModel", texts: Sequence[str], question: str, decoding: Decoding) -> list[Likelihood]:
    """The log-likelihood of the question after each passage. Each passage stands alone in the prompt that the model would be asked with."""
    pieces = split(lm, [on_one_line(text) for text in texts], question, decoding)
    return token_likelihood(lm, [([*pieces.prefix, *block], pieces.tail[: pieces.question_tokens]) for block in pieces.blocks], len(texts))


def after_kv(passage_kv: "PassageKV", blocks: Sequence[Sequence[int]], question: str, decoding: Decoding) -> tuple[list[float], int]:
    """log p(question | passage) in nats after the stored KV of each passage, and how many tokens were run for the question."""
    pieces = split(passage_kv.lm, (), question, decoding)
    question_ids = pieces.tail[: pieces.question_tokens]
    passages = passage_kv.get(blocks)
    before = [(passage_kv.prefix, restored(kv, passage_kv.prefix.dtype)[:, :, :, :-1]) for kv in passages.traces]
    starts = [tokens_of(passage_kv.prefix) + len(block) - 1 for block in blocks]
    rows = [[block[-1], *question_ids] for block in blocks]
    logs = log_likelihood_behind(passage_kv.lm, before, starts, rows)
    return [math.fsum(row) for row in logs], sum(map(len, rows))
