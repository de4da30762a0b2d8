"""One cell: its parameters, its identity, its notebook, its record."""
