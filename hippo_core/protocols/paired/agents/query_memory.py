"""Ask the memory, from within a contained task: `query QUESTION` or `query --id NAME`. Prints JSON; the exit status is 1 where it failed.

The harness copies this file beside its socket; standard library only.
"""

import json
import os
import socket
import sys


def main(words: list[str]) -> int:
    request = {"id": words[1]} if len(words) == 2 and words[0] == "--id" else {"question": " ".join(words)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answer:
            response = json.loads(answer.readline())
    print(json.dumps(response, ensure_ascii=False))
    return int("error" in response)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
