"""A static page, judged without a browser: its elements, the styles declared for them, and what its scripts are written to do.

Read are the page, and the style sheets and scripts of the workspace that it names. Nothing is run. So it can tell
- whether elements that a CSS selector finds are there, how many, and with which words;
- which declared value wins for an element, by specificity and order; inheritance, `!important`, and `@media` and the like are left out;
- whether a script adds a listener for an event to an element that it looks up by a literal selector or id, and whether that listener, with
  the script's functions that it calls, holds certain words; events that bubble to a parent's listener are not followed;
- whether brackets and quotes of scripts close, and whether one adds a listener to an element that the page lacks.
It cannot tell whether a script runs to its end, or computes what it should: that takes a score command.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

import tinycss2
from bs4 import BeautifulSoup, Tag
from soupsieve import SelectorSyntaxError

from hippo_core.errors import LabError
from hippo_core.protocols.paired.agents.workspace import DEEPEST, read
from hippo_core.protocols.paired.items import PageElement

MOST_BYTES, MOST_TAGS, MOST = 1 << 18, 4000, 500  # of a file, of a page, of rules and the like: an agent must not keep the harness busy
REMOTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+)
    |(?P<quoted>"(?:\\.|[^"\\\n])*+"?+|'(?:\\.|[^'\\\n])*+'?+|`(?:\\.|[^`\\])*+`?+)
    |(?P<pattern>(?:(?<=[(,=:!&|?])|(?<=[(,=:!&|?]\s))/(?:\\.|\[(?:\\.|[^\]\\\n])*+\]|[^/\\\n\[])++/)
    |(?P<bracket>[()\[\]{}])|[\w$]++|.""",
    re.VERBOSE | re.DOTALL,
)
CLOSES = {")": "(", "]": "[", "}": "{"}
LOOKUP = r"""document\.(?P<by>querySelector(?:All)?+|getElementById)\(\s*+(?P<quote>["'`])(?P<what>[^\n$]{1,200}?)(?P=quote)\s*+\)"""
BOUND = rf"\b(?:const|let|var)\s++(?P<name>[\w$]++)\s*+(?:=|of)\s*+{LOOKUP}"  # a variable, or that of a loop
EACH = rf"{LOOKUP}\.forEach\(\s*+(?:function\s*+)?+\(?+(?P<name>[\w$]++)"
ADDED = r"\??+\.addEventListener\(\s*+[\"'`](?P<event>[\w:-]++)[\"'`]\s*+,"
NAMED = r"\b(?:function|const|let|var)\s++(?P<name>[\w$]++)"
GOES_ON = re.compile(r"^\s*$|[=>,?:&|+.(]\s*$|^function\b[^{]*$")  # a line that ends so is not the end


def lacking(wanted: PageElement, workspace: Path) -> str:
    """Why a page of a workspace does not hold what is wanted; "" where it does. Nothing that the page holds makes it raise."""
    try:
        page = Page(workspace, wanted.file)
        if wanted.listens and (fault := page.script_fault()):
            return f"{wanted.file}: {fault}"
        count = sum(page.has(element, wanted) for element in page.soup.select(wanted.select))
    except LabError as error:
        return str(error)
    except RecursionError:
        return f"{wanted.file} is nested too deep"
    if count == wanted.count or (count and wanted.count is None):
        return ""
    demands = wanted.model_dump(exclude_defaults=True, exclude={"file", "select", "count"})
    also = "".join(f", {name} {value!r}" for name, value in demands.items())
    return f"{wanted.file} has {count} of {wanted.select!r}{also}, not {'one or more' if wanted.count is None else wanted.count}"


class Page:
    """A page with its style sheets and scripts. LabError where one is too large, or is named and not there."""

    def __init__(self, workspace: Path, file: str) -> None:
        self.workspace, self.file = workspace, file
        text = self._text(file)
        if text.count("<") > MOST_TAGS:
            raise LabError(f"{file} has more than {MOST_TAGS} tags, too many to judge")
        self.soup = BeautifulSoup(text, "html.parser")
        if any(len(list(tag.parents)) > DEEPEST for tag in self.soup(True)):
            raise RecursionError
        self.selected: dict[str, set[int]] = {}
        sheets = "\n".join(self._part(tag, "href") for tag in self.soup.select("link[rel~=stylesheet], style"))
        self.rules = sorted(_bounded(_rules(sheets)), key=lambda rule: rule[0])  # in order where specificity is the same
        self.script = "\n".join(_code(self._part(tag, "src")) for tag in self.soup.select("script"))

    def _text(self, file: str) -> str:
        raw = read(self.workspace, file)
        if len(raw) > MOST_BYTES:
            raise LabError(f"{file} has {len(raw)} bytes, too many to judge; at most {MOST_BYTES}")
        return raw.decode("utf-8", errors="replace")

    def _part(self, tag: Tag, attribute: str) -> str:
        """What a tag holds, or the file that it names; nothing where that lies elsewhere in the network."""
        path = re.split(r"[?#]", str(tag.get(attribute, "")))[0]
        if not path:
            return tag.get_text()
        return "" if REMOTE.match(path) else self._text(normpath(join(dirname(self.file), path)))

    def has(self, element: Tag, wanted: PageElement) -> bool:
        """Whether an element has the text, the declared styles and the listeners that are wanted."""
        styles = _declared(";".join([*(rule[2] for rule in self.rules if self._is(element, rule[1])), str(element.get("style", ""))]))
        return (
            _plain(wanted.text) in _plain(element.get_text(" "))
            and all(styles.get(name) == _plain(value) for name, value in wanted.style.items())
            and all(
                any(all(word in body for word in words) for body in self.listeners(element, on)) for on, words in wanted.listens.items()
            )
        )

    def _is(self, element: Tag, selector: str) -> bool:
        if selector not in self.selected:
            try:
                self.selected[selector] = {id(each) for each in self.soup.select(selector)}
            except (SelectorSyntaxError, ValueError, NotImplementedError):  # the page's own, which may be wrong or depend on a user
                self.selected[selector] = set()
        return id(element) in self.selected[selector]

    def script_fault(self) -> str:
        """What is wrong with the scripts as they are written; "" where nothing is seen."""
        opened: list[str] = []
        for token in TOKEN.finditer(self.script):
            text = token.group()
            if token["bracket"] and text not in CLOSES:
                opened.append(text)
            elif (token["quoted"] and (len(text) < 2 or text[-1] != text[0])) or (token["bracket"] and opened[-1:] != [CLOSES[text]]):
                return f"a script breaks at {text[:40]!a}: a quote or bracket without the other"
            elif token["bracket"]:
                opened.pop()
        if opened:
            return f"a script does not close {opened[-1]!r}"
        lookups = _bounded(re.finditer(rf"{LOOKUP}\.addEventListener", self.script))
        lost = (match for match in lookups if not any(self._is(tag, _selector(match)) for tag in self.soup.select("*")))
        return next((f"a script listens on {match['what']!a}, which the page lacks" for match in lost), "")

    def listeners(self, element: Tag, event: str) -> Iterator[str]:
        """The code of each listener for an event on an element, with the functions that it calls."""
        bound = [match for pattern in (BOUND, EACH) for match in _bounded(re.finditer(pattern, self.script))]
        names = {match["name"] for match in bound if self._is(element, _selector(match))}
        for match in _bounded(re.finditer(rf"(?:(?<![\w$.])(?P<known>[\w$]++)|{LOOKUP}){ADDED}", self.script)):
            here = match["known"] in names if match["known"] else self._is(element, _selector(match))
            if here and match["event"] == event:
                yield self._with_called(_span(self.script, match.end()))

    def _with_called(self, body: str) -> str:
        """Code, with the functions and values of the scripts that it names, and those that they name."""
        known = {match["name"]: match.start() for match in _bounded(re.finditer(NAMED, self.script))}
        parts, waiting = [], [body]
        while waiting:
            parts.append(waiting.pop())
            for name in known.keys() & re.findall(r"[\w$]+", parts[-1]):
                waiting.append(_span(self.script, known.pop(name)))
        return "\n".join(parts)


def _bounded(some: Iterable[Any]) -> list[Any]:
    if len(some := list(islice(some, MOST + 1))) > MOST:
        raise LabError(f"a page with more than {MOST} rules of style, or names, lookups or listeners of scripts, is not judged")
    return some


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _selector(lookup: re.Match[str]) -> str:
    return f'[id="{lookup["what"]}"]' if lookup["by"] == "getElementById" else lookup["what"]


def _rules(sheet: str) -> Iterator[tuple[list[int], str, str]]:
    """The specificity, selector and declarations of each rule of a style sheet."""
    for rule in tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True):
        if rule.type == "qualified-rule":
            for selector in (part.strip() for part in tinycss2.serialize(rule.prelude).split(",")):
                kinds = (r"#[\w-]", r"\.[\w-]|\[|(?<!:):(?!:)", r"(?:^|[\s>+~])[a-zA-Z]")  # ids; classes, attributes; tags
                yield [len(re.findall(kind, selector)) for kind in kinds], selector, tinycss2.serialize(rule.content)


def _declared(block: str) -> dict[str, str]:
    parsed = tinycss2.parse_blocks_contents(block, skip_comments=True, skip_whitespace=True)
    return {each.name: _plain(tinycss2.serialize(each.value)) for each in parsed if each.type == "declaration"}


def _code(script: str) -> str:
    """A script without its comments."""
    return "".join(" " if token["comment"] else token.group() for token in TOKEN.finditer(script))


def _span(code: str, begin: int) -> str:
    """One function or expression of a script: up to where its block closes, or it ends."""
    depth = end = 0
    for token in TOKEN.finditer(code, begin):
        end = token.end()
        if token["bracket"]:
            depth += -1 if token.group() in CLOSES else 1
        if depth < 0 or (depth == 0 and (token.group() in ";}" or (token.group() == "\n" and not GOES_ON.search(code[begin:end])))):
            break
    return code[begin:end]
