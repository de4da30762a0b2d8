"""A scripted agent that edits a static page, to try the harness without a model: `scripted_agent.py STEP`, in the workspace.

It asks the memory what its prompt requires, takes its values from what it is told by the step's pattern, and makes the step's edits
(edits.json: file, old text, new text; an empty old text appends). `@@` or `@1@` in a new text is a value, "TBD" where nothing told it. It
prints what a real agent prints last: the tokens that it used, here words.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path


def ask(name: str) -> list[str]:
    command = [*os.environ["MEMORY_QUERY"].split(), "--id", name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [result["text"] for result in json.loads(answer)["results"]]


def edit(step: dict, texts: list[str]) -> None:
    """Make a step's edits in the current folder."""
    match = next(filter(None, (re.search(step["value"], text) for text in texts if step["value"])), None)

    def value(marker: re.Match) -> str:
        return match[int(marker[1] or 1)] if match else "TBD"

    for file, old, new in step["edits"]:
        path, new = Path(file), re.sub(r"@(\d?)@", value, new)
        text = path.read_text()
        if old and old not in text:
            sys.exit(f"{file} does not hold {old!r}")
        path.write_text(text.replace(old, new, 1) if old else text + new)


def main() -> None:
    prompt = sys.stdin.read()
    texts = [text for name in re.findall(r"^- (q\d+): ", prompt, re.MULTILINE) for text in ask(name)]
    step = json.loads(Path(__file__).with_name("edits.json").read_text())[sys.argv[1]]
    edit(step, texts)
    tokens = {"input": len(prompt.split()) + sum(len(text.split()) for text in texts), "output": len(step["edits"])}
    print(json.dumps({"tokens": tokens}))


if __name__ == "__main__":
    main()
