"""Numbers in README and docs that nothing generates: `python -m tests.unbacked` writes them as tests/unbacked.yaml lists them."""

import json
import re
from textwrap import wrap

from docs.build_tables import REGION, pages
from docs.sentences import quoted_numbers, sentences
from hippo_core.files import read_yaml, root

NO_RESULT = {  # kinds of numbers that are no results, and how they are known
    "code": r"(?ms)^```.*?^```|`[^`\n]*`",
    "what others published, a sentence with its source": r"(?:[^.\n|]|\.\d)*\]\(https://[^)\n]*\)(?:[^.\n|]|\.\d)*",
    "the target of a link or picture": r"(?<=\])\([^)\n]*\)",
    "version": r"\b(?:Python|kvpress) \d+(?:\.\d+)+|\b\d+\.\d+\.\d+\b",
    "date": r"\b20\d\d-\d\d-\d\d\b|\b1[012]-\d\d\b",
    "name with a number in it": r"\b[A-Za-z][\w@]*[-=@.]?\d[\w.@-]*|\bsection \d\w*(?:\.\d+)*",
    "level of an interval or a test": r"\b\d\d(?:\.\d)?\s?%(?=[ -](?:intervals?|power|confidence))|\b(?:at|keeps?) \.05\b",
    "setting": r"\b[kn] ?= ?\d+|\b(?:[Aa]t|with|than|room of) [\d,]+ tokens|[\d.]+ million parameters|\d+ of [\d,]+ units",
    "download": r"\b\d+ MB(?=: a model)",
}
UNITS = "%|ms|us|s|seconds?|min|minutes?|hours?|nats?|KB|MB|MiB|GB|GiB|bytes?|tokens?|times"
RESULT = re.compile(rf"[+−]?\d*\.\d+|[+−]?\d[\d,]*(?=\s?(?:{UNITS})\b|\s?%)|\d+ of \d[\d,]*|(?<=\|)[ *−+~<]*\d[\d,]*[ *]*(?=\|)")


def listed() -> dict[str, dict[str, list[str]]]:
    """Of each page the phrases that hold settings, and the numbers that nothing generates yet."""
    return read_yaml(root() / "tests/unbacked.yaml")


def unbacked(page: str) -> list[str]:
    """The numbers of a page, by its path from the root, that no table or sentence generates, in the page's order."""
    text = pages()[page].read_text(encoding="utf-8")
    for begin, end, _ in quoted_numbers(text, sentences().get(page, [])):
        text = text[:begin] + "_" * (end - begin) + text[end:]
    for phrase in listed()["settings"].get(page, []):
        if phrase not in text:
            raise ValueError(f"tests/unbacked.yaml: {page} has no {phrase!r} any more; strike it out")
        text = text.replace(phrase, "_")
    return unbacked_in(text)


def unbacked_in(text: str) -> list[str]:
    """The numbers of a text in Markdown that are results, those of generated tables left out."""
    text = REGION.sub("", text)
    for pattern in NO_RESULT.values():
        text = re.sub(pattern, "_", text)
    return [hit[0].strip(" *") for hit in RESULT.finditer(text)]


def main() -> None:
    """Print the list."""
    debt = {page: numbers for page in pages() if (numbers := unbacked(page))}
    for page, numbers in debt.items():
        print("\n".join(wrap(f"{page}: {json.dumps(numbers, ensure_ascii=False)}", 140, subsequent_indent="    ", break_long_words=False)))


if __name__ == "__main__":
    main()
