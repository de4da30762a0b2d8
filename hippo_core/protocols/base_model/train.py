"""Training hippo-tiny from a seed: a Llama of under four million parameters, an hour on two CPU cores.

Every step's batch follows from (seed, step), so a run that was killed goes on from its last checkpoint to the same weights' recipe.
Muon for the matrices, AdamW for embeddings and norms, bf16 autocast with attention in fp32, logits only where there is a loss.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hippo_core.files import LabError
from hippo_core.protocols.base_model import guidance, lessons
from hippo_core.protocols.base_model.stories import training_stories
from hippo_core.protocols.base_model.tokenizer import SPECIAL

END_TOKENS = {"bos": SPECIAL["bos"], "eos": SPECIAL["end"], "pad": SPECIAL["pad"]}


class Recipe(BaseModel):
    """Everything that the weights depend on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 1337
    steps: int = 4000
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


def batches(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, first: int) -> Iterator[list[lessons.Batch]]:
    """The batches of a recipe from step `first` on, each a function of (seed, step) alone."""
    encoder = lessons.Encoder(tokenizer)
    pool = training_stories()
    for step in range(first, recipe.steps):
        random = Random(f"hippo-tiny/{recipe.seed}/{step}")
        drawn = [lessons.make_lesson(random, step / recipe.steps) for _ in range(recipe.lessons)]
        yield encoder.batches(drawn, random.sample(pool, recipe.stories), recipe.parts)


def rate(recipe: Recipe, step: int) -> float:
    """Share of the full learning rate: up over the warm-up, level, then down in a line to nothing."""
    left = (recipe.steps - step) / max(1, round(recipe.steps * recipe.cooldown))
    return min(1.0, (step + 1) / recipe.warmup, left)


def guidance_weight(progress: float) -> float:
    """Weight of the guided attention: from 1 in a line to a tenth at half of the training."""
    return max(0.1, 1 - 1.8 * progress)


def loss_of(model: LlamaForCausalLM, batch: lessons.Batch, weight: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The loss of a batch (answers, restatements, stories, guidance), and for the log the answers' part and the guidance's."""
    kept = guidance.Attention()
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None], use_cache=False, kept=kept)[0]
        chosen = batch.labels != lessons.IGNORE
        logits = model.lm_head(hidden[chosen])
    losses = cross_entropy(logits.float(), batch.labels[chosen], reduction="none")
    weights = batch.weights[chosen]
    guided = kept.loss(batch.targets, batch.mask)
    answers = losses[weights == 1.0].mean()
    return (losses * weights).sum() / weights.sum() + weight * guided, answers.detach(), guided.detach()


def backward(model: LlamaForCausalLM, parts: list[lessons.Batch], weight: float) -> tuple[float, float]:
    """Gradients of a whole batch, part by part; returns the mean losses for the log."""
    logged = []
    for part in parts:
        loss, answers, guided = loss_of(model, part, weight)
        (loss / len(parts)).backward()
        logged.append((float(answers), float(guided)))
    answers, guided = zip(*logged, strict=True)
    return sum(answers) / len(parts), sum(guided) / len(parts)


def optimizers(model: LlamaForCausalLM, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for all else."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.0),
        torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def train(
    recipe: Recipe, tokenizer: PreTrainedTokenizerFast, folder: Path, say: Callable[[str], None] = print, every: int = 200
) -> LlamaForCausalLM:
    """Train, with a checkpoint every `every` steps in `folder`, from which a second call goes on; the log is `folder/log.jsonl`."""
    torch.set_num_threads(recipe.threads)
    model = new_model(recipe, tokenizer)
    optimizer_list = optimizers(model, recipe)
    first, seconds = resume(model, optimizer_list, recipe, folder)
    started = time.perf_counter() - seconds
    model.train()
    for step, parts in enumerate(batches(recipe, tokenizer, first), first):
        share = rate(recipe, step)
        for optimizer, full in zip(optimizer_list, (recipe.matrix_rate, recipe.other_rate), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = full * share
        answers, guided = backward(model, parts, guidance_weight(step / recipe.steps))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizer_list:
            optimizer.step()
        model.zero_grad(set_to_none=True)
        done, seconds = step + 1, time.perf_counter() - started
        if done % (every // 4 or 1) == 0 or done == recipe.steps:
            log(folder, {"step": done, "seconds": round(seconds), "answers": round(answers, 4), "guidance": round(guided, 4)})
            say(f"step {done}/{recipe.steps}  {seconds / 60:.1f} min  answers {answers:.3f}  guidance {guided:.3f}")
        if done % every == 0 or done == recipe.steps:
            checkpoint(model, optimizer_list, recipe, done, seconds, folder)
    return model.eval()


def log(folder: Path, line: dict[str, float]) -> None:
    """Add a line to the training's log."""
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def checkpoint(model, optimizer_list, recipe: Recipe, step: int, seconds: float, folder: Path) -> None:
    """Weights and optimizer states in one safetensors file, which replaces the one before it atomically."""
    tensors = {f"model.{name}": p.detach().clone() for name, p in model.named_parameters()}
    for number, optimizer in enumerate(optimizer_list):
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{index}.{key}": torch.as_tensor(value).clone() for key, value in state.items()}
    facts = {"step": str(step), "seconds": str(seconds), "recipe": recipe.model_dump_json()}
    save_file(tensors, folder / "checkpoint.part", metadata=facts)
    (folder / "checkpoint.part").replace(folder / "checkpoint.safetensors")


def resume(model, optimizer_list, recipe: Recipe, folder: Path) -> tuple[int, float]:
    """Load the folder's checkpoint, where there is one: (its step, the seconds spent so far). LabError for another recipe's."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "checkpoint.safetensors"
    if not path.exists():
        return 0, 0.0
    with safe_open(path, "pt") as file:
        facts = file.metadata()
    if facts["recipe"] != recipe.model_dump_json():
        raise LabError(f"{path} is of another recipe; delete {folder} to train anew, or go on with {facts['recipe']}")
    tensors = load_file(path)
    model.load_state_dict({name: tensors[f"model.{name}"] for name, _ in model.named_parameters()}, strict=False)
    for number, optimizer in enumerate(optimizer_list):
        states: dict[int, dict] = {}
        for name, tensor in tensors.items():
            kind, *rest = name.split(".")
            if kind == "optimizer" and rest[0] == str(number):
                states.setdefault(int(rest[1]), {})[rest[2]] = tensor
        optimizer.load_state_dict(optimizer.state_dict() | {"state": states})
    return int(facts["step"]), float(facts["seconds"])
