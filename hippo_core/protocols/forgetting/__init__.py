"""Tasks that a small transformer learns one after another, what it does against forgetting, and the loop of phases."""
