"""Retries: exponential back-off with jitter, and longer where the provider says when to come again."""

import math
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

Result = TypeVar("Result")
BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # HTTP statuses after which another attempt may do
# what commands print where a status would stand
BUSY_WORDS = re.compile(r"(?i)\b(429|503|529)\b|rate.?limit|too many requests|overloaded|resource.?exhausted|temporarily unavailable")


class CallFailed(Exception):
    """An attempt without an answer. `retry`: whether another one may bring it; `after`: seconds that the provider asks to wait, or None."""

    def __init__(self, message: str, retry: bool = False, after: float | None = None) -> None:
        super().__init__(message)
        self.retry, self.after = retry, after


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, and how long is waited."""

    attempts: int = 4  # in all
    first_pause: float = 1.0  # seconds before the second attempt; each further pause is twice as long
    longest_pause: float = 120.0  # seconds; a provider that asks for more is not waited for
    timeout: float = 120.0  # seconds of one attempt


def retrying(attempt: Callable[[], Result], policy: RetryPolicy, sleep: Callable[[float], None] = time.sleep) -> Result:
    """The result of `attempt`. The CallFailed of its last failure where all attempts fail or no further one can help."""

    def worth(error: BaseException) -> bool:
        return isinstance(error, CallFailed) and error.retry and (error.after or 0) <= policy.longest_pause

    def pause(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.after if isinstance(error, CallFailed) and error.after else 0.0
        backoff = policy.first_pause * 2 ** (state.attempt_number - 1) * random.uniform(0.5, 1.0)  # many clients do not come back at once
        return max(asked, min(backoff, policy.longest_pause))

    loop = Retrying(sleep=sleep, stop=stop_after_attempt(policy.attempts), wait=pause, retry=retry_if_exception(worth), reraise=True)
    return loop(attempt)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks to wait: a number, or an HTTP date (RFC 9110, section 10.2.3). None for anything else."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
