"""delivery: text: the passages stand in the prompt as context lines, in the order of their telling, and are read again each time."""

from collections.abc import Sequence

from hippo_core.delivery.types import Delivered, Once, Question
from hippo_core.models.ask import Ask, ask
from hippo_core.models.generate import Generation, generate
from hippo_core.models.kv import encode_blocks
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import Decoding, fit, render, split, stops


class TextDelivery:
    """Questions answered with their passages in the prompt; where they do not all fit, the newest stay."""

    def __init__(self, lm: LanguageModel, decoding: Decoding = "short") -> None:
        self.lm = lm
        self.decoding: Decoding = decoding

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Delivered]:
        """See `Delivery`. Masked, the whole prompt is run and the lines' tokens are hidden. LabError for a question that is too long."""
        fitted = [fit(self.lm, question.passages, question.text, self.decoding, max_new_tokens) for question in questions]
        shown = [question.passages[prompt.dropped :] for question, prompt in zip(questions, fitted, strict=True)]
        if masked:
            answers = self._hidden(shown, questions, max_new_tokens, batch_size)
        else:
            prompts = [prompt.prompt for prompt in fitted]
            penalties = [question.penalty for question in questions]
            answers = generate(self.lm, prompts, max_new_tokens, batch_size, stops(self.lm, self.decoding), penalties)
        bare = [len(self.lm.encode(render(self.lm, (), question.text, self.decoding))) for question in questions]
        return [
            Delivered(**vars(answer), prompt=prompt.prompt, trace_tokens=prompt.tokens - tokens, dropped=prompt.dropped)
            for answer, prompt, tokens in zip(answers, fitted, bare, strict=True)
        ]

    def make_ready(self, questions: Sequence[Question]) -> Once:
        """Nothing is kept."""
        return Once()

    def forget(self) -> None:
        """Nothing is kept."""

    def _hidden(
        self, shown: Sequence[tuple[str, ...]], questions: Sequence[Question], max_new_tokens: int, batch_size: int
    ) -> list[Generation]:
        pieces = [split(self.lm, lines, question.text, self.decoding) for lines, question in zip(shown, questions, strict=True)]
        if not pieces:
            return []
        begin = len(pieces[0].prefix)
        prefix = encode_blocks(self.lm, pieces[0].prefix, []).prefix
        asks = []
        for piece, question in zip(pieces, questions, strict=True):
            lines = [token for block in piece.blocks for token in block]
            asks.append(Ask([*lines, *piece.tail], (prefix,), begin, range(begin, begin + len(lines)), question.penalty))
        return ask(self.lm, asks, max_new_tokens, stops(self.lm, self.decoding), batch_size)
