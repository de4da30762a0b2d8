"""Text as it enters the lab: one normal form for what is taught, asked and answered, whoever typed it, and one way to split it into words.

A word is a run of letters, digits and their combining marks, with apostrophes inside ("lea's"), and with + or # behind it ("c++", "c#").
A number is one word with its sign, currency, point, colon, slash and percent mark; a comma between thousands is left out. Of scripts
that put no space between words, or join particles to them (Chinese characters, hiragana, Hangul, Thai, Lao, Khmer, Burmese, Tibetan), each
character is a word, with its marks; a run of katakana is one. So no dictionary is needed, and a name is found inside a sentence.
"""

import re
import string
import unicodedata
from typing import Any

from hippo_core.errors import LabError

OWN_ANSWER_TOKENS = 32  # new tokens of an answer about what is a user's own, at most; the model stops by itself
SURROGATE = re.compile("[\ud800-\udfff]")
TYPED = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u201b\u00b4", "'"))  # apostrophes as a keyboard has them
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MARKUP = re.compile(r"[\\`\[\]<>&|]")  # what begins code, a link, an image, HTML or a cell of a table in Markdown
SPACE = re.compile(r"[^\S\n\t ]|[\u200b\ufeff]")  # a space that no keyboard types, or one without width

BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+\s*")  # line breaks with the space around them

KINDS = [(character, unicodedata.category(character)[0]) for character in map(chr, range(0x80, 0x1F000))]
MARKS = "".join(character for character, kind in KINDS if kind == "M") + "\u200c\u200d"
PUNCTUATION = re.escape(string.punctuation) + "".join(character for character, kind in KINDS if kind == "P")
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Tibetan, Burmese, Khmer
    "\u3005-\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
)
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
CURRENCY = "$\u20a0-\u20cf\u00a2-\u00a5"
SPACED = rf"[^\W{UNSPACED}{KATAKANA}]"
RUN = rf"{SPACED}(?:{SPACED}|[{MARKS}])*"
SIGN = rf"(?:(?<!{SPACED})(?<![%)])[-+]|(?<!\S)[<>\u2264\u2265\u00b1])?"
DIGITS = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:[.:/]\d+)+|(?<!,)(?:0,\d+|\d+,\d\d?)(?![\d,])|\d+|(?<![\w.])\.\d+)"
NUMBER = rf"(?<!{SPACED}){SIGN}[{CURRENCY}]?{DIGITS}(?:[%\u2030{CURRENCY}](?!{SPACED})|\u00b0?)(?:{RUN})?"
GRADE = rf"[+#\u266d]+(?!{SPACED})|(?<=(?<!\w)[A-Za-z])-(?![\w-])|(?<=(?<!\w)[Aa][Bb])-(?![\w-])"  # C++, F#, A-, AB-
WORD = re.compile(rf"(?:{NUMBER}|{RUN}(?:'{RUN})*)(?:{GRADE})?|(?=\w)[{UNSPACED}][{MARKS}]*|[{KATAKANA}][{KATAKANA}{MARKS}]*")
SIGNS = {
    0x2212: "-",
    **dict.fromkeys(range(0x2010, 0x2014), "-"),
    0x266F: "#",
    0xAD: None,
    **dict.fromkeys((0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
}
WIDE = re.compile("[\uff00-\uffef]+")  # letters, digits and marks as wide as a Chinese character, and narrow katakana
DIGIT = re.compile(r"[^\D0-9]")
THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,])")
APART = re.compile(rf"(?<=\d) (?=[%\u2030{CURRENCY}](?!\w)|\u00b0)|(?<=[{CURRENCY}])(?<!\d[{CURRENCY}]) (?=\d)")


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


def normal_values(value: Any, what: str) -> Any:
    """A value as JSON has it with each of its texts in the normal form; see `normal`."""
    if isinstance(value, dict):
        return {name: normal_values(item, what) for name, item in value.items()}
    if isinstance(value, list):
        return [normal_values(item, what) for item in value]
    return normal(value, what) if isinstance(value, str) else value


def folded(text: str) -> str:
    """A text for comparison: in small letters, without what is only a way of writing (wide letters, other digits, commas of thousands)."""
    plain = WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), unicodedata.normalize("NFC", text))
    plain = unicodedata.normalize("NFC", plain.translate(TYPED | SIGNS).casefold())
    plain = DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)
    return APART.sub("", THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain))


def words(text: str) -> list[str]:
    """The words and numbers of a text, in small letters, in order."""
    return WORD.findall(folded(text))


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
