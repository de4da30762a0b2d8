"""What all providers share: pauses grow and are jittered, failures are answers; the model in this process."""

import pytest

from hippo_core.errors import LabError
from hippo_core.providers import load_provider
from hippo_core.providers.retry import CallFailed, RetryPolicy, retrying


def fails(times, **how):
    left = [times]

    def attempt():
        if left[0]:
            left[0] -= 1
            raise CallFailed("busy", **how)
        return "done"

    return attempt


def test_pauses_double_with_jitter_and_are_no_shorter_than_asked_for():
    pauses = []
    assert retrying(fails(3, retry=True), RetryPolicy(attempts=4, first_pause=1, longest_pause=3), pauses.append) == "done"
    assert all(half <= pause <= 2 * half for pause, half in zip(pauses, (0.5, 1, 1.5), strict=True)) and len(set(pauses)) == 3
    pauses.clear()
    assert retrying(fails(1, retry=True, after=2.5), RetryPolicy(longest_pause=3), pauses.append) == "done"
    assert pauses == [2.5]


@pytest.mark.parametrize(("how", "least"), [({"retry": False}, 1), ({"retry": True, "after": 99}, 1), ({"retry": True}, 9)])
def test_no_attempt_is_made_that_cannot_help(how, least):
    pauses = []
    with pytest.raises(CallFailed, match="busy"):
        retrying(fails(20, **how), RetryPolicy(attempts=9, longest_pause=3), pauses.append)
    assert len(pauses) == least - 1


def test_the_model_in_this_process_answers_and_counts():
    tiny = load_provider("local:hippo-tiny")
    answer = tiny.answer("Anna left the bicycle at the station.\nWhere did Anna leave the bicycle?", max_tokens=8)
    assert answer.text == "station" and answer.error is None
    assert (answer.tokens_in or 0) > 10 and answer.cached_tokens == 0
    assert tiny.answer("so much " * 2000).error.startswith("hippo-tiny: a prompt of")  # type: ignore[union-attr]
    with pytest.raises(LabError, match="expected temperature 0"):
        tiny.answer("Where?", temperature=0.5)
