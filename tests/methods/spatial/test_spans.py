"""Names of places as what recurs over the statements of a world."""

import numpy as np
import pytest

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.learned import fitted_places
from hippo_core.methods.spatial.reading import mark
from hippo_core.methods.spatial.spans import WordStatistics, best_spans, consensus_names, tokens, without_means
from tests.methods.asking import needs_minilm


def scored(text, *names):
    """Scores that say of these words of a text that they are names."""
    own = tokens(text)
    scores = np.tile([1.0, -1.0, -1.0], (len(own), 1))
    for name in names:
        words = [token.word for token in tokens(name)]
        at = next(at for at in range(len(own)) if [token.word for token in own[at : at + len(words)]] == words)
        scores[at : at + len(words)] = [-1.0, -1.0, 1.0]
        scores[at] = [-1.0, 1.0, -1.0]
    return own, scores


def world(*texts):
    """The names that a world bears out, of these in each of its statements."""
    known = WordStatistics([text for text, *_ in texts])
    return consensus_names(known, [best_spans(*scored(text, *names)) for text, *names in texts])


def test_a_name_is_its_best_words_and_none_over_a_mark():
    own, scores = scored("At the captain's cabin, turn east.", "captain's cabin")
    assert [" ".join(token.word for token in own[start:end]) for start, end in best_spans(own, scores)] == ["captain 's cabin"]
    own, scores = scored("Past the mill, turn.", "mill")
    scores[3] = [-1.0, -1.0, 2.0]  # the comma
    assert [own[start].word for start, end in best_spans(own, scores) if end == start + 1] == ["mill"]


def test_what_one_statement_adds_to_a_name_is_no_part_of_it():
    texts = [("The study pointing east is by the mess.", "study pointing", "mess"), ("The study is by the den.", "study", "den")]
    again = ("The study adjoins the mess.", "study", "mess")
    assert world(*texts, again).places == {"study", "mess", "den"}
    assert "clock_tower" in world(*texts, ("The tower is by the clock tower.", "tower", "clock tower")).places


def test_a_piece_that_never_stands_without_the_rest_is_no_name():
    texts = [("Gift shop and hall share a wall.", "Gift shop", "hall"), ("From the gift shop one sees the hall.", "gift", "hall")]
    assert world(*texts).places == {"gift_shop", "hall"}


def test_what_is_mostly_no_name_is_none():
    texts = [("Turn at the mill.", "mill"), ("The den is on the turn.", "den", "turn"), ("At the turn is the mill.", "mill")]
    assert world(*texts).places == {"mill", "den"}


def test_names_are_marked_with_an_article_or_none_in_letters_of_either_size():
    result = world(
        ("Lighthouse is by Platform 12.", "Lighthouse", "Platform 12"), ("The x-ray room is by lighthouse.", "x-ray room", "lighthouse")
    )
    assert result.names == {"platform_one_two": "Platform 12", "x_ray_room": "x-ray room", "lighthouse": "lighthouse"}
    marked = [mark(text, result.names) for text in ("Lighthouse, then X-ray room.", "A lighthouse has lamps.", "from the Platform 12")]
    assert marked == ["the lighthouse, then the x_ray_room.", "A lighthouse has lamps.", "from the platform_one_two"]


TEXTS = [
    "The usher's box snuggles up to the mirror maze.",
    "Wig cellar and usher's box share a curtain.",
    "The mirror maze is older than the wig cellar.",
    "The prop-store cowers beside the wig cellar.",
]


@needs_minilm
def test_a_way_over_names_of_several_words_that_no_pattern_knows():
    atlas = MapAnswerer(TEXTS, reader=fitted_places())
    assert atlas.map.labels.keys() == {"ushers_box", "mirror_maze", "wig_cellar", "prop_store"}
    reply = atlas.answer("Which places does one pass on the way from mirror maze to the prop-store?")
    assert reply and reply.answer == "usher's box, wig cellar, prop-store"


@needs_minilm
@pytest.mark.parametrize("wordless", ["\U0001f44d", "\u2026", "", "---"])
def test_a_statement_without_a_word_changes_no_name(wordless):
    names, texts = fitted_places().names, ["The mill is by the barn.", "The barn is by the den."]
    assert names([texts[0], wordless, texts[1]]).places == names(texts).places == {"mill", "barn", "den"}
    assert names([wordless]).places == frozenset()


def test_what_is_always_gone_along_or_over_is_no_place():
    texts = [
        ("It is a step west along the quay from the inn to the mill.", "quay", "inn", "mill"),
        ("The den is by the mill, by the ferry.", "den", "mill", "ferry"),
        ("Through the inn one gets by the ferry to the fort.", "inn", "ferry", "fort"),
    ]
    known = WordStatistics([text for text, *_ in texts])
    result = consensus_names(known, [best_spans(*scored(text, *names)) for text, *names in texts])
    assert result.places == {"quay", "inn", "mill", "den", "ferry", "fort"}
    assert without_means(result, known).places == {"inn", "mill", "den", "fort"}
