"""How hippo-tiny comes into being: its tokenizer, its lessons, its training, what it can do, and the card that says so."""

from hippo_core.files import LabError
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.score import TextLoss
from hippo_core.protocols.base_model import card, skills
from hippo_core.protocols.base_model.card import figure, records
from hippo_core.protocols.base_model.train import Recipe
from hippo_core.protocols.base_model.weights import make
from hippo_core.results.frames import Frame

__all__ = ["figure", "measure", "records", "sentence", "train_if", "write_card_if"]


def train_if(wanted: bool, model: str, seed: int, steps: int) -> None:
    """Train hippo-tiny where that is wanted; LabError for another model, which this recipe does not make."""
    if not wanted:
        return
    if model != "hippo-tiny":
        raise LabError(f"train=true makes hippo-tiny; {model!r} is another model: set train=false to measure it")
    print(f"weights in {make(Recipe(seed=seed, steps=steps))}")


def measure(lm: LanguageModel, n: int) -> tuple[Frame, TextLoss]:
    """All skills with `n` questions each, and the loss on held-out stories."""
    return skills.measure(lm, n=n), skills.story_loss(lm)


def write_card_if(wanted: bool, lm: LanguageModel, table: Frame, stories: TextLoss) -> str:
    """Write the card where that is wanted; says what the measurement finds different from the one that was there."""
    if not wanted:
        return "the card is left as it is (card = False)"
    changed = card.differences(table, card.folder_of(lm))
    place = card.write_card(lm, table, stories, card.folder_of(lm))
    return "\n".join([*(changed or ["every number of the card holds"]), f"card: {place}"])


def sentence(lm: LanguageModel, table: Frame, stories: TextLoss) -> str:
    """The result in one sentence, from its numbers."""
    judged = table[table["goal"].notna()]
    met = int((judged["accuracy"] >= judged["goal"]).sum())
    worst = judged.loc[(judged["accuracy"] - judged["goal"]).idxmin()]
    return (
        f'{lm.spec.name} reaches {met} of {len(judged)} goals; furthest from its goal is "{worst["skill"]}" with {worst["accuracy"]:.2f} '
        f"for {worst['goal']:.2f}; held-out stories cost {stories.per_token:.2f} nats a token."
    )
