"""Plain English by which a language model is judged, and on which it is to stay as it was: the prose of Python's own manual, and where the
files are there, sentences of film reviews (SST-2) and articles of Wikipedia (WikiText-2).
"""

import re
from pydoc_data.topics import topics
from random import Random

from hippo_core.text_files import read_text

SST2, WIKITEXT2 = "sst2", {"valid": "wikitext2-valid", "train": "wikitext2-train"}  # files of params/data.yaml
HEAD = {"valid": 255_979, "train": 304_690}  # bytes: the first 19 articles of each
CALIBRATION, TEST = 50, 100  # sentences of either label
PROMPT, LABELS = "Review: {sentence}\nSentiment:", (" negative", " positive")  # no worked example before it
WINDOW = 1024  # tokens, or as many as the model can see
PROSE = re.compile(r"[A-Z][^\n]*(\n[^ \n][^\n]*)*(?<=\.)")  # a paragraph of whole sentences, not indented
ARTICLE = re.compile(r"^ = [^=;]+ = $", re.MULTILINE)  # with ";" it is the legend of a table


def manual() -> list[str]:
    """The paragraphs of plain English in the manual that Python carries (`pydoc_data.topics`), by topic, each once; no code, no grammar."""
    paragraphs = (paragraph for name in sorted(topics) for paragraph in topics[name].split("\n\n"))
    return list(dict.fromkeys(" ".join(text.splitlines()) for text in paragraphs if PROSE.fullmatch(text)))


def reviews(part: str) -> list[tuple[str, bool]]:
    """Sentences drawn from SST-2, each with whether it is positive, as half of them are: 100 for "calibration", 200 others for "test"."""
    random = Random(1337)
    lines = list(dict.fromkeys(read_text(SST2).splitlines()))
    drawn = [random.sample([line for line in lines if line.endswith(label)], CALIBRATION + TEST) for label in ("\t0", "\t1")]
    parts = {
        "calibration": [line for lines in drawn for line in lines[:CALIBRATION]],
        "test": [line for lines in drawn for line in lines[CALIBRATION:]],
    }
    for chosen in parts.values():
        random.shuffle(chosen)
    return [(sentence, label == "1") for sentence, _, label in (line.rpartition("\t") for line in parts[part])]


def wikipedia(part: str, whole: bool = False) -> list[str]:
    """The first articles of a part of WikiText-2 ("valid" or "train"), or all that its file has, in order."""
    text = read_text(WIKITEXT2[part])
    text = text if whole else text.encode()[: HEAD[part]].decode()
    starts = [match.start() for match in ARTICLE.finditer(text)][1:]
    return [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True)]
