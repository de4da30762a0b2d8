"""Command lines that are wrong, in a lab beside this one: each must end in one line, with exit code 1 or 2 and without a traceback."""

import json
import signal
import sys
from contextlib import contextmanager

from hippo_core.__main__ import main
from hippo_core.files import root

LONG = "x" * 5000
CELL = "run answer suite=episodic preset=baselines/core"
SHORT = {  # the beginning of command lines, and how each goes on
    f"{CELL} n=": ["0", "-5", "010", "1e3", "nan", ".nan", ".inf", "1:30", "'4'", "1.5", "yes", "off", "[1]", "{a: 1}", "~", ""],
    f"{CELL} n=1": ["1" * 5000, "1" * 30],
    "grid smoke --size ": ["-5"],
    "grid smoke --jobs ": ["0"],
    "report ": ["nothing"],
    "records verify ": ["damaged", "{lab}/archive.tar.gz"],
    "compare a ": ["b"],
    "nothing": [None],
    "preflight smoke --seed ": ["-1"],
}
MORE = {
    f"{CELL} seed=": ["-1", "0x", "010", "1.0", "nan", "4294967296", "yes", "1:1"],
    f"{CELL} threads=": ["0", "-1", "010", "auto", "1000000000000"],
    f"{CELL} dry_run=": ["1", "maybe", "[]", "''"],
    f"{CELL} ": ["=4", " =4", "nothing=1", "\udcff=1"],
    f"{CELL} n": ["", "=4=5", "=[", "={", "=&a [*a]", "=!!int x", "=\ud800", "=\0", "={a: 1, a: 2}"],
    f"{CELL} n=4 n=": ["5"],
    f"{CELL} n=[": ["[" * 100_000],
    "run answer suite=": ["nothing", "1", "folder:", "folder:/nowhere", "no.such.module:NAME", "a:b:c", LONG, "..", "''", "[]"],
    "run answer preset=": ["nothing", "../../etc/passwd", "1", LONG, "''", "baselines/", "a\nb"],
    f"{CELL} model=": ["nothing", LONG, "1", "''", "/etc", "a\nb", "{lab}/broken-model", "{lab}/list-model"],
    f"{CELL} run_id=": ["..", "a/b", "''", ".x", LONG, "1", "a\nb"],
    f"{CELL} overrides=": ["1", "[1]", "[k]", "[k=010]", "[nothing=1]", "{a: b}", "[k=nan]"],
    "run ": ["nothing", "", "no.module:X", "hippo_core.files:LabError", "../x", "json:dumps", LONG],
    "grid ": ["nothing", "..", "", LONG, "a\nb", "twice", "latin", "octal", "list", "deep", "bomb"],
    "grid smoke ": ["--nothing", "more"],
    "grid smoke --size ": ["x", "1.5"],
    "grid smoke --seed ": ["-1", "nan"],
    "grid smoke --jobs ": ["-1", "1e3"],
    "grid smoke --run-id ": ["../x", LONG],
    "grid smoke --threads ": ["x", "-1"],
    "grid smoke --kernel ": ["hot"],
    "grid smoke --only ": ["nothing"],
    "grid smoke --model ": ["nothing"],
    "report ": ["..", "a/b", "", LONG, "empty"],
    "watch ": ["nothing", "..", LONG, "empty"],
    "records verify": [None],
    "records verify ": ["nothing", "/dev/null", "empty"],
    "records diff a ": ["b"],
    "records diff empty ": ["empty"],
    "records ": ["nothing"],
    "consolidation-gate ": ["nothing", ".."],
    "consolidation-gate --alpha ": ["nan", "2", "x"],
    "consolidation-gate --min-uplift ": ["nan", "inf"],
    "consolidation-gate --uplift-mode ": ["x"],
    "compare ": ["a"],
    "compare empty ": ["empty"],
    "compare damaged ": ["damaged"],
    "compare /etc/passwd ": ["/etc/passwd"],
    "compare a b --most ": ["-1"],
    "datasets ": ["n=0", "n=010", "suite=nothing", "suite=[]", "seed=-1", "nothing=1", "n", "run_id=../x"],
    "notebook": [None],
    "notebook ": ["nothing", "../x", LONG],
    "converse ": ["execute", "nothing"],
    "converse execute nothing --out ": ["x"],
    "converse execute nothing --out x --timeout ": ["nan"],
    "converse aggregate --out ": ["nothing"],
    "converse evidence nothing --chunk ": ["0"],
    "converse evidence nothing --half ": ["x"],
    "consolidation-merge ": ["nothing"],
    "consolidation-merge nothing ": ["out"],
}


def command_lines(table):
    """The words of each command line of a table: blanks part those of its beginning, the rest is one word or the end of the last."""
    for begin, rests in table.items():
        *words, last = begin.split(" ")
        yield from ([*words, last if rest is None else last + rest] for rest in rests)


@contextmanager
def beside(lab_dir):
    """A lab at `place` with the parameters and notebooks of this one, grids and models that cannot be read, and a damaged run."""
    (lab_dir / "params/grids").mkdir(parents=True)
    for path in (root() / "params").iterdir():
        if path.name != "grids":
            (lab_dir / "params" / path.name).symlink_to(path)
    for path in (root() / "params/grids").iterdir():
        (lab_dir / "params/grids" / path.name).symlink_to(path)
    for name in ("notebooks", "data"):
        (lab_dir / name).symlink_to(root() / name)
    bomb = "\n".join(["a: &a [1, 1]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]).replace("*a0", "*a")
    grids = {"twice": b"title: a\ntitle: b", "latin": b"title: \xe9", "octal": b"title: a\nthreads: 010", "list": b"- 1"}
    grids |= {"deep": b"[" * 99_999, "bomb": bomb.encode()}
    for name, content in grids.items():
        (lab_dir / f"params/grids/{name}.yaml").write_bytes(content)
    for name, config in (("broken", "{"), ("list", "[]")):
        (lab_dir / f"{name}-model").mkdir()
        (lab_dir / f"{name}-model/config.json").write_text(config)
    (lab_dir / "executed/empty").mkdir(parents=True)
    damaged = lab_dir / "executed/damaged/baselines/core/episodic/4_1/cell"
    damaged.mkdir(parents=True)
    (damaged / "meta.json").write_text("{}")
    (damaged / "DONE").write_text(json.dumps({"sha256": {"meta.json": "0" * 64}}))
    (lab_dir / "archive.tar.gz").write_bytes(b"none")
    yield lab_dir


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
    captured = capsys.readouterr()
    return code, (captured.out + captured.err).splitlines()
