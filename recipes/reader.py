"""A reader: a LoRA that calls up in a pretrained model what it can do, reading what stands before a question, as text and as blocks.

Low-rank updates of all linear layers (Hu et al. 2021, arXiv 2106.09685, section 4) under bf16 autocast. So that the model stays the
one it was on other text, each step also distils the base on plain text: the divergence of its predictions from the untouched model's.
It reads the files DATA of the user's folder (data/README.md): the plain text, and what the lessons hold of stories.
"""

from random import Random
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from pydantic import BaseModel, ConfigDict
from torch.nn.functional import kl_div

from hippo_core.models.language_model import LanguageModel
from hippo_core.models.matmul import half_products
from hippo_core.training import language, tasks
from hippo_core.training.mixture import SHARES, SHARES_LATER, SHARES_OTHER_WORDS, SHARES_RELATIONS, SHARES_WIDE, Curriculum, draw_lesson
from hippo_core.training.packed_examples import LessonEncoder, PackedBatch
from hippo_core.training.stories import STORIES, training_stories
from hippo_core.training.train import Log, answer_loss, descend, set_rates
from recipes import guidance
from recipes.validation import examine

DATA = (language.WIKITEXT2["train"], STORIES, language.SST2, *tasks.FILES["public_stories"])  # of params/data.yaml
DESCENTS = (  # of the rate: steps, and the share of the rate that they begin with
    *((1000, 1.0), (350, 0.5), (250, 0.4)),
    *((100, 0.3), (150, 0.4)),  # on lessons of relations
)
STEPS = sum(steps for steps, _ in DESCENTS)
CURRICULUM = Curriculum(
    ((40 / STEPS, 4), (120 / STEPS, 8), (1.0, 16)), 0.08, 40, SHARES,
    ((500 / STEPS, SHARES_LATER), (1000 / STEPS, SHARES_OTHER_WORDS), (1350 / STEPS, SHARES_WIDE)),
)  # fmt: skip
OF_RELATIONS = Curriculum(((1.0, 6),), 0.1, 20, SHARES_RELATIONS)  # the last two descents: a memory shows few statements of a path
FIRST_OF_RELATIONS = 1600 / STEPS
GUIDED = 1350 / STEPS  # the share of the training from which on some heads are told where the right fact stands
FORMS = (
    ("Review: {text}\nSentiment: {label}\n\n", ("negative", "positive")),
    ("{text}\nIs this review positive or negative? {label}\n\n", ("negative", "positive")),
    ("{text} It was {label}.\n", ("terrible", "great")),
    ("Sentence: {text}\nQuestion: Is this sentence positive or negative?\nAnswer: {label}\n\n", ("negative", "positive")),
)
LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class ReaderRecipe(BaseModel):
    """Everything that the adapter depends on, but for the base."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str = "smollm2-135m"
    seed: int = 1337
    steps: int = STEPS
    lessons: int = 8  # a batch
    texts: int = 1  # a batch: plain text to be distilled
    text_tokens: int = 192
    text_weight: float = 0.5
    parts: int = 3  # a batch is worked off in so many parts of like lengths
    rate: float = 1e-3  # AdamW
    warmup: int = 20
    rank: int = 16
    alpha: int = 32
    # The three layers that looked at the right fact most by themselves, and the two heads that did (.32 to .53 of their attention, on 192
    # questions of training lessons, at step 1,350).
    guided: tuple[tuple[int, tuple[int, ...]], ...] = ((21, (1, 8)), (22, (4, 7)), (23, (2, 7)))  # layers and heads
    guidance_weight: float = 0.15  # a layer
    threads: int = 2


class Rehearsal:
    """Plain text on which the base is to stay as it was, long enough to be cut to a window: encyclopedia articles, stories, and reviews
    with a word of judgement. LabError where one of DATA is not there."""

    def __init__(self):
        paragraphs = [line.strip() for line in "".join(language.wikipedia("train")).splitlines()]
        self.articles = [line for line in paragraphs if len(line) > 900]
        self.stories = [story for story in training_stories() if len(story) > 900]
        self.reviews = language.reviews("calibration")  # never the sentences of the test

    def draw(self, random: Random) -> str:
        """Half of the time an article, else a story or a page of reviews."""
        kind = random.random()
        if kind < 0.5:
            return random.choice(self.articles)
        if kind < 0.7:
            return random.choice(self.stories)
        form, labels = random.choice(FORMS)
        page = random.sample(self.reviews, 16)
        return "".join(form.format(text=text, label=labels[positive]) for text, positive in page)


class Reader:
    """A LoRA on a loaded base model as a trainee."""

    def __init__(self, recipe: ReaderRecipe, lm: LanguageModel):
        self.recipe, self.lm = recipe, lm
        torch.manual_seed(recipe.seed)
        lm.model.set_attn_implementation(guidance.register())
        self.adapted: Any = get_peft_model(
            lm.model, LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=list(LAYERS), task_type="CAUSAL_LM")
        )
        self.model: Any = self.adapted.get_base_model()
        self.heads = tuple(guidance.AttentionHead("fact", layer, heads, recipe.guidance_weight, False) for layer, heads in recipe.guided)
        self.encoder = LessonEncoder(lm.tokenizer, lm.template, guided=True)
        self.rehearsal = Rehearsal()
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(self.weights().values(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.0)
        ]

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: weight for name, weight in self.adapted.named_parameters() if weight.requires_grad}

    def batch(self, step: int) -> tuple[list[PackedBatch], torch.Tensor]:
        """The lessons of a step in parts of like lengths, and its plain text [texts, tokens]: a function of seed and step alone."""
        random = Random(f"reader/{self.recipe.seed}/{step}")
        progress = step / self.recipe.steps
        curriculum = CURRICULUM if progress < FIRST_OF_RELATIONS else OF_RELATIONS
        drawn = [draw_lesson(random, curriculum, progress) for _ in range(self.recipe.lessons)]
        return self.encoder.batches(drawn, [], self.recipe.parts), torch.tensor([self._text(random) for _ in range(self.recipe.texts)])

    def _text(self, random: Random) -> list[int]:
        while True:
            ids = [*self.encoder.begin, *self.encoder.ids(self.rehearsal.draw(random))]
            if len(ids) > self.recipe.text_tokens:
                first = random.choice((0, random.randrange(len(ids) - self.recipe.text_tokens)))
                return ids[first : first + self.recipe.text_tokens]

    def learn(self, step: int) -> Log:
        recipe = self.recipe
        set_rates(self.optimizers, (recipe.rate,), rate(step, recipe.steps, recipe.warmup))
        self.adapted.train()
        parts, text = self.batch(step)
        answers = guided = 0.0
        for part in parts:
            capture = guidance.Attention(self.heads if step >= GUIDED * recipe.steps else ())
            loss, of_answers = answer_loss(self.model, part, capture=capture)
            attention = capture.loss(part.targets, part.mask)
            ((loss + attention) / len(parts)).backward()
            answers, guided = answers + float(of_answers) / len(parts), guided + float(attention.detach()) / len(parts)
        divergence = self._divergence(text)
        (recipe.text_weight * divergence).backward()
        descend(self.weights().values(), self.optimizers)
        return {"answers": answers, "guidance": guided, "divergence": float(divergence.detach())}

    def _divergence(self, text: torch.Tensor) -> torch.Tensor:
        """KL(base || adapted) in nats a token."""
        with half_products(text.device):
            with torch.no_grad(), self.adapted.disable_adapter():
                wanted = self.model(text, use_cache=False).logits
            predicted = self.model(text, use_cache=False).logits
        return kl_div(predicted.float().log_softmax(-1), wanted.float().log_softmax(-1), reduction="none", log_target=True).sum(-1).mean()

    def examine(self) -> Log:
        self.adapted.eval()
        return examine(self.model, self.encoder)


def rate(step: int, steps: int, warmup: int) -> float:
    """Share of the full learning rate: up over the warm-up, then down in a line to nothing, once for each of DESCENTS.

    Warm restarts (Loshchilov and Hutter 2017, arXiv 1608.03983, section 3), with lines in place of cosines. The descents are
    stretched to the recipe's steps.
    """
    scale = steps / sum(length for length, _ in DESCENTS)
    first = 0.0
    for length, height in DESCENTS:
        if step < first + length * scale:
            return min(height, (step + 1) / warmup, height * (1 - (step - first) / (length * scale)) / 0.95)
        first += length * scale
    return 0.0
