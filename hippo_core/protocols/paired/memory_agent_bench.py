"""MemoryAgentBench's files as a paired suite: each context is a world whose notes are taught once, and all its questions are asked of it.

A file holds rows {"context": text, "questions": [...], "answers": [[...], ...], "metadata": {"source": name, ...}}, as JSON, JSON lines or
parquet (Hu, Wang and McAuley 2025, arXiv 2507.05257). Two of its four competences are taken: conflict resolution (sources
factconsolidation_*, where a later fact replaces an earlier one) and accurate retrieval (ruler_qa*, eventqa_*). The other two need a judge.

Two rows are known by name, and read from `$HIPPO_DATA` with their checksums (hippo_core/text_files.py): `LISTED`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from hippo_core.errors import LabError
from hippo_core.files import new_folder, write_text
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.suite import PairedSuite, read_suite
from hippo_core.text import normal_values
from hippo_core.text_files import read_text

CONFLICT, RETRIEVAL = "conflict-resolution", "accurate-retrieval"
COMPETENCES = {"factconsolidation": CONFLICT, "ruler_qa": RETRIEVAL, "eventqa": RETRIEVAL}  # by how a source begins
FACT = re.compile(r"(?m)^\s*\d+\.\s+(?=\S)")  # "12. The capital of ..."
LISTED = {"factconsolidation_sh_6k": "factconsolidation-single", "factconsolidation_mh_6k": "factconsolidation-multi"}  # their questions
POOL = "factconsolidation-facts"  # the context of both
WORDS = 120  # of a note at most, where a context is no list of facts


class Source(BaseModel):
    """The part of a row's metadata that is read."""

    source: str


class BenchRow(BaseModel):
    """A context and what is asked of it; of the answers to a question any one is right."""

    context: Annotated[str, Field(min_length=1)]
    questions: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    answers: list[Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]]
    metadata: Source

    @model_validator(mode="after")
    def _aligned(self) -> "BenchRow":
        if len(self.questions) != len(self.answers):
            raise ValueError(f"expected answers to each of {len(self.questions)} questions, got {len(self.answers)}")
        return self


def adapted(file: Path, folder: str | Path, questions: int = 0, numbers: bool = True) -> PairedSuite:
    """Write the suite of a file into a new folder, and read it; of each context so many questions at most, 0: all. `numbers`: whether facts
    keep theirs, as in the benchmark; without them their order alone says what is later. LabError for a file that
    is not of the form, or holds nothing that is scored without a judge."""
    target = Path(folder).expanduser().absolute()
    if target.exists():
        raise LabError(f"{target} is there already; name another folder")
    notes: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    seen: list[str] = []
    for number, values in enumerate(_rows(file), start=1):
        where = f"{file}: row {number}"
        row = validated(BenchRow, normal_values(values, where), where)
        source = row.metadata.source
        seen.append(source)
        competence = next((name for begin, name in COMPETENCES.items() if source.lower().startswith(begin)), None)
        if competence is None:  # needs a judge
            continue
        world = f"context-{number}"
        notes += [{"id": f"n{index}", "world": world, "text": text} for index, text in enumerate(_notes(row.context, numbers), start=1)]
        for index, (question, answers) in enumerate(zip(row.questions, row.answers, strict=True), start=1):
            if not questions or index <= questions:
                fields = {"question": question, "required_assertions": [list(dict.fromkeys(answers))], "tags": [competence, source]}
                items.append({"id": f"{world}-q{index}", "type": "grounded_answer", "world": world, **fields})
    if not items:
        legal = ", ".join(f"{begin}*" for begin in COMPETENCES)
        raise LabError(f"{file}: expected rows of sources {legal}, got {', '.join(sorted(set(seen))) or 'none'}")
    with new_folder(target) as made:
        for name, lines in (("notes", notes), ("items", items)):
            write_text(made / f"{name}.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        write_text(made / "suite.yaml", f"name: memory-agent-bench\ndescription: {json.dumps(f'from {file.name}')}\n")
    return read_suite(target)


def _rows(file: Path) -> list[Any]:
    if (source := str(file)) in LISTED:
        asked = [json.loads(line) for line in read_text(LISTED[source]).splitlines() if line.strip()]
        texts = {"questions": [line["question"] for line in asked], "answers": [line["answers"] for line in asked]}
        return [{"context": read_text(POOL), **texts, "metadata": {"source": source}}]
    try:
        if file.suffix == ".parquet":
            import pandas as pd

            return json.loads(pd.read_parquet(file).to_json(orient="records") or "[]")
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".jsonl":
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        read = json.loads(text)
        return read if isinstance(read, list) else [read]
    except (OSError, ValueError, RecursionError, ImportError) as error:
        raise LabError(
            f"{file}: expected MemoryAgentBench's rows as .json, .jsonl or .parquet, or {' or '.join(LISTED)}: {error}"
        ) from None


def _notes(context: str, numbers: bool) -> Iterator[str]:
    """The facts of a numbered list, one a note, with their numbers, which say what is later, or without; else cut paragraphs."""
    facts = list(FACT.finditer(context))
    if len(facts) > 1:
        begins, ends = [fact.start() if numbers else fact.end() for fact in facts], [fact.start() for fact in facts[1:]]
        yield from (" ".join(context[begin:end].split()) for begin, end in zip(begins, [*ends, len(context)], strict=True))
        return
    for paragraph in context.split("\n\n"):
        words = paragraph.split()
        yield from (" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS))
