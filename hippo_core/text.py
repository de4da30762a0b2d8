"""Text as it enters the lab: one normal form for what is taught, asked and answered, whoever typed it."""

import re
import unicodedata

from hippo_core.files import LabError

SURROGATE = re.compile("[\ud800-\udfff]")
TYPED = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201b": "'"})  # apostrophes as a keyboard has them
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MARKUP = re.compile(r"[\\`\[\]<>&|]")  # what begins code, a link, an image, HTML or a cell of a table in Markdown
SPACE = re.compile(r"[^\S\n\t ]|[\u200b\ufeff]")  # a space that no keyboard types, or one without width

BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+\s*")  # line breaks with the space around them


def normal(text: object, what: str = "the text") -> str:
    """A text in Unicode's composed form (NFC), with plain apostrophes and plain spaces; line breaks stay.

    Args:
        text: What somebody typed or a file held.
        what: What the error calls it, for example "the question".

    Raises:
        LabError: It is no string, or it holds half of a character (a lone surrogate).
    """
    if not isinstance(text, str):
        raise LabError(f"{what} must be a string, got {type(text).__name__}")
    if half := SURROGATE.search(text):
        raise LabError(f"{what} holds half of a character (U+{ord(half[0]):04X}) at position {half.start()}; expected whole Unicode text")
    return SPACE.sub(_plain, unicodedata.normalize("NFC", text.replace("\r\n", "\n")).translate(TYPED))


def on_one_line(text: str) -> str:
    """A text without its line breaks: a fact cannot end its line in a prompt, and so bring a question and an answer of its own."""
    return " ".join(part for part in BREAKS.split(text) if part)


def _plain(space: re.Match[str]) -> str:
    """A plain space for one that has a width, nothing for one that has none, a line break for another kind of one."""
    if space[0] in "\u200b\ufeff":
        return ""
    return "\n" if space[0] in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" else " "


def printable(text: object) -> str:
    """Another's text as a terminal may show it. What steers a terminal, what turns the direction of writing and halves of characters each
    become the replacement character; line breaks and tabs stay."""
    return UNSHOWN.sub("\ufffd", str(text).replace("\r\n", "\n"))


def in_markdown(text: object) -> str:
    """Another's text as a page in Markdown shows it: as text, never as a link, an image, code or HTML."""
    return MARKUP.sub(r"\\\g<0>", printable(text))
