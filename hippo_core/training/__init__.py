"""Training: the loop, lessons, and how the lab's own models come into being. This face imports nothing."""
