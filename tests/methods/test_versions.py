"""Which version of a fact holds: the latest statement that answers alone, nearer to the best one the less certain it is."""

import pytest

from hippo_core.methods import versions
from hippo_core.methods.base import Query
from hippo_core.methods.relational import statement_reader
from hippo_core.methods.relational.statement_reader import Tagged, fitted_reader
from hippo_core.methods.versions import current_first
from tests.methods.asking import needs_minilm
from tests.methods.relational.test_graph import traces

OLD, NEW, OTHER = "The club meets on Tuesdays.", "The club has moved to Thursdays.", "Lena plays the cello."
REST = tuple(f"Lena has {count} cats." for count in range(3, 8))
ANSWERS = {OLD: ("tuesdays", -6.0), NEW: ("thursdays", -3.0)} | dict.fromkeys((OTHER, *REST), ("unknown", 8.0))


@pytest.fixture
def read(monkeypatch):
    """A function from a question, texts in order of telling, their ranks and scores to what stands first and what was replaced; `answers`:
    of each text alone the answer and its margin, `changes`: how likely it tells a change."""

    def first(texts, ranked, scores, answers=ANSWERS, changes=(NEW,), question="When does the club meet?"):
        class Tagger:
            def tag(self, of):
                return [Tagged([], {}, "plain", float(text in changes)) for text in of]

        class Model:
            device = "cpu"

        def alone(lm, query, of, decoding):
            return [answers[text][0] for text in of], [answers[text][1] for text in of], 7.0 * len(of)

        texts, ranked, scores = (*texts, *REST), (*ranked, *range(len(texts), len(texts) + len(REST))), (*scores, *[0.0] * len(REST))
        monkeypatch.setattr(statement_reader, "fitted_reader", lambda device: Tagger())
        monkeypatch.setattr(versions, "_read_alone", alone)
        stored = traces(*texts)
        order, replaced, tokens = current_first(Model(), Query(question, ()), [stored[index] for index in ranked], scores)
        assert sorted(order) == list(range(len(ranked)))
        return [texts[ranked[rank]] for rank in order if texts[ranked[rank]] not in REST], [trace.text for trace in replaced], tokens

    return first


def test_the_latest_statement_that_answers_stands_first_and_says_what_it_replaced(read):
    assert read((OLD, OTHER, NEW), (0, 2, 1), (5.0, 4.0, 0.0)) == ([NEW, OTHER, OLD], [OLD], 14.0)
    order, replaced, _ = read((NEW, OTHER, OLD), (0, 2, 1), (5.0, 4.0, 0.0))
    assert (order[0], replaced) == (OLD, [NEW])


def test_of_what_was_so_before_the_statement_before_the_latest_stands_first(read):
    order, replaced, _ = read((OLD, OTHER, NEW), (2, 0, 1), (5.0, 4.9, 0.0), question="When did the club meet before?")
    assert (order[0], replaced) == (OLD, [])


def test_what_answers_nothing_alone_replaces_nothing(read):
    answers = ANSWERS | {NEW: ("unknown", -3.0)}
    assert read((OLD, OTHER, NEW), (0, 2, 1), (5.0, 4.0, 0.0), answers) == ([OLD, NEW, OTHER], [], 14.0)
    silent = dict.fromkeys(ANSWERS, ("unknown", 5.0))
    assert read((OLD, OTHER, NEW), (2, 0, 1), (5.0, 4.0, 0.0), silent)[0] == [NEW, OLD, OTHER]


@pytest.mark.parametrize(("score", "changes", "replaced"), [(3.0, (NEW,), [OLD]), (3.0, (), []), (4.5, (), [OLD]), (0.5, (NEW,), [])])
def test_a_statement_far_from_the_best_must_be_surer_and_one_of_a_change_less_so(read, score, changes, replaced):
    assert read((OLD, OTHER, NEW), (0, 2, 1), (5.0, score, -0.5), changes=changes, answers=ANSWERS)[1] == replaced


def test_two_statements_of_one_answer_replace_nothing(read):
    answers = ANSWERS | {NEW: ("tuesdays", -3.0)}
    assert read((OLD, OTHER, NEW), (0, 2, 1), (5.0, 4.0, 0.0), answers)[1] == []


@pytest.mark.parametrize(
    ("texts", "scores"),
    [((OLD,), (1.0,)), ((OLD, "Lena has come. She is ill."), (1.0, 0.9)), ((OLD, OTHER, NEW), (9.0, 1.0, 0.0))],
    ids=["one", "a passage", "plain and far"],
)
def test_where_no_other_statement_can_answer_the_model_is_not_asked(read, texts, scores):
    order, replaced, tokens = read(texts, range(len(texts)), scores, changes=())
    assert (tuple(order), replaced, tokens) == (texts, [], 0.0)
    assert current_first(object(), Query("When?", ()), (), ()) == (range(0), (), 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("texts", [("Our vet is Dr. Reyes.", "Now it is Ms. Okafor."), ("7. Our vet is Reyes.", "12) Now it is Okafor.")])
def test_a_title_or_a_list_number_ends_no_sentence(read, texts):
    answers = dict(zip(texts, (("dr. reyes", -5.0), ("ms. okafor", -5.0)), strict=True))
    assert read(texts, (0, 1), (1.0, 0.9), answers, changes=texts)[1] == [texts[0]]


@needs_minilm
@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("Grandma moved to Moss last spring.", True),
        ("The pottery class is now taught by Ms. Duarte.", True),
        ("Grandma lives in Halden.", False),
        ("In May, Denise repaired a notebook at the bridge.", False),
    ],
)
def test_a_change_is_read_in_words_that_nobody_prepared(text, change):
    [tagged] = fitted_reader().tag([text])
    assert (tagged.change > 0.5) == change


def test_a_model_reads_each_statement_alone(lm):
    answers, margins, tokens = versions._read_alone(lm, Query("Who has the lamp?", ()), [OLD, OTHER], "short")
    again, alone, _ = versions._read_alone(lm, Query("Who has the lamp?", ()), [OTHER], "short")
    assert (answers[1], margins[1]) == (again[0], pytest.approx(alone[0], abs=1e-4)) and len(answers) == 2 and tokens > 0
