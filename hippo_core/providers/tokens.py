"""What a provider's output says: the answer's text and its tokens. A number that is not there is None, never 0.

Anthropic counts cached tokens beside those of the prompt, the others within: `tokens_in` is always the whole prompt.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hippo_core.errors import shortened
from hippo_core.providers.base import Completion
from hippo_core.providers.retry import BUSY_WORDS, CallFailed

LENGTH = "length"  # what an endpoint says of an answer that its limit of tokens ended
SHOWN = 120  # characters of an unreadable output that an error shows


def claude(output: str) -> Completion:
    """One JSON object: `result`, `is_error`, `usage` of Anthropic's form."""
    values = _object(output)
    if values.get("is_error") or not isinstance(values.get("result"), str):
        raise failed(f"no result: {values.get('result') or values.get('subtype') or 'an object without one'}")
    beside, read, written = (_count(values, f"usage.{name}input_tokens") for name in ("", "cache_read_", "cache_creation_"))
    prompt = None if beside is None else beside + (read or 0) + (written or 0)
    return Completion(values["result"], prompt, _count(values, "usage.output_tokens"), read)


def gemini(output: str) -> Completion:
    """One JSON object: `response`, and in `stats.models` the tokens of every model that took part."""
    values = _object(output)
    text, models = _text(values, "response"), _at(values, "stats.models")
    used = [_at(model, "tokens") for model in models.values()] if isinstance(models, Mapping) else []
    produced = _sum(_count(counts, name) for counts in used for name in ("candidates", "thoughts"))
    prompt, cached = (_sum(_count(counts, name) for counts in used) for name in ("prompt", "cached"))
    return Completion(text, prompt, produced, cached)


def codex(output: str) -> Completion:
    """JSON lines, an event each: the last `agent_message` is the answer, of cumulative usages the largest counts. A last line that is
    cut is passed over; one amid others is an error."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        raise failed("nothing on its output")
    text, usages = None, []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            if number == len(lines) and text is not None:
                break
            raise failed(f"line {number} is no JSON: {_shown(line)}") from None
        if _at(event, "type") in ("error", "turn.failed"):
            raise failed(f"error: {_message(event.get('error') or event)}")
        if _at(event, "item.type") == "agent_message" and isinstance(event["item"].get("text"), str):
            text = event["item"]["text"]
        if isinstance(_at(event, "usage"), Mapping):
            usages.append(event["usage"])
    if text is None:
        raise failed("no message among its events")
    usage = max(usages, key=lambda counted: _count(counted, "input_tokens") or 0, default={})
    before, after, cached = (_count(usage, name) for name in ("input_tokens", "output_tokens", "cached_input_tokens"))
    return Completion(text, before, after, cached)


def openai(output: str) -> Completion:
    """A chat completion of an OpenAI-compatible endpoint."""
    values = _object(output)
    text, usage = _text(values, "choices.0.message.content"), _at(values, "usage")
    names = ("prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens")
    before, after, cached = (_count(usage, name) for name in names)
    return Completion(text, before, after, cached, cut=_at(values, "choices.0.finish_reason") == LENGTH)


def ollama(output: str) -> Completion:
    """A reply of Ollama's /api/chat. It leaves `prompt_eval_count` out where the whole prompt came from its cache."""
    values = _object(output)
    before, after = (_count(values, name) for name in ("prompt_eval_count", "eval_count"))
    return Completion(_text(values, "message.content"), before, after, cut=values.get("done_reason") == LENGTH)


def failed(message: str) -> CallFailed:
    """The failure of an output; another attempt may do where it speaks of limits, and where it is no whole JSON."""
    return CallFailed(message, retry=bool(BUSY_WORDS.search(message)))


def decoded(content: bytes, what: str) -> str:
    """The text of an output; CallFailed where it is no UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CallFailed(f"{what} is no UTF-8 (byte {error.start:,} of {len(content):,})") from None


def _object(output: str) -> Mapping[str, Any]:
    if not output.strip():
        raise CallFailed("nothing on its output", retry=True)
    try:
        values = json.loads(output)
    except ValueError:
        what = "HTML" if output.lstrip()[:1] == "<" else "no whole JSON"
        raise CallFailed(f"expected a JSON object, got {what}: {_shown(output)}", retry=what != "HTML") from None
    if not isinstance(values, Mapping):
        raise failed(f"expected a JSON object, got {_shown(output)}")
    return values


def _at(values: Any, path: str) -> Any:
    """What stands at a path of keys and positions; None where it ends before."""
    for key in path.split("."):
        if isinstance(values, list):
            values = values[int(key)] if key.isdecimal() and int(key) < len(values) else None
        else:
            values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _text(values: Mapping[str, Any], path: str) -> str:
    """The answer at a path; CallFailed where the object names an error, or has no text there."""
    if values.get("error"):
        raise failed(f"error: {_message(values['error'])}")
    if not isinstance(text := _at(values, path), str):
        raise failed(f"an object without {path}")
    return text


def _count(values: Any, path: str) -> int | None:
    value = _at(values, path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _message(error: Any) -> str:
    message = _at(error, "message") or error
    return _shown(message if isinstance(message, str) else json.dumps(message))


def _shown(text: str) -> str:
    return shortened(" ".join(text.split()), SHOWN)
