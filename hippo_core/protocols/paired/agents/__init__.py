"""Tasks that an agent works on, contained."""
