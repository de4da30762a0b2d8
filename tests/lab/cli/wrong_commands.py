"""Command lines that are wrong, in a lab beside this one: each must end in one line, with exit code 1 or 2 and without a traceback."""

import json
import signal
import sys
from contextlib import contextmanager

from hippo_core.__main__ import main
from hippo_core.files import root

LONG = "x" * 5000
RUN = ["run", "answer"]
CELL = ["suite=episodic", "preset=baselines/core"]
NUMBERS = (
    "0",
    "-5",
    "010",
    "1e3",
    "nan",
    ".nan",
    ".inf",
    "1:30",
    "'4'",
    "1.5",
    "yes",
    "off",
    "[1]",
    "{a: 1}",
    "~",
    "1" * 5000,
    "1" * 30,
    "",
)
SHORT = [
    *([*RUN, *CELL, f"n={number}"] for number in NUMBERS),
    ["grid", "smoke", "--size", "-5"],
    ["grid", "smoke", "--jobs", "0"],
    ["report", "nothing"],
    ["records", "verify", "damaged"],
    ["records", "verify", "{lab}/archive.tar.gz"],
    ["compare", "a", "b"],
    ["nothing"],
    ["preflight", "smoke", "--seed", "-1"],
]
ALL = [
    *SHORT,
    *([*RUN, *CELL, f"seed={number}"] for number in ("-1", "0x", "010", "1.0", "nan", "4294967296", "yes", "1:1")),
    *([*RUN, *CELL, f"threads={number}"] for number in ("0", "-1", "010", "auto", "1000000000000")),
    *([*RUN, *CELL, f"dry_run={value}"] for value in ("1", "maybe", "[]", "''")),
    *(
        [*RUN, *CELL, word]
        for word in ("n", "=4", " =4", "n=4=5", "n=[", "n={", "n=&a [*a]", "n=!!int x", "nothing=1", "n=\ud800", "\udcff=1", "n=\0")
    ),
    [*RUN, *CELL, "n=4", "n=5"],
    [*RUN, *CELL, "n=" + "[" * 100_000],
    [*RUN, *CELL, "n={a: 1, a: 2}"],
    *(
        [*RUN, f"suite={name}"]
        for name in ("nothing", "1", "folder:", "folder:/nowhere", "no.such.module:NAME", "a:b:c", LONG, "..", "''", "[]")
    ),
    *([*RUN, f"preset={name}"] for name in ("nothing", "../../etc/passwd", "1", LONG, "''", "baselines/", "a\nb")),
    *([*RUN, *CELL, f"model={name}"] for name in ("nothing", LONG, "1", "''", "/etc", "a\nb", "{lab}/broken-model", "{lab}/list-model")),
    *([*RUN, *CELL, f"run_id={name}"] for name in ("..", "a/b", "''", ".x", LONG, "1", "a\nb")),
    *([*RUN, *CELL, f"overrides={value}"] for value in ("1", "[1]", "[k]", "[k=010]", "[nothing=1]", "{a: b}", "[k=nan]")),
    *(["run", name] for name in ("nothing", "", "no.module:X", "hippo_core.files:LabError", "../x", "json:dumps", LONG)),
    *(["grid", name] for name in ("nothing", "..", "", LONG, "a\nb", "twice", "latin", "octal", "list", "deep", "bomb")),
    *(
        ["grid", "smoke", *words]
        for words in (
            ["--size", "x"],
            ["--size", "1.5"],
            ["--seed", "-1"],
            ["--seed", "nan"],
            ["--jobs", "-1"],
            ["--jobs", "1e3"],
            ["--kernel", "hot"],
            ["--run-id", "../x"],
            ["--run-id", LONG],
            ["--only", "nothing"],
            ["--model", "nothing"],
            ["--threads", "x"],
            ["--threads", "-1"],
            ["--nothing"],
            ["more"],
        )
    ),
    *(["grid-plan", "smoke", *words] for words in (["--size", "0"], ["--jobs", "0"], ["--model", "nothing"])),
    *(["report", name] for name in ("..", "a/b", "", LONG, "empty")),
    *(["watch", name] for name in ("nothing", "..", LONG, "empty")),
    *(
        ["records", *words]
        for words in (
            ["verify", "nothing"],
            ["verify", "/dev/null"],
            ["verify", "empty"],
            ["verify"],
            ["diff", "a"],
            ["diff", "a", "b"],
            ["diff", "empty", "empty"],
            ["nothing"],
        )
    ),
    *(
        ["consolidation-gate", *words]
        for words in (
            ["nothing"],
            ["--alpha", "nan"],
            ["--alpha", "2"],
            ["--alpha", "x"],
            ["--min-uplift", "nan"],
            ["--min-uplift", "inf"],
            ["--uplift-mode", "x"],
            [".."],
        )
    ),
    *(
        ["compare", *words]
        for words in (["a"], ["empty", "empty"], ["damaged", "damaged"], ["/etc/passwd", "/etc/passwd"], ["a", "b", "--most", "-1"])
    ),
    *(["datasets", word] for word in ("n=0", "n=010", "suite=nothing", "suite=[]", "seed=-1", "nothing=1", "n", "run_id=../x")),
    *(["notebook", *words] for words in (["nothing"], ["../x"], [], [LONG])),
    *(
        ["converse", *words]
        for words in (
            ["execute"],
            ["execute", "nothing", "--out", "x"],
            ["execute", "nothing", "--out", "x", "--timeout", "nan"],
            ["evaluate", "nothing", "--out", "x"],
            ["aggregate", "--out", "nothing"],
            ["evidence", "nothing", "--chunk", "0"],
            ["evidence", "nothing", "--half", "x"],
            ["nothing"],
        )
    ),
    *(["consolidation-merge", *words] for words in (["nothing", "out"], ["nothing"])),
]


@contextmanager
def beside(place):
    """A lab at `place` with the parameters and notebooks of this one, grids and models that cannot be read, and a damaged run."""
    (place / "params/grids").mkdir(parents=True)
    for path in (root() / "params").iterdir():
        if path.name != "grids":
            (place / "params" / path.name).symlink_to(path)
    for path in (root() / "params/grids").iterdir():
        (place / "params/grids" / path.name).symlink_to(path)
    for name in ("notebooks", "data"):
        (place / name).symlink_to(root() / name)
    grids = {
        "twice": b"title: a\ntitle: b",
        "latin": b"title: \xe9",
        "octal": b"title: a\nthreads: 010",
        "list": b"- 1",
        "deep": b"[" * 99_999,
    }
    grids["bomb"] = (
        "\n".join(["a: &a [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]).replace("*a0", "*a").encode()
    )
    for name, content in grids.items():
        (place / f"params/grids/{name}.yaml").write_bytes(content)
    for name, config in (("broken", "{"), ("list", "[]")):
        (place / f"{name}-model").mkdir()
        (place / f"{name}-model/config.json").write_text(config)
    (place / "executed/empty").mkdir(parents=True)
    damaged = place / "executed/damaged/baselines/core/episodic/4_1/cell"
    damaged.mkdir(parents=True)
    (damaged / "meta.json").write_text("{}")
    (damaged / "DONE").write_text(json.dumps({"sha256": {"meta.json": "0" * 64}}))
    (place / "archive.tar.gz").write_bytes(b"none")
    yield place


def ended(words, capsys, monkeypatch):
    """The exit code of a command line, and the lines that it said."""
    monkeypatch.setattr(sys, "argv", ["hippo", *words])
    before = signal.getsignal(signal.SIGTERM)
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        signal.signal(signal.SIGTERM, before)
    said = capsys.readouterr()
    return code, (said.out + said.err).splitlines()
