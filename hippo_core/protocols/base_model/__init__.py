"""How hippo-tiny comes into being: its tokenizer, its lessons, its training, what it can do, and the card that says so."""
