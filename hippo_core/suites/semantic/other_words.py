"""The semantic suite's statements in other words: for each form of `words.py` one of the frozen wordings that tell the same."""

from collections import defaultdict
from collections.abc import Mapping

from hippo_core.suites.reworded import generator, sentence, wordings
from hippo_core.suites.semantic import words
from hippo_core.suites.types import WorldSpec

NEAR_MISSES = {"buy": ("looked", "refused"), "work": ("applied", "complained"), "study": ("visited", "wrote")}
TELLS = {  # what the wordings of this name tell: these forms
    **{name: (*frame.link, *frame.again) for name, frame in words.FRAMES.items()},
    **{miss: (form,) for name, misses in NEAR_MISSES.items() for miss, form in zip(misses, words.FRAMES[name].near_misses, strict=True)},
    **{miss: (form,) for miss, form in zip(("letters", "praised"), words.SITE_NEAR_MISSES, strict=True)},
    **dict(zip(("unsure", "fairly_sure", "sure"), words.HEDGED.values(), strict=True)),
    "site": (*words.SITES, *words.SITES_AGAIN),
    "rumor": words.RUMORS,
    "move": words.MOVES,
    "statement": words.STATEMENTS,
    "friend": (*words.FRIENDS, *words.FRIENDS_AGAIN),
    "at": words.AT,
}
NAME_OF = {form: name for name, forms in TELLS.items() for form in forms}


class Rewording:
    """Words the statements of one world anew, in turn. What tells the same again does so in other words, while there are any."""

    def __init__(self, spec: WorldSpec) -> None:
        self.random = generator(spec)
        self.used: dict[frozenset[tuple[str, str]], set[str]] = defaultdict(set)

    def __call__(self, form: str, words: Mapping[str, str]) -> str:
        """The statement that this form and these words make, in other words."""
        forms = wordings("semantic")[NAME_OF[form] + ("_timed" if words.get("when") else "")]
        used = self.used[frozenset(words.items())]
        form = self.random.choice([one for one in forms if one not in used] or forms)
        used.add(form)
        return sentence(form.format(**words))
