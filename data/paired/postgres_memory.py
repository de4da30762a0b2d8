"""A memory that is a PostgreSQL database with full-text search, for `hippo paired run --memory "command:..."` (docs/paired.md).

    python postgres_memory.py --seed URL SUITE    writes the notes of a suite into the table `notes`, in place of earlier ones
    python postgres_memory.py URL                 is taught and asked; it recalls from notes that were seeded, and from no others

It ranks notes with any word of the question by `ts_rank`, of equals the later first. It calls `psql`.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

GIVEN = "ROWS FROM (jsonb_to_recordset({}) AS (world text, id text, text text)) WITH ORDINALITY AS given (world, id, text, position)"
SEED = f"""
BEGIN;
DROP TABLE IF EXISTS notes;
CREATE TABLE notes AS SELECT world, id, text, position FROM {GIVEN};
CREATE INDEX ON notes USING gin (to_tsvector('english', text));
COMMIT;
"""
HELD = f"SELECT count(*) FROM notes JOIN {GIVEN} USING (world, id, text);"
RECALL = """
SELECT coalesce(jsonb_agg(hit), '[]') FROM (
    SELECT id, ts_rank(to_tsvector('english', text), query) AS score
    FROM notes, (SELECT replace(plainto_tsquery('english', {question} #>> '{{}}')::text, ' & ', ' | ')::tsquery AS query) AS asked
    WHERE world = {world} #>> '{{}}' AND to_tsvector('english', text) @@ query
    ORDER BY score DESC, position DESC LIMIT {k}
) AS hit;
"""


def literal(value: object) -> str:
    """A value as JSON, quoted for SQL."""
    return "'" + json.dumps(value).replace("'", "''") + "'::jsonb"


def result_of(url: str, statements: str) -> str:
    """What the database answers; psql's own words go to the standard error."""
    command = ["psql", url, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
    ran = subprocess.run(command, input=statements, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(f"psql ended with {ran.returncode}; is the database up, and was it seeded?")
    return ran.stdout.strip()


def seed(url: str, folder: str) -> None:
    """Write the notes of a suite into the database."""
    from hippo_core.protocols.paired.suite import read_suite

    notes = read_suite(folder).notes
    result_of(url, SEED.format(literal([note.model_dump(include={"world", "id", "text"}) for note in notes])))
    print(f"seeded: {len(notes)} notes of {folder}")


def answer(url: str, message: Mapping[str, Any], world: list[str]) -> dict[str, Any]:
    """The reply to a message; the world that is taught is kept in `world`."""
    if message["type"] == "teach":
        notes: Sequence[Mapping[str, Any]] = message["notes"]
        if (held := int(result_of(url, HELD.format(literal(notes))))) != len(notes):
            sys.exit(f"the database holds {held} of these {len(notes)} notes; seed it with this suite (--seed URL SUITE)")
        world[:] = {str(note["world"]) for note in notes}
        return {"type": "taught", "count": held}
    values = {"question": literal(message["question"]), "world": literal(world[0]), "k": int(message["k"])}
    return {"type": "recalled", "number": message["number"], "results": json.loads(result_of(url, RECALL.format(**values)))}


def main(words: list[str]) -> None:
    if len(words) == 3 and words[0] == "--seed":
        return seed(*words[1:])
    if len(words) != 1:
        sys.exit(__doc__)
    world: list[str] = []
    for line in sys.stdin:
        print(json.dumps({"schema_version": 1, **answer(words[0], json.loads(line), world)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
