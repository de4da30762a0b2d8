"""Look-ups in large worlds find what a plain search finds, and look through a shared list once."""

from hypothesis import given
from hypothesis import strategies as st

from hippo_core.suites.lookup import TextLookup, cached_by_identity, positions

WORDS = st.text(st.sampled_from("ab "), max_size=20)


@given(st.lists(WORDS, max_size=8), WORDS)
def test_texts_inside_another_text_are_detected(texts, text):
    named = {str(number): known_text for number, known_text in enumerate(texts)}
    assert TextLookup(named).inside(text) == [name for name, known_text in named.items() if known_text in text]


@given(st.lists(st.sampled_from("abcdef")))
def test_positions_are_those_of_a_search(ids):
    assert positions(tuple(ids)) == {name: ids.index(name) for name in ids}


def test_a_shared_list_is_worked_out_once():
    seen = []
    work = cached_by_identity(lambda ids: seen.append(ids) or len(ids))
    shared, equal = tuple("abc"), tuple("abc")
    assert [work(ids) for ids in (shared, shared, equal, shared)] == [3, 3, 3, 3]
    assert [id(ids) for ids in seen] == [id(shared), id(equal)]
