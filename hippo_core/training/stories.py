"""The TinyStories sample: plain English for the vocabulary and for a little of the training, and a part that training never sees."""

from hippo_core.files import LabError, root

STORIES = "data/samples/tinystories/train_head_2MiB.txt"
HELD_OUT_EVERY = 20


def stories() -> list[str]:
    """All stories of the sample, in order."""
    path = root() / STORIES
    if not path.exists():
        raise LabError(f"missing {path}; it is part of the repository: restore it with `git checkout -- {STORIES}`")
    return [story.strip() for story in path.read_text(encoding="utf-8").split("<|endoftext|>") if story.strip()]


def training_stories() -> list[str]:
    """The stories that training may see: all but every twentieth."""
    return [story for number, story in enumerate(stories()) if number % HELD_OUT_EVERY]


def held_out_stories() -> list[str]:
    """The stories that training never sees."""
    return stories()[::HELD_OUT_EVERY]
