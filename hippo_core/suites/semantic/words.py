"""The forms of the semantic suite's sentences, and their rewording: for each form one of its frozen wordings."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hippo_core.files import tables
from hippo_core.suites.reworded import generator, sentence, wordings
from hippo_core.suites.types import WorldSpec


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """A schema: what links a person to a kind of firm, its forms, its questions for the city (words.yaml)."""

    firm: str
    relation: str
    link: tuple[str, ...]
    again: tuple[str, ...]
    questions: tuple[str, ...]
    held_out: tuple[str, str]
    near_misses: dict[str, str]
    of_friend: str


TABLES = tables(__file__)
FRAMES = {name: RelationSchema(**frame) for name, frame in TABLES["frames"].items()}
FORMS: dict[str, tuple[str, ...]] = TABLES["forms"]
AGAIN: dict[str, tuple[str, ...]] = TABLES["again"]
HEDGED: dict[float, tuple[str, ...]] = TABLES["hedged"]
SITE_NEAR_MISSES: dict[str, str] = TABLES["site_near_misses"]
FORMS_BY_NAME = {  # which forms the wordings of a name reword
    **{name: (*frame.link, *frame.again) for name, frame in FRAMES.items()},
    **{miss: (form,) for frame in FRAMES.values() for miss, form in frame.near_misses.items()},
    **{miss: (form,) for miss, form in SITE_NEAR_MISSES.items()},
    **dict(zip(("unsure", "fairly_sure", "sure"), HEDGED.values(), strict=True)),
    **{name: (*forms, *AGAIN.get(name, ())) for name, forms in FORMS.items()},
}
NAME_OF = {form: name for name, forms in FORMS_BY_NAME.items() for form in forms}


class Rewording:
    """Rewords the statements of one world, in turn. A repeated statement gets other words, while there are any."""

    def __init__(self, spec: WorldSpec) -> None:
        self.random = generator(spec)
        self.used: dict[frozenset[tuple[str, str]], set[str]] = defaultdict(set)

    def __call__(self, form: str, words: Mapping[str, str]) -> str:
        """The statement of this form and these words, reworded."""
        forms = wordings("semantic")[NAME_OF[form] + ("_timed" if words.get("when") else "")]
        used = self.used[frozenset(words.items())]
        form = self.random.choice([candidate for candidate in forms if candidate not in used] or forms)
        used.add(form)
        return sentence(form.format(**words))
