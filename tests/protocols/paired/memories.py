"""Memories of somebody else's, as classes and as programs, good and broken."""

PROGRAM = """
import json, os, subprocess, sys, time
mode = sys.argv[1]
notes = []
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "teach":
        notes = told["notes"]
        print(json.dumps({"schema_version": 1, "type": "taught", "count": len(notes)}), flush=True)
        continue
    if mode == "garbage":
        print("Traceback, or so", flush=True)
    elif mode == "version":
        print(json.dumps({"schema_version": 2, "type": "recalled", "number": told["number"], "results": []}), flush=True)
    elif mode == "dies":
        sys.exit("no more memory")
    elif mode == "hangs":
        child = subprocess.Popen(["sleep", "600"])
        open(sys.argv[2], "w").write(str(child.pid))
        time.sleep(600)
    else:
        words = set(told["question"].lower().strip("?").split())
        best = sorted(notes, key=lambda note: -len(words & set(note["text"].lower().split())))[: told["k"]]
        reply = {"schema_version": 1, "type": "recalled", "number": told["number"], "tokens_in": 7, "tokens_cached": 3}
        print(json.dumps(reply | {"results": [{"id": note["id"]} for note in best]}), flush=True)
"""


class Shared:
    """Recalls whatever note shares most words with the question."""

    def __init__(self, notes):
        self.notes = notes

    def recall(self, question, k):
        words = set(question.lower().strip("?").split())
        return [(note["id"], 1.0) for note in sorted(self.notes, key=lambda note: -len(words & set(note["text"].lower().split())))[:k]]


class Raises(Shared):
    def recall(self, question, k):
        raise RuntimeError("the index\nis gone")


class Invents(Shared):
    def recall(self, question, k):
        return ["n77"]


class Breaks(Shared):
    def __init__(self, notes):
        raise ValueError("no index")


class Numbers(Shared):
    def recall(self, question, k):
        return [1, 2]
