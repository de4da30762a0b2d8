"""What a criterion can be found to be. Apart from how it is judged, so that who only counts verdicts imports no statistics."""

from typing import Literal, get_args

Word = Literal["met", "not met", "not shown", "not judged"]
VERDICTS: tuple[Word, ...] = get_args(Word)
