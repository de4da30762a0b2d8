"""Codes of words and grams: whole numbers, a text nearest to itself, and what a misspelt word keeps."""

import numpy as np
import pytest

from hippo_core.retrieval.lexicon import SCALE, Lexicon, grams, words
from hippo_core.retrieval.sparse_key import lengths

TEXTS = ["On Friday, Carla sold a guitar at the market.", "On Friday, Omar sold a lamp at the market.", "In May, Lea's cat met Omar."]


def test_words_and_grams():
    assert words("Lea\u2019s CAT, 3 times") == ["lea's", "cat", "3", "times"]
    assert grams("A lamp") == ["<a>", "<la", "lam", "amp", "mp>", "<lam", "lamp", "amp>"]
    assert grams("") == words("?!") == []


@pytest.mark.parametrize("terms", [words, grams])
def test_each_text_is_nearest_to_itself_and_rows_have_one_length(terms):
    lexicon = Lexicon.of(TEXTS, terms)
    rows = lexicon.rows(TEXTS)
    assert rows.values.dtype == np.int16
    assert lengths(rows.values) == pytest.approx([SCALE] * 3, rel=2e-3)
    for number, text in enumerate(TEXTS):
        cosines = rows.cosines(np.arange(3), lexicon.rows([text]))
        assert cosines.argmax() == number
        assert cosines[number] == pytest.approx(1.0, abs=1e-3)


def test_rare_words_count_more_and_unknown_ones_take_their_part():
    lexicon = Lexicon.of(TEXTS, words)
    rows = lexicon.rows(TEXTS)
    carla, friday = (rows.cosines(np.arange(3), lexicon.rows([text]))[0] for text in ("Carla", "Friday"))
    assert carla > friday > 0
    assert rows.cosines(np.arange(3), lexicon.rows(["Carla zyx"]))[0] < carla


def test_grams_know_a_misspelt_name_and_words_do_not():
    for terms, knows in ((words, False), (grams, True)):
        lexicon = Lexicon.of(TEXTS, terms)
        assert (lexicon.rows(TEXTS).cosines(np.arange(3), lexicon.rows(["Crla"]))[0] > 0) == knows


def test_an_empty_text_and_an_empty_lexicon_have_nothing_in_common_with_anything():
    lexicon = Lexicon.of(TEXTS, words)
    assert lexicon.rows(TEXTS).cosines(np.arange(3), lexicon.rows([""])).tolist() == [0, 0, 0]
    assert Lexicon.of([], words).rows(["word"]).values.sum() == 0
