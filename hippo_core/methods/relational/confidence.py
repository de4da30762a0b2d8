"""The confidence that a path leads to the answer: a logistic function of its evidence (`Search`), fitted on validation worlds
(recipes/path_confidence.py), one for each encoder, and one for questions of a kind that patterns know."""

from functools import cache

from hippo_core.errors import LabError
from hippo_core.files import read_sealed, root
from hippo_core.retrieval.confidence import Confidence

FILE = "data/weights/relational/path_confidence.json"
FIT = "python -m recipes.path_confidence"
MATTER = "matter"  # when statements on a path are of one matter
ANEW = f"delete it and fit it again: `{FIT}`"  # what is fitted of other encoders stays in a whole file


def regime(by_patterns: bool) -> str:
    """The name of a function in the file."""
    return "patterns" if by_patterns else "words"


@cache
def fitted(reader: str) -> dict[bool, Confidence]:
    """The functions of a reader (settings.py), by whether patterns know what is asked for; they never do for a learned reader.
    LabError where there are none, or the file is damaged."""
    path = root() / FILE
    try:
        of = read_sealed(path, ANEW)["fitted"][reader]
        return {
            by_patterns: Confidence(of[regime(by_patterns)]["weights"], of[regime(by_patterns)]["bias"])
            for by_patterns in (True, False)
            if regime(by_patterns) in of
        }
    except (KeyError, TypeError):
        raise LabError(f"{path} has no confidence of paths with the reader {reader}; fit it again: `{FIT}`") from None


@cache
def same_matter() -> Confidence:
    """How likely two statements of one name are of the same matter (`PathSearch.competing_steps`). LabError where nothing was fitted."""
    path = root() / FILE
    try:
        of = read_sealed(path, ANEW)["fitted"][MATTER][MATTER]
        return Confidence(of["weights"], of["bias"])
    except (KeyError, TypeError):
        raise LabError(f"{path} does not say when statements are of one matter; fit it: `{FIT} {MATTER}`") from None
