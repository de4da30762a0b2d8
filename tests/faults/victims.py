"""Processes to be killed: forks of the test's own, so that a kill costs milliseconds and no imports. They say what they do."""

import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from itertools import count


def killed(work, moment):
    """Fork this process, let the fork work, and kill -9 it; the words that it has said, a list a line.

    Args:
        work: called in the fork with a function that says words to this process; it is expected not to end.
        moment: seconds from its first words to the kill; None: it kills itself, or is killed when it says "ended".
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            work(lambda *words: os.write(writing, f"{' '.join(map(str, words))}\n".encode()))
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading) as pipe:
        lines = [pipe.readline()]
        while moment is None and lines[-1] not in ("", "ended\n"):
            lines.append(pipe.readline())
        time.sleep(moment or 0)
        os.kill(child, signal.SIGKILL)
        lines += pipe
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, "".join(lines)
    return [line.split() for line in lines if line.endswith("\n")]


def killed_at_each(prepare, *patched, when=lambda *given: True):
    """Kill forks of this process at their first call of some functions, at the second, and so on: yields the number of the call and what
    the fork had said, of the last one ["ended"] too, which came to its end before it was killed.

    Args:
        prepare: called in the fork with the number; returns what is done and killed, a function of one that says words to this process.
        places: the functions, each as what holds it and its name.
        when: by its arguments, whether a call counts.
    """
    number, words = 0, []
    while ["ended"] not in words:
        number += 1
        words = killed(partial(_ended_at, number, prepare, patched, when), None)
        yield number, words


def _ended_at(number, prepare, patched, when, say):
    work, calls = prepare(number), count(1)

    def counted(function):
        def call(*given, **named):
            if when(*given) and next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **named)

        return call

    for owner, name in patched:
        setattr(owner, name, counted(getattr(owner, name)))
    work(say)
    say("ended")
    signal.pause()


@dataclass
class Count:
    """What befell a victim: kills, those of them that came after something was begun and before it was acknowledged, and those of these
    after which it turned out to be done."""

    victim: str
    kills: int = 0
    before: int = 0
    done: int = 0
    of: dict[str, int] = field(default_factory=dict)

    def add(self, begun=None, done=False):
        """A kill more: of what was begun and not yet acknowledged (None: of nothing), and whether it was done."""
        self.kills += 1
        self.before += begun is not None
        self.done += done
        if begun is not None:
            self.of[begun] = self.of.get(begun, 0) + 1

    def __str__(self):
        within = ", ".join(f"{kind} {count}" for kind, count in sorted(self.of.items()))
        return f"{self.victim}: {self.kills} kills, {self.before} before an acknowledgement ({within}), of which {self.done} were done"
