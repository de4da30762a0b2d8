"""One normal form of text at every entrance."""

import pytest

from hippo_core.files import LabError
from hippo_core.text import in_markdown, normal, printable


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Zoe\u0308", "Zo\u00eb"),
        ("Anna\u2019s \u2018hat\u2019", "Anna's 'hat'"),
        ("two\u00a0words\u202fhere\u3000too", "two words here too"),
        ("a\r\nb\u2028c\rd", "a\nb\nc\nd"),
        ("\ufeffnone\u200b", "none"),
        ("\u6771\u4eac \U0001f44d", "\u6771\u4eac \U0001f44d"),
        ("", ""),
    ],
)
def test_the_same_text_typed_differently_is_one_text(typed, expected):
    assert normal(typed) == expected
    assert normal(expected) == expected


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["a"], "half \ud83d of one", "\udfff"])
def test_what_is_no_text_is_refused_in_one_line(wrong):
    with pytest.raises(LabError, match="the question") as error:
        normal(wrong, "the question")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("steering", ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\x00", "a\rb", "\u202eabc", "\x7f", "\ud800"])
def test_what_steers_a_terminal_is_not_printed(steering):
    shown = printable(f"a\tline\n{steering}")
    assert shown.startswith("a\tline\n") and "\ufffd" in shown
    assert not [letter for letter in shown if letter not in "\n\t" and not letter.isprintable()]
    assert in_markdown(steering) != steering


def test_plain_text_is_printed_as_it_is():
    text = "Zo\u00eb's \u6771\u4eac \U0001f44d\n\tof 5!"
    assert printable(text) == in_markdown(text) == text
