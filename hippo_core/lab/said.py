"""What a running cell says just now, kept for those who watch."""


class Said:
    """A place to write text to that keeps the last line that was not empty."""

    def __init__(self) -> None:
        self.line = ""

    def write(self, text: str) -> int:
        """Take a piece of output."""
        lines = [line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
        self.line = lines[-1] if lines else self.line
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""
