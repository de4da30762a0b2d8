"""One normal form of text at every entrance."""

import re
import string

import pytest

from hippo_core.errors import LabError
from hippo_core.results.scores import ARTICLES, normalise
from hippo_core.suites.draw import worlds
from hippo_core.text import in_markdown, normal, normal_values, printable, words


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lea\u2019s CAT, 3 times; 5km", ["lea's", "cat", "3", "times", "5km"]),
        ("1.5 litres at 7:30pm, -5 (\u22127), 1/2", ["1.5", "litres", "at", "7:30pm", "-5", "-7", "1/2"]),
        ("1,000 and 12,345.60, but 1,5 and 1,2,3", ["1000", "and", "12345.60", "but", "1,5", "and", "1", "2", "3"]),
        ("$5, -\u20ac1.20, 50% or 50 %", ["$5", "-\u20ac1.20", "50%", "or", "50%"]),
        ("3-5, 2024-05-01, v1.5.", ["3", "5", "2024", "05", "01", "v1", "5"]),
        ("C++, C# (A+)", ["c++", "c#", "a+"]),
        ("\u4ed6\u4f4f\u5728\u5317\u4eac\u3002", ["\u4ed6", "\u4f4f", "\u5728", "\u5317", "\u4eac"]),
        ("\u6771\u4eac\u30bf\u30ef\u30fc\u3078", ["\u6771", "\u4eac", "\u30bf\u30ef\u30fc", "\u3078"]),
        ("\uc11c\uc6b8\uc5d0 2024\ub144", ["\uc11c", "\uc6b8", "\uc5d0", "2024", "\ub144"]),
        ("\u0e17\u0e35\u0e48\u0e19\u0e31\u0e48\u0e19", ["\u0e17\u0e35\u0e48", "\u0e19\u0e31\u0e48", "\u0e19"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902", ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u092e\u0947\u0902"]),
        ("\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u0661\u0662", ["\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f", "12"]),
        ("Zoe\u0308 STRASSE stra\u00dfe \uff11\uff12\uff21", ["zo\u00eb", "strasse", "strasse", "12a"]),
        ("\u6c14\u6e29-5\u5ea6", ["\u6c14", "\u6e29", "-5", "\u5ea6"]),
        ("\u4ef7\u683c1.5\u5143", ["\u4ef7", "\u683c", "1.5", "\u5143"]),
        ("50%\u7684 C++\u8bed", ["50%", "\u7684", "c++", "\u8bed"]),
        ("\u2013 \u20135 \u20115, 5\u20136", ["-5", "-5", "5", "6"]),
        ("5 \u20ac, \u20ac 5, 5 \u00b0C", ["5\u20ac", "\u20ac5", "5\u00b0c"]),
        ("<5, >5 \u22645", ["<5", ">5", "\u22645"]),
        ("A-, (O-) AB- a-b", ["a-", "o-", "ab-", "a", "b"]),
        ("F\u266f F# B\u266d", ["f#", "f#", "b\u266d"]),
        ("it\u00b4s", ["it's"]),
        ("\U0001f44d \u2026 ?! ' - + #", []),
    ],
)
def test_words_of_every_script_and_whole_numbers(text, expected):
    assert words(text) == expected
    assert words(" ".join(expected)) == expected


@pytest.mark.parametrize("suite", ["episodic", "episodic_multi", "semantic", "spatial", "babi"])
def test_the_texts_of_generated_suites_split_as_they_always_did(suite):
    drawn = list(worlds(suite, n=60))
    texts = {text for world in drawn for text in (*(fact.text for fact in world.facts), *(item.question for item in world.items))}
    texts |= {answer for world in drawn for item in world.items for answer in item.answers}
    assert all(words(text) == re.findall(r"\w+(?:'\w+)*", text.lower()) for text in texts)
    bare = str.maketrans("", "", string.punctuation)
    assert all(normalise(text) == " ".join(word for word in text.lower().translate(bare).split() if word not in ARTICLES) for text in texts)


def test_texts_inside_values_are_normal():
    values = {"text": "Zoe\u0308\u2019s", "answers": ["a\u00a0b", 3, None]}
    assert normal_values(values, "a line") == {"text": "Zo\u00eb's", "answers": ["a b", 3, None]}
    with pytest.raises(LabError, match=r"f.jsonl:2 holds half of a character"):
        normal_values({"a": ["\ud83d"]}, "f.jsonl:2")
