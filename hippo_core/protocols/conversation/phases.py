"""The first two of three phases, each of which can be run again alone: execute (answers, raw.jsonl), evaluate (scores, scored.jsonl).

A line of raw.jsonl is an answer to a question about a dialogue under a technique and a budget, whatever came of it; a line of scored.jsonl
the same with its scores. The third phase is a report: of a cell report.py, of the command line aggregate.py.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.protocols.conversation.budget import Budget
from hippo_core.protocols.conversation.choices import Row, SelectedContext, calls, choices
from hippo_core.protocols.conversation.dialogue import Dialogue
from hippo_core.protocols.conversation.lines import appending, read_lines
from hippo_core.protocols.conversation.scores import known_entities, scored
from hippo_core.protocols.conversation.techniques.base import TechniqueContext, timed
from hippo_core.providers.base import Completion, Provider

RAW, SCORED = "raw.jsonl", "scored.jsonl"
KEY = ("provider", "technique", "budget", "dialogue", "question", "max_tokens", "temperature", "prompt_sha256")
ANSWER_TOKENS = 8  # of an answer about a drawn dialogue, at most


def key_of(row: Mapping[str, Any]) -> str:
    """What identifies the call of a row: 16 hexadecimal digits."""
    return sha256(json.dumps([row[name] for name in KEY]).encode()).hexdigest()[:16]


def execute(
    dialogues: Sequence[Dialogue],
    techniques: Sequence[str],
    budgets: Sequence[Budget],
    setting: TechniqueContext,
    provider: Provider,
    log: Callable[[str], object] = print,
    max_tokens: int = ANSWER_TOKENS,
) -> list[Row]:
    """All raw rows at once, with the lines that were shown. `setting.lm` counts the tokens of a budget, whoever answers."""
    rows: list[Row] = []
    for name in techniques:
        own, ms = timed(lambda: calls(choices(dialogues, [name], budgets, setting), provider, max_tokens, 0.0))  # noqa: B023
        prompts = [prompt for known, prompt in own if not known["error"]]
        answers, answer_ms = timed(lambda: iter(_answers(provider, prompts, max_tokens)))  # noqa: B023
        made = [known | asdict(Completion(error=known["error"]) if known["error"] else next(answers)) for known, _ in own]
        failed = [row["error"] for row in made if row["error"]]
        why = f", {len(failed)} failed ({failed[0]})" if failed else ""
        why += f", {count} cut at {max_tokens} tokens" if (count := sum(row["cut"] for row in made)) else ""
        log(f"{name}: {len(own)} answers{why}; choosing {ms / 1e3:.1f} s, answering {answer_ms / 1e3:.1f} s")
        rows += made
    return rows


def _answers(provider: Provider, prompts: Sequence[str], max_tokens: int) -> list[Completion]:
    """The answers to many prompts; where the provider fails over them, each alone, so that the failing one is known."""
    try:
        return provider.answers(prompts, max_tokens=max_tokens)
    except Exception as error:
        if len(prompts) == 1:
            return [Completion(error=in_a_line(error))]
        return [answer for prompt in prompts for answer in _answers(provider, [prompt], max_tokens)]


@dataclass(frozen=True, slots=True)
class Executed:
    """How many questions were asked now, had an answer already, failed now, and were cut now by the limit of new tokens."""

    asked: int
    kept: int
    failed: int
    cut: int = 0


def execute_into(
    out: Path,
    chosen: Iterable[SelectedContext],
    provider: Provider,
    max_tokens: int = 64,
    temperature: float = 0.0,
    log: Callable[[str], None] = lambda line: None,
) -> Executed:
    """Ask, call by call, what has no answer in `out` yet, and append it; what failed is asked again. A line holds no text of the dialogue,
    but the SHA-256 of the prompt, so that an answer to another prompt never counts as one to this."""
    asked = failed = kept = cut = 0
    planned = calls(chosen, provider, max_tokens, temperature)
    with appending(out) as append:
        done = {key_of(record) for record in read_lines(out, (*KEY, "error")) if record["error"] is None}
        for number, (known, text) in enumerate(planned, 1):
            if key_of(known) in done:
                kept += 1
                continue
            known_error = known["error"]
            answer = Completion(error=known_error) if known_error else provider.answer(text, max_tokens=max_tokens, temperature=temperature)
            textless = {name: value for name, value in known.items() if name != "lines"}
            append(textless | {"at": datetime.now(UTC).isoformat(timespec="seconds")} | asdict(answer))
            asked, failed, cut = asked + 1, failed + (answer.error is not None), cut + answer.cut
            label = f"{number}/{len(planned)} {known['technique']} ({known['budget']}) {known['dialogue']} {known['question']}"
            log(f"{label}: {answer.error or f'{answer.seconds:.1f} s'}")
    return Executed(asked, kept, failed, cut)


def describe(chosen: Iterable[SelectedContext], provider: Provider, max_tokens: int, temperature: float) -> str:
    """What `execute_into` would call, in words; nothing is called and nothing written."""
    planned = calls(chosen, provider, max_tokens, temperature)
    words = sum(known["prompt_words"] for known, _ in planned)
    techniques = ", ".join(dict.fromkeys(known["technique"] for known, _ in planned))
    limits = f"max_tokens {max_tokens}, temperature {temperature:g}" if provider.takes_temperature else "its own limits and temperature"
    return f"would call {len(planned)} times: {provider.describe()} ({limits}; {words:,} words of prompts; {techniques})"


def evaluate(raw: Iterable[Row], dialogues: Sequence[Dialogue], source: object = RAW) -> list[Row]:
    """The last row of each call with its scores. LabError, with its line in `source`, for an answer to a question that is not there."""
    known = {(dialogue.id, question.id): (dialogue, question) for dialogue in dialogues for question in dialogue.questions}
    entities = {dialogue.id: known_entities(dialogue) for dialogue in dialogues}
    answers: dict[str, Row] = {}
    for number, row in enumerate(raw, 1):
        key = (row.get("dialogue"), row.get("question"))
        if not all(isinstance(part, str) for part in key) or key not in known:
            raise LabError(f"{source}:{number}: no question {key[1]!r} in a dialogue {key[0]!r}; give the dialogues that were asked")
        if missing := [name for name in KEY if name not in row]:
            raise LabError(f"{source}:{number}: a row without {missing[0]}; run the phase before this one again")
        dialogue, question = known[key]  # type: ignore[index]
        try:
            answers[key_of(row)] = row | {"answer_id": key_of(row)} | scored(row, dialogue, question, entities[dialogue.id])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LabError(f"{source}:{number}: no whole answer ({in_a_line(error)}); run the phase before this one again") from None
    return list(answers.values())
