"""inject=text: the traces stand in the prompt as context lines, in the order of their telling, and are read anew each time."""

from collections.abc import Sequence

from hippo_core.delivery.types import Injected, Question
from hippo_core.models.ask import Ask, ask
from hippo_core.models.blocks import encode_blocks
from hippo_core.models.generate import Generation, generate
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import Decoding, Fitted, Pieces, fit, split, stops


class TextInjection:
    """Questions answered with their traces in the prompt; where they do not all fit, the newest stay."""

    mode = "text"

    def __init__(self, lm: LanguageModel, decoding: Decoding = "short") -> None:
        self.lm = lm
        self.decoding: Decoding = decoding

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Injected]:
        """See `Injection`. Masked, the whole prompt is run and the lines' tokens are hidden. LabError for a question that is too
        long."""
        fitted = [fit(self.lm, question.traces, question.text, self.decoding, max_new_tokens) for question in questions]
        shown = [question.traces[one.dropped :] for question, one in zip(questions, fitted, strict=True)]
        pieces = [split(self.lm, lines, question.text, self.decoding) for lines, question in zip(shown, questions, strict=True)]
        answers = self._hidden(pieces, max_new_tokens, batch_size) if masked else self._seen(fitted, max_new_tokens, batch_size)
        return [
            Injected(**vars(answer), trace_tokens=sum(map(len, piece.blocks)), dropped=one.dropped)
            for answer, piece, one in zip(answers, pieces, fitted, strict=True)
        ]

    def _seen(self, fitted: Sequence[Fitted], max_new_tokens: int, batch_size: int) -> list[Generation]:
        return generate(self.lm, [one.prompt for one in fitted], max_new_tokens, batch_size, stops(self.lm, self.decoding))

    def _hidden(self, pieces: Sequence[Pieces], max_new_tokens: int, batch_size: int) -> list[Generation]:
        if not pieces:
            return []
        begin = len(pieces[0].prefix)
        prefix = encode_blocks(self.lm, pieces[0].prefix, []).prefix
        asks = []
        for piece in pieces:
            lines = [token for block in piece.blocks for token in block]
            asks.append(Ask([*lines, *piece.tail], (prefix,), begin, range(begin, begin + len(lines))))
        return ask(self.lm, asks, max_new_tokens, stops(self.lm, self.decoding), batch_size)
