"""Names are found in a world's texts, whatever they are called, and one thing is one name wherever it stands."""

import pytest

from hippo_core.methods.relational.name_finder import NameFinder, key_of

WORLD = (
    "Dr. Aoife O'Neill runs the mill.",
    "O'Neill's mill stands on Harbour Street, says Dr. O'Neill.",
    "Who owns the mill?",
    "Иван Петрович lives in 東京.",
    "Mortgage form. Applicant: Fionnuala Farrokhzad.",
    "Minster of St. Ebba was built by Vell & Sons.",
    "The owner of the kiln is Ben.",
    "The owner of the barge is Carl.",
    "Millers' End Terminus is near the Moth Watchers.",
    "The old dairy burnt. The Watchers saw it.",
    "Nobody rents the old dairy now.",
    "Ann Bell moved in 1999.",
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Dr. Aoife O'Neill runs it.", ["dr aoife o'neill"]),
        ("Is O'Neill there?", ["dr aoife o'neill"]),
        ("Dr. O'Neill’s car is here.", ["dr aoife o'neill"]),
        ("Who owns the mill?", ["mill"]),
        ("A mill is a mill.", []),
        ("Where does Иван Петрович live, in 東京?", ["иван петрович", "東京"]),
        ("Applicant: Fionnuala Farrokhzad.", ["fionnuala farrokhzad"]),
        ("Is Minster of St. Ebba old?", ["minster of st ebba"]),
        ("Vell & Sons built it.", ["vell & sons"]),
        ("Is the owner of the kiln Ben?", ["ben"]),
        ("Millers' End Terminus is shut.", ["millers end terminus"]),
        ("What did the Moth Watchers see?", ["moth watchers"]),
        ("Is the old dairy burnt?", ["old dairy"]),
        ("Was it in 1999 that Bell moved?", ["1999", "ann bell"]),
        ("the moth watchers saw ann bell", []),
        ("", []),
    ],
)
def test_what_a_text_names(text, names):
    found = NameFinder.of(WORLD).find(text)
    assert [span.key for span in found] == names
    for span in found:
        assert {*key_of(text[span.start : span.end]).split()} <= {"dr", *span.key.split()}


def test_a_word_that_others_have_inside_a_sentence_is_a_name_where_it_opens_one():
    finder = NameFinder.of(["Rosewall lies by the sea.", "We went to Rosewall.", "Meteorological post Rosewall."])
    assert [span.key for span in finder.find("Rosewall is far.")] == ["rosewall"]
    assert [span.key for span in finder.find("Meteorological post Rosewall.")] == ["rosewall"]


def test_a_shorter_name_of_two_things_is_neither():
    finder = NameFinder.of(["Ann Bell met Tom Bell.", "They call her Bell."])
    assert [span.key for span in finder.find("Who is Bell?")] == ["bell"]
