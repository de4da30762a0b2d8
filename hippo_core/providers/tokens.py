"""What a provider's output says: the answer's text and its tokens. A number that is not there is None, never 0.

Anthropic counts cached tokens beside those of the prompt, the others within: `tokens_in` is always the whole prompt.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hippo_core.providers.base import Completion
from hippo_core.providers.retry import BUSY_WORDS, CallFailed

LENGTH = "length"  # what an endpoint says of an answer that its limit of tokens ended
SHOWN = 120  # characters of an unreadable output that an error shows


def claude(output: str) -> Completion:
    """One JSON object: `result`, `is_error`, `usage` of Anthropic's form."""
    values = _object(output)
    if values.get("is_error") or not isinstance(values.get("result"), str):
        raise failed(f"no result: {values.get('result') or values.get('subtype') or 'an object without one'}")
    usage = _mapping(values.get("usage"))  # in which cached tokens stand beside the others
    plain, read, written = (_count(usage.get(f"{name}input_tokens")) for name in ("", "cache_read_", "cache_creation_"))
    prompt_tokens = None if plain is None else plain + (read or 0) + (written or 0)
    return Completion(values["result"], prompt_tokens, _count(usage.get("output_tokens")), read)


def gemini(output: str) -> Completion:
    """One JSON object: `response`, and in `stats.models` the tokens of every model that took part."""
    values = _object(output)
    if values.get("error"):
        raise failed(f"error: {_message(values['error'])}")
    if not isinstance(values.get("response"), str):
        raise failed("an object without response")
    models = _mapping(_mapping(values.get("stats")).get("models")).values()
    tokens = [_mapping(_mapping(model).get("tokens")) for model in models]
    produced = [_sum((usage.get("candidates"), usage.get("thoughts"))) for usage in tokens]
    prompt, cached = (_sum(usage.get(name) for usage in tokens) for name in ("prompt", "cached"))
    return Completion(values["response"], prompt, _sum(produced), cached)


def codex(output: str) -> Completion:
    """JSON lines, an event each: the last `agent_message` is the answer, of cumulative usages the largest counts. A last line that is
    cut is passed over; one amid others is an error."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        raise failed("nothing on its output")
    text, usages = None, []
    for number, line in enumerate(lines, 1):
        try:
            event = _mapping(json.loads(line))
        except ValueError:
            if number == len(lines) and text is not None:
                break
            raise failed(f"line {number} is no JSON: {_shown(line)}") from None
        item = _mapping(event.get("item"))
        if event.get("type") in ("error", "turn.failed"):
            raise failed(f"error: {_message(event.get('error') or event)}")
        if item.get("type") == "agent_message" and isinstance(item.get("text"), str):
            text = item["text"]
        if isinstance(event.get("usage"), Mapping):
            usages.append(event["usage"])
    if text is None:
        raise failed("no message among its events")
    usage = max(usages, key=lambda counted: _count(counted.get("input_tokens")) or 0, default={})
    tokens_in, tokens_out, cached = (_count(usage.get(name)) for name in ("input_tokens", "output_tokens", "cached_input_tokens"))
    return Completion(text, tokens_in, tokens_out, cached)


def openai(output: str) -> Completion:
    """A chat completion of an OpenAI-compatible endpoint."""
    values = _object(output)
    if values.get("error"):
        raise failed(f"error: {_message(values['error'])}")
    choices = values.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = _mapping(choice.get("message"))
    if not isinstance(message.get("content"), str):
        raise failed("an object without choices[0].message.content")
    usage = _mapping(values.get("usage"))
    cached = _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    counts = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), cached
    return Completion(message["content"], *counts, cut=choice.get("finish_reason") == LENGTH)


def ollama(output: str) -> Completion:
    """A reply of Ollama's /api/chat. It leaves `prompt_eval_count` out where the whole prompt came from its cache."""
    values = _object(output)
    if values.get("error"):
        raise failed(f"error: {_message(values['error'])}")
    message = _mapping(values.get("message"))
    if not isinstance(message.get("content"), str):
        raise failed("an object without message.content")
    counts = _count(values.get("prompt_eval_count")), _count(values.get("eval_count"))
    return Completion(message["content"], *counts, cut=values.get("done_reason") == LENGTH)


def failed(message: str) -> CallFailed:
    """The failure of an output; another attempt may do where it speaks of limits, and where it is no whole JSON."""
    return CallFailed(message, retry=bool(BUSY_WORDS.search(message)))


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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _sum(values: Iterable[Any]) -> int | None:
    known = [count for value in values if (count := _count(value)) is not None]
    return sum(known) if known else None


def _message(error: Any) -> str:
    message = _mapping(error).get("message", error)
    return _shown(message if isinstance(message, str) else json.dumps(message))


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ... ({len(text):,} characters)"
