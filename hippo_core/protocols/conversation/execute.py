"""Phase one, call by call: ask every question under every technique; a line of raw.jsonl an answer, whatever came of it.

The same command goes on where it stopped: what has an answer is not asked again, what failed is. A line holds no text of the dialogue, but
the SHA-256 of the prompt, so that an answer to another prompt is never taken for one to this.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hippo_core.protocols.conversation.choices import SelectedContext, calls
from hippo_core.protocols.conversation.lines import appending, read_lines
from hippo_core.protocols.conversation.phases import KEY, key_of
from hippo_core.providers import Completion, Provider


@dataclass(frozen=True, slots=True)
class Executed:
    """How many questions were asked now, had an answer already, failed now, and were cut now by the limit of new tokens."""

    asked: int
    kept: int
    failed: int
    cut: int = 0


def execute(
    chosen: Iterable[SelectedContext],
    provider: Provider,
    out: Path,
    max_tokens: int = 64,
    temperature: float = 0.0,
    say: Callable[[str], None] = lambda line: None,
) -> Executed:
    """Ask what has no answer in `out` yet, and append it."""
    asked = failed = kept = cut = 0
    planned = calls(chosen, provider, max_tokens, temperature)
    with appending(out) as file:
        done = {key_of(record) for record in read_lines(out, (*KEY, "error")) if record["error"] is None}
        for number, (known, text) in enumerate(planned, 1):
            if key_of(known) in done:
                kept += 1
                continue
            known_error = known["error"]
            answer = Completion(error=known_error) if known_error else provider.answer(text, max_tokens=max_tokens, temperature=temperature)
            textless = {name: value for name, value in known.items() if name != "lines"}
            file.append(textless | {"at": datetime.now(UTC).isoformat(timespec="seconds")} | asdict(answer))
            asked, failed, cut = asked + 1, failed + (answer.error is not None), cut + answer.cut
            label = f"{number}/{len(planned)} {known['technique']} ({known['budget']}) {known['dialogue']} {known['question']}"
            say(f"{label}: {answer.error or f'{answer.seconds:.1f} s'}")
    return Executed(asked, kept, failed, cut)


def describe(chosen: Iterable[SelectedContext], provider: Provider, max_tokens: int, temperature: float) -> str:
    """What `execute` would call, in words; nothing is called and nothing written."""
    planned = calls(chosen, provider, max_tokens, temperature)
    words = sum(known["prompt_words"] for known, _ in planned)
    techniques = ", ".join(dict.fromkeys(known["technique"] for known, _ in planned))
    limits = f"max_tokens {max_tokens}, temperature {temperature:g}" if provider.takes_temperature else "its own limits and temperature"
    return f"would call {len(planned)} times: {provider.describe()} ({limits}; {words:,} words of prompts; {techniques})"
