"""The TinyStories sample: plain English for the vocabulary and for a little of the training, and a part that training never sees."""

from hippo_core.text_files import read_text

STORIES = "tinystories"  # of params/data.yaml
HELD_OUT_EVERY = 20


def stories() -> list[str]:
    """All stories of the sample, in order; LabError where the user's folder does not have it."""
    return [story.strip() for story in read_text(STORIES).split("<|endoftext|>") if story.strip()]


def training_stories() -> list[str]:
    """The stories that training may see: all but every twentieth."""
    return [story for number, story in enumerate(stories()) if number % HELD_OUT_EVERY]


def held_out_stories() -> list[str]:
    """The stories that training never sees."""
    return stories()[::HELD_OUT_EVERY]
