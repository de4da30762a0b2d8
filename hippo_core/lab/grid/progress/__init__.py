"""How a grid comes along: what its cells say, the time that is left, a status file that others read, and what a terminal shows of it."""
