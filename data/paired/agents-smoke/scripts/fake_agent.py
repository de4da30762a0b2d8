"""A small deterministic agent, to try the harness without a model: it asks the memory what its prompt requires, and fills in settings.

A result that says "the KEY is VALUE" fills in KEY where service.json has null, or where KEY is among its arguments and not there, if the
prompt names KEY. It prints what a real agent prints last: the tokens that it used, here words.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

SETTINGS = Path("service.json")


def ask(name: str) -> list[str]:
    command = [*os.environ["MEMORY_QUERY"].split(), "--id", name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [result["text"] for result in json.loads(answer)["results"]]


def main() -> None:
    prompt = sys.stdin.read()
    names = re.findall(r"^- (q\d+): ", prompt, re.MULTILINE)
    found = [text for name in names for text in ask(name)]
    settings = json.loads(SETTINGS.read_text())
    empty = [key for key in dict.fromkeys([*settings, *sys.argv[1:]]) if settings.get(key) is None]
    for key in [key for key in empty if re.search(rf"\b{key}\b", prompt)]:
        said = next((match[1] for text in found if (match := re.search(rf"\bthe {key} is ([\w-]+)", text))), None)
        if said:
            settings[key] = int(said) if said.isdecimal() else said
    SETTINGS.write_text(json.dumps(settings, indent=2) + "\n")
    read = len(prompt.split()) + sum(len(text.split()) for text in found)
    print(json.dumps({"tokens": {"input": read, "output": len(settings), "cached": 0}}))


if __name__ == "__main__":
    main()
