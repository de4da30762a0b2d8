"""The first two of three phases, each of which can be run again alone: execute (answers, raw.jsonl), evaluate (scores, scored.jsonl).

A line of raw.jsonl is an answer to a question about a dialogue under a technique and a budget, whatever came of it; a line of scored.jsonl
the same with its scores. The third phase is a report: of a cell report.py, of the command line aggregate.py.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import in_a_line
from hippo_core.protocols.conversation.budget import FULL, ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue, DialogueQuestion
from hippo_core.protocols.conversation.lines import appending, read_lines
from hippo_core.protocols.conversation.scores import known_entities, scored
from hippo_core.protocols.conversation.techniques import load_technique, technique_members
from hippo_core.protocols.conversation.techniques.base import Chosen, TechniqueContext, TurnQuery
from hippo_core.providers.base import Completion, Provider
from hippo_core.text import on_one_line

# the specification's instruction, and what lets an answer be compared
INSTRUCTION = (
    "You are a helpful assistant. Answer based on the conversation history provided. "
    'Use as few words as it takes; say "unknown" where the conversation does not tell.'
)
RAW, SCORED = "raw.jsonl", "scored.jsonl"
KEY = ("provider", "technique", "budget", "dialogue", "question", "max_tokens", "temperature", "prompt_sha256")
ANSWER_TOKENS = 8  # of an answer about a drawn dialogue, at most
RANKED = 10  # ranks that are kept
UNBUDGETED = ("none", "full")  # techniques that show the same under every budget
Row = dict[str, Any]
Call = tuple[Row, str]  # what is known of an answer before it is given, and the prompt


def key_of(row: Mapping[str, Any]) -> str:
    """What identifies the call of a row: 16 hexadecimal digits."""
    return sha256(json.dumps([row[name] for name in KEY]).encode()).hexdigest()[:16]


def prompt(lines: Sequence[str], question: str, instructed: bool) -> str:
    """The specification's prompt: instruction, history and question, with blank lines between. `instructed`: the provider brings an
    instruction of its own, and history and question suffice."""
    shown = map(on_one_line, lines)
    return "\n".join([*shown, question]) if instructed else "\n\n".join([INSTRUCTION, *shown, f"User: {question}"])


def calls_of(
    dialogues: Sequence[Dialogue],
    techniques: Sequence[str],
    budgets: Sequence[str],
    setting: TechniqueContext,
    provider: Provider,
    max_tokens: int,
    temperature: float = 0.0,
) -> list[Call]:
    """Every question under every technique and budget; a technique that shows the same under every budget once, as of the budget "full".

    `setting.lm` counts the tokens of a budget, whoever answers. Where a technique fails, or the model's limit does not hold the question
    alone, `error` of the row says why, and it is not to be asked. LabError for an unknown technique.
    """
    technique_members(techniques)
    count = lru_cache(maxsize=None)(lambda line: len(setting.lm.encode_text(f"{line}\n")))
    calls = []
    for name in techniques:
        technique = load_technique(name, setting)
        for dialogue in dialogues:
            cost = [count(turn.line) for turn in dialogue.turns]
            choose, unreadable, index_ms = _attempted(partial(technique.open, dialogue))
            for budget in [FULL] if name in UNBUDGETED else budgets:
                context_budget = ContextBudget.of(budget, dialogue, cost, count)
                for question in dialogue.questions:
                    row = {
                        "provider": provider.identity,
                        "technique": name,
                        "budget": budget,
                        "dialogue": dialogue.id,
                        "question": question.id,
                        "max_tokens": max_tokens,
                        "temperature": temperature if provider.takes_temperature else None,
                    }
                    asked = TurnQuery(question.question, question.id, tuple(dialogue.indices(question.evidence)))
                    chosen, failed, select_ms = None, unreadable, 0.0
                    if choose:
                        chosen, failed, select_ms = _attempted(partial(choose, asked, context_budget))
                    shown, text = _shown(chosen or Chosen((), ()), failed, question, provider, max_tokens)
                    calls.append((row | shown | {"select_ms": select_ms, "index_ms": index_ms}, text))
    return calls


def _shown(chosen: Chosen, failed: str | None, question: DialogueQuestion, provider: Provider, max_tokens: int) -> Call:
    """What of the chosen lines the model is shown, and the prompt; lines that its limit does not hold are not shown."""
    lines, too_long, _ = _attempted(partial(provider.fitting, chosen.lines, question.question, max_tokens))
    error, lines = failed or too_long, lines or ()
    text = prompt(lines, question.question, provider.instructed)
    shown = {
        "prompt_words": len(text.split()),
        "prompt_sha256": sha256(text.encode()).hexdigest(),
        "dropped": len(chosen.lines) - len(lines),
        "lines": None if error else list(lines),
        "places": None if error else list(chosen.indices[-len(lines) :]) if lines else [],
        "ranking": None if chosen.ranking is None else list(chosen.ranking[:RANKED]),
        "error": error,
    }
    return shown, text


def _attempted(work: Callable[[], Any]) -> tuple[Any, str | None, float]:
    """What a call returns, or why it failed, in one line; and its milliseconds. A technique that fails does not stop the others."""
    begin, result, failed = time.perf_counter(), None, None
    try:
        result = work()
    except Exception as error:
        failed = in_a_line(error)
    return result, failed, (time.perf_counter() - begin) * 1e3


def execute(
    dialogues: Sequence[Dialogue],
    techniques: Sequence[str],
    budgets: Sequence[str],
    setting: TechniqueContext,
    provider: Provider,
    log: Callable[[str], object] = print,
    max_tokens: int = ANSWER_TOKENS,
) -> list[Row]:
    """All raw rows at once, with the lines that were shown."""
    rows: list[Row] = []
    for name in techniques:
        begin = time.perf_counter()
        calls = calls_of(dialogues, [name], budgets, setting, provider, max_tokens)
        chosen = time.perf_counter()
        answers = iter(_answers(provider, [text for row, text in calls if not row["error"]], max_tokens))
        seconds = f"choosing {chosen - begin:.1f} s, answering {time.perf_counter() - chosen:.1f} s"
        made = [row | asdict(Completion(error=row["error"]) if row["error"] else next(answers)) for row, _ in calls]
        failed = [row["error"] for row in made if row["error"]]
        why = f", {len(failed)} failed ({failed[0]})" if failed else ""
        why += f", {count} cut at {max_tokens} tokens" if (count := sum(row["cut"] for row in made)) else ""
        log(f"{name}: {len(calls)} answers{why}; {seconds}")
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


def execute_into(out: Path, calls: Sequence[Call], provider: Provider, log: Callable[[str], None] = lambda line: None) -> Counter[str]:
    """Ask, call by call, what has no answer in `out` yet, and append it; what failed is asked again. A line holds no text of the dialogue,
    but the SHA-256 of the prompt, so that an answer to another prompt never counts as one to this.

    Returns:
        How many questions were `asked` now, had an answer already (`kept`), `failed` now, and were `cut` now by the limit of new tokens.
    """
    counts = Counter[str]()
    with appending(out) as append:
        done = {key_of(record) for record in read_lines(out, (*KEY, "error")) if record["error"] is None}
        for number, (row, text) in enumerate(calls, 1):
            if key_of(row) in done:
                counts["kept"] += 1
                continue
            limits = {"max_tokens": row["max_tokens"], "temperature": row["temperature"] or 0.0}
            answer = Completion(error=row["error"]) if row["error"] else provider.answer(text, **limits)
            textless = {name: value for name, value in row.items() if name != "lines"}
            append(textless | {"at": datetime.now(UTC).isoformat(timespec="seconds")} | asdict(answer))
            counts.update(asked=1, failed=int(answer.error is not None), cut=int(answer.cut))
            label = f"{number}/{len(calls)} {row['technique']} ({row['budget']}) {row['dialogue']} {row['question']}"
            log(f"{label}: {answer.error or f'{answer.seconds:.1f} s'}")
    return counts


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
