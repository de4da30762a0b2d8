"""How a model is spoken to: its chat template, whether that has a system turn, and what ends a turn or opens a text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from jinja2 import TemplateError
from tokenizers import normalizers

from hippo_core.errors import LabError

# For models without a template: instruction, blank line, the user's lines, and "Answer:" for the model to go on.
GENERIC = (
    "{{ bos_token or '' }}{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ message['content'] }}\n\n"
    "{% elif message['role'] == 'user' %}{{ message['content'] }}\n"
    "{% else %}Answer: {{ message['content'] }}\n\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}Answer:{% endif %}"
)
UNSEEN = "\ufdd0"  # no character; it breaks what only looks like a control token, and the tokenizer leaves it out
FIXED_DATE = "26 Jul 2024"  # some templates print today's date: the same prompt must have the same bytes on every day


@dataclass(frozen=True)
class Template:
    """A chat template and what was learnt by trying it. A turn ends at one of `end_ids` or, where none marks it, of `end_strings`."""

    text: str
    origin: Literal["model", "generic", "given"]  # the model's own, the lab's generic one, or one given in params/models
    has_system: bool
    begin: str  # what the tokenizer puts before every text, "" where nothing
    end_ids: tuple[int, ...]
    end_strings: tuple[str, ...]


def template_for(tokenizer: Any, wanted: str) -> Template:
    """The template that a spec's `chat_template` asks for: "model", "generic" or a Jinja text."""
    text, origin = _text_and_origin(tokenizer, wanted)
    end_ids, end_strings = _turn_end(tokenizer, text)
    return Template(text, origin, _has_system(tokenizer, text), _begin(tokenizer), end_ids, end_strings)


def chat(tokenizer: Any, template: str, messages: list[dict[str, str]], ask: bool = True) -> str:
    """The conversation as one string; with `ask`, it ends where the model's next turn starts. What is said in it makes no control token."""
    escaped = [{**message, "content": as_text(tokenizer, message["content"])} for message in messages]
    return tokenizer.apply_chat_template(escaped, chat_template=template, tokenize=False, add_generation_prompt=ask, date_string=FIXED_DATE)


def as_text(tokenizer: Any, text: str) -> str:
    """What somebody wrote, so that the tokenizer reads it as text: "<|end|>" in it is seven characters and ends nothing."""
    return _breaker(tokenizer)(text)


@lru_cache(maxsize=8)
def _breaker(tokenizer: Any) -> Callable[[str], str]:
    """What breaks the spellings of a tokenizer's own tokens, which it looks for before anything else, and makes it leave out the breaks."""
    own = {token.content: token.normalized for token in tokenizer.added_tokens_decoder.values()}
    names = sorted((name for name in own if len(name) > 1 and "\n" not in name and not name.isspace()), key=len, reverse=True)
    if not names:
        return str
    backend = tokenizer.backend_tokenizer
    backend.normalizer = normalizers.Sequence([normalizers.Replace(UNSEEN, ""), *([backend.normalizer] if backend.normalizer else [])])
    begins = re.compile(f"(?=({'|'.join(map(re.escape, names))}))(.)", re.DOTALL)
    return lambda text: begins.sub(lambda hit: hit[2] + (" " if own[hit[1]] else UNSEEN), text.replace(UNSEEN, ""))


def _text_and_origin(tokenizer: Any, wanted: str) -> tuple[str, Literal["model", "generic", "given"]]:
    if wanted == "generic" or (wanted == "model" and not tokenizer.chat_template):
        return GENERIC, "generic"
    if wanted == "model":
        return tokenizer.get_chat_template(), "model"
    if "{{" not in wanted:
        raise LabError(f"chat_template must be 'model', 'generic' or a Jinja template, got {wanted!r}")
    return wanted, "given"


def _has_system(tokenizer: Any, text: str) -> bool:
    """Whether a system turn comes through: some templates refuse one, some drop it silently."""
    try:
        return "PROBE" in chat(tokenizer, text, [{"role": "system", "content": "PROBE"}, {"role": "user", "content": "Hello"}])
    except TemplateError:
        return False


def _turn_end(tokenizer: Any, text: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """What the template writes right after an assistant's words: a special token, or else a line break."""
    try:
        turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "PROBE"}]
        after = chat(tokenizer, text, turns, ask=False).rpartition("PROBE")[2]
    except TemplateError as error:
        raise LabError(f"the chat template does not render: {' '.join(str(error).split())}") from None
    ids = tokenizer(after, add_special_tokens=False).input_ids
    if ids and ids[0] in tokenizer.added_tokens_decoder:
        return (ids[0],), ()
    return (), ("\n",) if after.startswith("\n") else ()


def _begin(tokenizer: Any) -> str:
    opening = tokenizer("a").input_ids[:1]
    return tokenizer.bos_token if tokenizer.bos_token_id is not None and opening == [tokenizer.bos_token_id] else ""
