"""hippo-tiny: a Llama of under four million parameters, trained from a seed on two CPU cores.

It reads the files DATA of the user's folder (data/README.md): its vocabulary and lessons hold TinyStories and public bAbI stories.
Muon for the matrices, AdamW for embeddings and norms, bf16 autocast with attention in fp32, guided attention while it learns.
"""

from random import Random

import torch
from pydantic import BaseModel, ConfigDict
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hippo_core.models.template import template_for
from hippo_core.training import tasks
from hippo_core.training.mixture import SHARES_FROM_NOTHING, Curriculum, draw_lesson
from hippo_core.training.packed_examples import LessonEncoder, PackedBatch
from hippo_core.training.stories import STORIES, training_stories
from hippo_core.training.train import Log, answer_loss, descend, set_rates, share_of_rate
from recipes import guidance
from recipes.tokenizer import SPECIAL
from recipes.validation import examine

DATA = (STORIES, *tasks.FILES["public_stories"])
END_TOKENS = {"bos": SPECIAL["bos"], "eos": SPECIAL["end"], "pad": SPECIAL["pad"]}
CURRICULUM = Curriculum(((0.06, 3), (0.15, 5), (0.3, 8), (1.0, 16)), long_share=0.06, long_limit=24, shares=SHARES_FROM_NOTHING)


HEADS = (  # who looks where: two of six blocks bind a word to its sentence, the next find the facts, then the answer
    guidance.AttentionHead("bind", 0, (0,), 0.3, True),
    guidance.AttentionHead("bind", 1, (0,), 0.3, True),
    guidance.AttentionHead("read", 1, (1,), 0.3, True),
    guidance.AttentionHead("hop", 2, (0, 1), 1.0, False),
    guidance.AttentionHead("locate", 3, (0, 1), 1.0, False),
    guidance.AttentionHead("copy", 4, (0, 1), 1.0, False),
)


class Recipe(BaseModel):
    """Everything that the weights depend on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1337
    steps: int = 4500
    lessons: int = 22  # a batch
    stories: int = 2  # a batch
    parts: int = 3  # a batch is worked off in so many parts of like lengths
    matrix_rate: float = 0.02  # Muon
    other_rate: float = 3e-3  # AdamW: embeddings and norms
    warmup: int = 100  # steps
    cooldown: float = 0.5  # share of the steps over which the rates fall linearly to nothing
    width: int = 256
    layers: int = 6
    heads: int = 4
    mlp: int = 384
    threads: int = 2


class Tiny:
    """hippo-tiny as a trainee."""

    def __init__(self, recipe: Recipe, tokenizer: PreTrainedTokenizerFast):
        self.recipe, self.tokenizer = recipe, tokenizer
        self.model = new_model(recipe, tokenizer)
        self.encoder = LessonEncoder(tokenizer, template_for(tokenizer, "model"), guided=True, restate=True)
        self.pool = training_stories()
        matrices = [p for name, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in name]
        others = [p for name, p in self.model.named_parameters() if p.ndim != 2 or "embed" in name]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.0),
            torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
        ]

    def weights(self) -> dict[str, torch.Tensor]:
        return dict(self.model.named_parameters())

    def batch(self, step: int) -> list[PackedBatch]:
        """The batch of a step, in parts of like lengths: a function of seed and step alone."""
        random = Random(f"hippo-tiny/{self.recipe.seed}/{step}")
        drawn = [draw_lesson(random, CURRICULUM, step / self.recipe.steps) for _ in range(self.recipe.lessons)]
        return self.encoder.batches(drawn, random.sample(self.pool, self.recipe.stories), self.recipe.parts)

    def learn(self, step: int) -> Log:
        recipe, progress = self.recipe, step / self.recipe.steps
        share = share_of_rate(step, recipe.steps, recipe.warmup, recipe.cooldown)
        set_rates(self.optimizers, (recipe.matrix_rate, recipe.other_rate), share)
        self.model.train()
        parts = self.batch(step)
        answers = guided = 0.0
        for part in parts:
            capture = guidance.Attention(HEADS)
            loss, of_answers = answer_loss(self.model, part, capture=capture)
            attention = capture.loss(part.targets, part.mask)
            ((loss + guidance_weight(progress) * attention) / len(parts)).backward()
            answers, guided = answers + float(of_answers) / len(parts), guided + float(attention.detach()) / len(parts)
        descend(self.model.parameters(), self.optimizers)
        return {"answers": answers, "guidance": guided}

    def examine(self) -> Log:
        return examine(self.model.eval(), self.encoder)


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """An untrained model of the recipe's shape."""
    torch.manual_seed(recipe.seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=recipe.mlp,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    for role, token in END_TOKENS.items():
        setattr(config, f"{role}_token_id", tokenizer.convert_tokens_to_ids(token))
    config._attn_implementation = guidance.register()
    return LlamaForCausalLM(config)


def guidance_weight(progress: float) -> float:
    """Weight of the guided attention: from 1 in a line to a tenth at half of the training."""
    return max(0.1, 1 - 1.8 * progress)
