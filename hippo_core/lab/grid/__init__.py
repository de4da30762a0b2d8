"""Many cells: a grid expanded, run, watched and summed up."""
