"""How like the question a passage must be for the quoting reader to quote it (LEAST_SHARED of content words, LEAST_COSINE of MiniLM's
vectors), chosen on the validation worlds of data/notes alone: python benchmarks/paired/threshold.py

Of each threshold the mean of two shares: questions that a note answers and the quoted note holds the answer to, and questions that no note
answers and "unknown" is said to. It is asked after a search by words, one by vectors, and with the right note in hand; what is highest in
the mean of the three is taken.
"""

from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.paired import assertions
from hippo_core.protocols.paired.answering import Prompt, Reader, by_vectors, by_words
from hippo_core.protocols.paired.conditions import Passage
from hippo_core.protocols.paired.memories import opener
from hippo_core.protocols.paired.suite import SuiteNote
from hippo_core.suites import notes

THRESHOLDS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8)
K = 5


def prompts() -> list[tuple[str, Prompt, tuple[str, ...]]]:
    """(search, prompt, right answers) of each question and search."""
    lm, rows = load(load_spec("hippo-tiny"), threads=1), []
    for name in notes.VALIDATION:
        world = notes.world_of(name, notes.NotesSettings())
        suite_notes = [SuiteNote(id=fact.id, world=name, text=fact.text) for fact in world.facts]
        texts = {note.id: note.text for note in suite_notes}
        for search, preset in (("words", "baselines/rag_bm25"), ("vectors", "baselines/rag_dense")):
            memory = opener(preset, lm, "minilm")(suite_notes)
            for item in world.items:
                recalled = memory.recall(item.question, K)
                rows.append((search, Prompt(item.question, recalled.shown, recalled.best), item.answers))
            memory.close()
        for item in world.items:
            right = tuple(Passage(note_id, texts[note_id]) for note_id in item.gold_facts)
            rows.append(("right note", Prompt(item.question, right, right[0] if right else None), item.answers))
    return rows


def main() -> None:
    """Print the table."""
    asked = prompts()
    searches = ("words", "vectors", "right note")
    for judge in (by_words, by_vectors):
        print(f"{judge.__name__:>10}" + "".join(f"{name:>24}" for name in searches) + f"{'mean of the three':>20}")
        for least in THRESHOLDS:
            _line(asked, searches, Reader(judge, least))


def _line(asked: list, searches: tuple[str, ...], reader: Reader) -> None:
    """A threshold: of each search the share of answerable and of unanswerable questions that end well, and their mean."""
    line, means = f"{reader.least:10.2f}", []
    for search in searches:
        shares = []
        for answerable in (True, False):
            own = [row for row in asked if row[0] == search and (row[2] != (notes.UNKNOWN,)) == answerable]
            right = sum(assertions.says(reader.answer(prompt).text, list(answers)) for _, prompt, answers in own)
            shares.append(right / len(own))
        means.append(sum(shares) / 2)
        line += f"{shares[0]:10.3f} {shares[1]:6.3f} {means[-1]:6.3f}"
    print(f"{line}{sum(means) / 3:20.3f}")


if __name__ == "__main__":
    main()
