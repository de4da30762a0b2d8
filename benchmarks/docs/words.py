"""Words and mean sentence length of README and each page of docs; code is left out, tables count as words and not as sentences.

python -m benchmarks.docs.words
"""

import re
from statistics import mean

from docs.build_tables import pages

CODE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
WORD = re.compile(r"[A-Za-z][\w'’.-]*")
END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n- ")


def main() -> None:
    """Print a line a page."""
    for name, path in pages().items():
        text = CODE.sub("", path.read_text(encoding="utf-8"))
        prose = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#", "!")))
        lengths = [len(WORD.findall(sentence)) for sentence in END.split(prose) if len(WORD.findall(sentence)) > 2]
        print(f"{name:32} {len(WORD.findall(text)):5} words, {mean(lengths):4.1f} a sentence, longest {max(lengths)}")


if __name__ == "__main__":
    main()
