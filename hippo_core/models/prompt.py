"""The one place where a prompt is made: context lines, then the question, cut to the model's context limit."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from hippo_core.errors import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.template import as_text, chat
from hippo_core.text import on_one_line

Decoding = Literal["short", "plain"]
INSTRUCTION = "Answer with the exact shortest span; no punctuation; no extra words."


class FittedPrompt(NamedTuple):
    """A prompt within the limit: its text, the indices of the context lines in it, how many lines were dropped, its tokens."""

    prompt: str
    shown: range
    dropped: int
    tokens: int


class PromptPieces(NamedTuple):
    """A prompt as rows of token ids: what stands before the context lines, each line with its line break, what stands behind them. The
    first `question_tokens` tokens of the tail are the question. `exact`: one behind the other the rows are the tokens of the prompt."""

    prefix: list[int]
    blocks: list[list[int]]
    tail: list[int]
    exact: bool
    question_tokens: int


def render(lm: LanguageModel, context: Sequence[str], question: str, decoding: Decoding) -> str:
    """The prompt as the model will see it, special tokens included.

    short: the model's chat template with the instruction as system turn (or before the user's words), shots as earlier turns, then context
    lines and question as one user turn. plain: shots and context lines, then "Question: ..." and "Answer:".
    """
    if decoding == "plain":
        shots = "".join(f"{_plain(shot.context, shot.question)} {shot.answer}\n\n" for shot in lm.shots)
        return lm.template.begin + as_text(lm.tokenizer, shots + _plain(context, question))
    turns = [{"role": "system", "content": INSTRUCTION}] if lm.template.has_system else []
    for shot in lm.shots:
        turns += [_user(shot.context, shot.question), {"role": "assistant", "content": shot.answer}]
    turns.append(_user(context, question))
    if not lm.template.has_system:
        turns[0]["content"] = f"{INSTRUCTION}\n{turns[0]['content']}"
    return chat(lm.tokenizer, lm.template.text, turns)


def split(lm: LanguageModel, context: Sequence[str], question: str, decoding: Decoding) -> PromptPieces:
    """The prompt of `render` in pieces, so that lines can be run apart from each other and kept for other questions. The prefix is the same
    for all questions. LabError where the chat template changes the words of the user's turn."""
    lines = [as_text(lm.tokenizer, f"{text}\n") for text in context]
    question = as_text(lm.tokenizer, question)
    opening = question if decoding == "short" else _plain((), question)
    prompt = render(lm, context, question, decoding)
    before, separator, after = prompt.rpartition("".join(lines) + opening)
    if not separator:
        raise LabError(f"the chat template of {lm.spec.name} changes the user's words, so facts cannot be told from the rest")
    end = len(question) if decoding == "short" else len(opening) - len("\nAnswer:")
    prefix, question_ids, rest = _tokens(lm, before, opening[:end], opening[end:] + after)
    blocks = [_tokens(lm, before, line, opening + after)[1] for line in lines]
    exact = [*prefix, *chain(*blocks), *question_ids, *rest] == lm.encode(prompt)
    return PromptPieces(prefix, blocks, question_ids + rest, exact, len(question_ids))


def lines_of(lm: LanguageModel, texts: Sequence[str], decoding: Decoding) -> list[list[int]]:
    """Each text's tokens as a line of its own before a question; any question that begins with a letter."""
    return blocks_of(lm, [on_one_line(text) for text in texts], decoding)


def blocks_of(lm: LanguageModel, blocks: Sequence[str], decoding: Decoding) -> list[list[int]]:
    """The tokens of each block of lines, which may be several, before such a question."""
    return [split(lm, [block], "What?", decoding).blocks[0] for block in blocks]


def stops(lm: LanguageModel, decoding: Decoding) -> tuple[str, ...]:
    """The strings that end an answer besides the model's stop tokens: a new line in plain text, or what ends the template's turn."""
    return ("\n",) if decoding == "plain" else lm.template.end_strings


def fit(lm: LanguageModel, texts: Sequence[str], question: str, decoding: Decoding, max_new_tokens: int) -> FittedPrompt:
    """The prompt with as many of the newest context lines `texts` as leave room for the answer within the model's own tokens. LabError
    where the question alone is too long."""
    limit = lm.spec.context_limit - max_new_tokens
    complete = _measure(lm, texts, question, decoding, 0)
    if complete.tokens <= limit:
        return complete
    bare = _measure(lm, texts, question, decoding, len(texts))
    if bare.tokens > limit:
        raise LabError(f"the question alone takes {bare.tokens} tokens, the limit of {lm.spec.name} leaves {limit}: {question[:80]!r}")
    first = bisect_left(range(len(texts)), True, key=lambda dropped: _measure(lm, texts, question, decoding, dropped).tokens <= limit)
    return _measure(lm, texts, question, decoding, first)


def too_long(lm: LanguageModel, texts: Sequence[str], decoding: Decoding, max_new_tokens: int) -> list[int]:
    """The indices of the context lines that no prompt can hold, with the shortest question and room for the answer. A token has a byte or
    more, so lines with fewer bytes than there is room for tokens are not tokenised."""
    limit = lm.spec.context_limit - max_new_tokens
    budget = limit - _measure(lm, (), "?", decoding, 0).tokens
    unsure = [index for index, text in enumerate(texts) if len(text.encode()) > budget]
    return [index for index in unsure if _measure(lm, [texts[index]], "?", decoding, 0).tokens > limit]


def _measure(lm: LanguageModel, texts: Sequence[str], question: str, decoding: Decoding, dropped: int) -> FittedPrompt:
    prompt = render(lm, texts[dropped:], question, decoding)
    return FittedPrompt(prompt, range(dropped, len(texts)), dropped, len(lm.encode(prompt)))


def _tokens(lm: LanguageModel, *texts: str) -> list[list[int]]:
    """The tokens of texts that stand one behind the other, encoded together, each token with the text in which it ends."""
    encoding = lm.tokenizer("".join(texts), add_special_tokens=False, return_offsets_mapping=True)
    borders = list(accumulate(map(len, texts[:-1])))
    rows: list[list[int]] = [[] for _ in texts]
    for token, (start, end) in zip(encoding.input_ids, encoding.offset_mapping, strict=True):
        rows[bisect_right(borders, max(start, end - 1))].append(token)
    return rows


def _plain(context: Sequence[str], question: str) -> str:
    return "\n".join([*context, f"Question: {question}", "Answer:"])


def _user(context: Sequence[str], question: str) -> dict[str, str]:
    return {"role": "user", "content": "\n".join([*context, question])}


def prefix_of(lm: LanguageModel, decoding: Decoding) -> list[int]:
    """The token ids that every prompt begins with: special tokens, template, instruction, shots."""
    return split(lm, (), "?", decoding).prefix
